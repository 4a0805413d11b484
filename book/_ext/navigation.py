"""Where a page leads: the sidebar leaves out the evidence, *Next* goes from the title through the lessons.

Lessons and the ledger link to the evidence, which is no station on a reader's way.
"""

import re

from bs4 import BeautifulSoup

LESSON = re.compile(r"notebooks/\d\d_\w+")
HIDDEN = "Evidence"


def ways(app, pagename, templatename, context, doctree):
    """Keep *Previous* and *Next* to the way, and the evidence out of the sidebar."""
    root = app.config.root_doc
    order = [root, *sorted(name for name in app.env.found_docs if LESSON.fullmatch(name))]
    place = order.index(pagename) if pagename in order else None
    for name, step in (("prev", -1), ("next", 1)):
        ends = place is None or not 0 <= place + step < len(order)
        if ends or not context.get(name):
            context[name] = None
    draw = context.get("generate_toctree_html")
    if draw:
        context["generate_toctree_html"] = lambda *args, **kwargs: without_hidden(draw(*args, **kwargs))


def without_hidden(sidebar):
    """Return the sidebar without the group that is hidden."""
    if HIDDEN not in str(sidebar):
        return sidebar
    soup = BeautifulSoup(str(sidebar), "html.parser")
    for caption in soup.select("p.caption"):
        if caption.get_text(strip=True) == HIDDEN:
            caption.find_next_sibling("ul").decompose()
            caption.decompose()
    return str(soup)


def setup(app):
    """Register the extension."""
    app.connect("html-page-context", ways, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
