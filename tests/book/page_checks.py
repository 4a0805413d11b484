"""What is wrong with a page in a browser, in words: in both themes, on a desk and on a phone."""

from pathlib import Path

from axe_playwright_python.sync_playwright import Axe

WIDTHS = {"desk": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
COLORS = Path(__file__).with_name("page_colors.js").read_text(encoding="utf-8")
#: All rules but those of the colors, of the page or of some elements. A page in a file may not read its own
#: style sheets again (preload).
RULES = """async (include) => {
    const rules = { "color-contrast": { enabled: false }, "link-in-text-block": { enabled: false } };
    const options = { rules, preload: false, resultTypes: ["violations"] };
    const report = await axe.run(include ? { include } : document, options);
    return report.violations.flatMap((rule) =>
        rule.nodes.slice(0, 3).map((node) => `axe ${rule.id}: ${node.html.slice(0, 160)}`));
}"""
#: Note what is seen; later tell what axe finds in all that was not seen then and is not known, or must be
#: scrolled and cannot be by keys.
NOTE = """() => {
    document.seen = new Set(document.body.querySelectorAll("*"));
    for (const each of document.seen) if (!each.checkVisibility()) document.seen.delete(each);
}"""
ELSEWHERE = """async (known) => {
    const scrolls = ({ scrollWidth, clientWidth }) => scrollWidth > clientWidth;
    const byKeys = "[tabindex], a[href], button, input, select, textarea, summary";
    const isStuck = (each) => scrolls(each) && /auto|scroll/.test(getComputedStyle(each).overflowX)
        && !each.matches(byKeys) && !each.querySelector(byKeys);
    const isNew = (each) => !document.seen.has(each) && !known.includes(each.outerHTML);
    const seen = [...document.body.querySelectorAll("*")].filter((each) => each.checkVisibility());
    const include = seen.filter((each) => isNew(each) || isStuck(each));
    return [include.length ? await (RULES)(include) : [], include.map((each) => each.outerHTML)];
}""".replace("RULES", RULES)
#: Two frames, in which scripts hear of the change; then what moves or fades is brought to its end. It is not
#: waited for: Chromium lets what cannot be seen stand still.
SETTLE = """async () => {
    for (let frame = 0; frame < 2; frame++) await new Promise(requestAnimationFrame);
    const endless = (each) => each.effect.getComputedTiming().endTime === Infinity;
    for (const each of document.getAnimations()) if (!endless(each)) each.finish();
}"""


def visit(browser, path, *, prefers="light"):
    """Open a page; return it and the list of what it asks of other hosts and what its scripts complain of."""
    context = browser.new_context(viewport=WIDTHS["desk"], color_scheme=prefers)
    page = context.new_page()
    found = []

    def note(request):
        if not request.url.startswith(("file:", "data:", "blob:")):
            found.append(f"asks for {request.url}")

    page.on("request", note)
    page.on("console", lambda said: found.append(said.text) if said.type == "error" else None)
    page.on("pageerror", lambda error: found.append(str(error)))
    go(page, path)
    return page, found


def go(page, path):
    """Show a file on a desk, as to a new reader; an open tab takes half of the time of a new one."""
    if page.url != "about:blank":
        page.evaluate("localStorage.clear()")  # the theme that was chosen
    page.set_viewport_size(WIDTHS["desk"])
    page.goto(path.as_uri())
    page.evaluate("async () => { await window.MathJax?.startup?.promise; await document.fonts.ready }")


class Known:
    """What was found to be good on one page, colors and what only phones show: it is judged once."""

    def __init__(self):
        self.kinds = {"names": [], "good": {"color-contrast": [], "link-in-text-block": []}}
        self.elements = []

    def colors(self, page):
        """Return what is wrong with the colors of a page in its theme."""
        found = page.evaluate(COLORS, self.kinds)
        self.kinds = found["known"]
        return found["complaints"]

    def elsewhere(self, page):
        """Return what is wrong, for who does not see it, with what shows or scrolls at this width alone."""
        complaints, elements = page.evaluate(ELSEWHERE, self.elements)
        self.elements += [] if complaints else elements
        return complaints


def roles_and_names(page):
    """Return what is wrong with a page for who does not see it; note what is seen."""
    page.evaluate(NOTE)
    return page.evaluate(RULES)


def faults(page, known, *, axe=True):
    """Return what is wrong with a page that was opened on a desk, in light.

    Colors do not depend on the width, and nothing but colors depends on the theme. Without ``axe``, which
    takes most of the time, layout and formulas are judged alone.
    """
    found = unset_formulas(page)
    if axe:
        page.evaluate(Axe().axe_script)
    for theme, width, checks in (
        ("light", "desk", (roles_and_names, known.colors)),
        ("dark", "desk", (known.colors,)),
        ("dark", "phone", (known.elsewhere,)),
    ):
        wrong = show(page, theme, width) + too_wide(page)
        for check in checks if axe else ():
            wrong += check(page)
        found += [f"{width}, {theme}: {fault}" for fault in wrong]
    return found


def theme_of(page):
    """Return the theme in which a page is shown."""
    return page.evaluate("document.documentElement.dataset.theme")


def show(page, theme, width):
    """Give the window a width and the page a theme, by its own button; complain if it does not take it."""
    page.set_viewport_size(WIDTHS[width])
    if theme_of(page) != theme:
        page.evaluate("document.querySelector('.theme-switch-button')?.click()")
    page.evaluate(SETTLE)
    return [] if theme_of(page) == theme else [f"the button of the themes does not make it {theme}"]


def too_wide(page):
    """Return a complaint if the whole page must be scrolled sideways."""
    wide = page.evaluate("document.documentElement.scrollWidth - document.documentElement.clientWidth")
    return [f"{wide} px wider than the screen"] if wide > 0 else []


def unset_formulas(page):
    """Return complaints about formulas that MathJax did not set, or in red: that is what it does not know."""
    unset = "[...document.querySelectorAll('.math')].filter((each) => !each.querySelector('mjx-container'))"
    found = [
        f"a formula that is not set: {text}" for text in page.evaluate(f"{unset}.map((e) => e.innerText)")
    ]
    red = page.locator('mjx-merror, mjx-mtext[style*="red"]').count()
    return found + ["a formula that MathJax does not understand"] * red
