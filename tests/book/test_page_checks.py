"""The checks of the built pages find what they are there to find, however many texts look alike."""

import pytest

PAGE = """<!doctype html>
<html lang="en" data-theme="light">
<head>
<title>A page</title>
<meta name="viewport" content="width=device-width">
<style>
html { background: #fff; color: #222; }
html[data-theme="dark"] { background: #111; color: #eee; }
pre { white-space: pre-wrap; }
.phone { display: none; }
@media (max-width: 500px) {
  .phone { display: block; }
  .scroll { overflow: auto; white-space: nowrap; width: 9em; }
}
.k { color: #a00; }
html[data-theme="dark"] .k { color: #faa; }
HEAD
</style>
<script>
let turn = () => {
  const { dataset } = document.documentElement;
  dataset.theme = dataset.theme === "dark" ? "light" : "dark";
};
</script>
</head>
<body>
<main>
<h1>A page</h1>
<button class="theme-switch-button" onclick="turn()">Theme</button>
<pre tabindex="0">MANY</pre>
BODY
</main>
</body>
</html>"""
MANY = " ".join(
    f'<span class="k">for</span> <span class="p">,</span> <span class="n">x{n}</span>' for n in range(40)
)
LIGHT, DARK = (
    'html[data-theme="{}"] .odd {{ color: {}; }}'.format(*each)
    for each in (("light", "#ccc"), ("dark", "#333"))
)

SET = "<span class='math'><mjx-container>y</mjx-container></span>"


@pytest.fixture(scope="module")
def tab(browser, tmp_path_factory):
    """Open one tab for all pages, which takes a third of the time of a new one for each."""
    from page_checks import visit

    blank = tmp_path_factory.mktemp("checks") / "blank.html"
    blank.write_text("<!doctype html>", encoding="utf-8")
    page, complaints = visit(browser, blank)
    yield page, complaints
    page.context.close()


@pytest.fixture
def found(tab, tmp_path):
    """Return what is found on a page with further styles, with further elements, or with other code."""
    from page_checks import Known, faults, go

    (page, complaints), known = tab, Known()

    def check(head="", body="", many=MANY):
        path = tmp_path / "page.html"
        path.write_text(
            PAGE.replace("HEAD", head).replace("BODY", body).replace("MANY", many), encoding="utf-8"
        )
        complaints.clear()
        go(page, path)
        return complaints + faults(page, known)

    return check


def test_on_a_good_page_nothing_is_found(found) -> None:
    assert found() == []


@pytest.mark.parametrize(("theme", "style"), [("light", LIGHT), ("dark", DARK)])
def test_a_faint_text_is_found_in_its_theme(found, theme, style) -> None:
    (fault,) = found(style, '<p class="odd">A faint text</p>')
    assert fault == f'desk, {theme}: axe color-contrast: <p class="odd">A faint text</p>'


@pytest.mark.parametrize(
    "head",
    [
        ".n:nth-of-type(90) { color: #ccc; }",  # in no class of its own
        ".n:nth-of-type(90) { background: #ddd; color: #eee; }",
        ".n:nth-of-type(90) { opacity: 0.2; }",
        'html[data-theme="dark"] .n:nth-of-type(90) { color: #333; }',  # alike in light alone
    ],
)
def test_one_faint_color_among_hundreds_is_found(found, head) -> None:
    faults = found(head)
    assert faults
    assert all("axe color-contrast: " in fault and ">x29<" in fault for fault in faults)


@pytest.mark.parametrize("around", ["background: #444", "opacity: 0.2"])
def test_what_a_text_stands_in_counts(found, around) -> None:
    faint = f'<b class="b">word</b> <i style="{around}"><b class="b">faint</b></i>'
    assert any("faint" in fault for fault in found(body=faint))


@pytest.mark.parametrize("head", [".n { color: #ccc; }", "pre { background: #999; }", ".n { opacity: 0.3; }"])
def test_a_good_page_hides_no_fault_of_the_next(found, head) -> None:
    assert found() == []
    assert any("axe color-contrast: " in fault for fault in found(head))
    assert found() == []
    many = MANY.replace('"n"', '"n" style="color: #ccc"')
    assert any("axe color-contrast: " in fault for fault in found(many=many))


@pytest.mark.parametrize("size", ["font-size: 15px", "font-weight: 400"])
def test_a_color_that_does_for_large_text_is_found_in_small(found, size) -> None:
    head = (
        '.s { font-size: 20px; font-weight: 700; color: #888; } html[data-theme="dark"] .s { color: #888; }'
    )
    (fault,) = found(head, f'<b class="s">large</b> <b class="s" style="{size}">small</b>')
    assert fault.startswith("desk, light: axe color-contrast: ")
    assert "small" in fault


@pytest.mark.parametrize(
    "first",
    [
        '<span class="odd">,</span>',
        '<span class="odd">a</span>',
        '<span class="odd" hidden>hidden</span>',
    ],
)
def test_samples_judge_another_text_of_the_kind(found, first) -> None:
    (fault,) = found(LIGHT, many=first + MANY + '<span class="odd">seen late</span>')
    assert "seen late" in fault


def test_a_page_that_is_too_wide_for_a_phone_is_found(found) -> None:
    assert found(body='<div style="width: 500px">wide</div>') == ["phone, dark: 118 px wider than the screen"]


@pytest.mark.parametrize(
    ("body", "rule"),
    [
        ('<img src="data:,">', "image-alt"),
        ('<input type="text">', "label"),
        ('<input class="phone" type="text">', "label"),
        ('<div class="scroll">many words, and they are long</div>', "scrollable-region-focusable"),
        ('<div id="a"></div><p aria-labelledby="b" role="checkbox">', "aria"),
    ],
)
def test_what_a_reader_who_does_not_see_would_miss_is_found(found, body, rule) -> None:
    assert any(f"axe {rule}" in fault for fault in found(body=body))


def test_links_that_only_their_color_tells_apart_are_found(found) -> None:
    head = 'a { color: #333; } html[data-theme="dark"] a { color: #ddd; }'
    body = '<p>One of <a href="#x">the words</a> leads on.</p>'
    assert found(head, body) == []
    rules = [fault.split(": ")[1] for fault in found(f"{head} a {{ text-decoration: none; }}", body)]
    assert rules == ["axe link-in-text-block"] * 2


@pytest.mark.parametrize(
    ("body", "fault"),
    [
        (f"{SET} <span class='math'>x + 1</span>", "a formula that is not set: x + 1"),
        ("<mjx-merror>?</mjx-merror>", "a formula that MathJax does not understand"),
        ('<mjx-mtext style="color: red;">x</mjx-mtext>', "a formula that MathJax does not understand"),
        ('<script src="https://example.org/x.js"></script>', "asks for https://example.org/x.js"),
        ("<script>console.error('oh')</script>", "oh"),
        ("<script>turn = () => {}</script>", "desk, dark: the button of the themes does not make it dark"),
    ],
)
def test_other_faults_are_found(found, body, fault) -> None:
    assert fault in found(body=body)
