"""Where a page leads: the sidebar leaves out evidence and reference, *Next* goes through the lessons.

Other pages link to them; they are no station on a reader's way. A page for teachers begins with a line of
links to the others.
"""

import re

from bs4 import BeautifulSoup

LESSON = re.compile(r"notebooks/\d\d_\w+")
HIDDEN = ("Evidence", "Reference")
#: The pages for teachers, in the order of their links.
TEACH = {
    "plans": "plans",
    "syllabus": "syllabus",
    "first_class": "first class",
    "notes": "lesson by lesson",
    "assignments": "assignments",
    "grading": "grading",
    "doubt": "challenge",
    "project": "project",
    "exams": "exams",
    "keys": "keys",
    "mock": "mock exams",
    "jupyterhub": "JupyterHub",
}


def ways(app, pagename, templatename, context, doctree):
    """Keep *Previous* and *Next* to the way, and what is hidden out of the sidebar."""
    way = [app.config.root_doc, *sorted(filter(LESSON.fullmatch, app.env.found_docs))]
    for name, end in (("prev", way[0]), ("next", way[-1])):
        if pagename not in way or pagename == end:
            context[name] = None
    draw = context.get("generate_toctree_html")
    if draw:
        context["generate_toctree_html"] = lambda *args, **kwargs: without_hidden(draw(*args, **kwargs))


def without_hidden(sidebar):
    """Return the sidebar without the groups that are hidden."""
    if not any(group in str(sidebar) for group in HIDDEN):
        return sidebar
    soup = BeautifulSoup(str(sidebar), "html.parser")
    for caption in soup.select("p.caption"):
        if caption.get_text(strip=True) in HIDDEN:
            caption.find_next_sibling("ul").decompose()
            caption.decompose()
    return str(soup)


def link_teachers(app, docname, source):
    """Add the links below the title of a page for teachers, before it is parsed."""
    folder, _, page = docname.rpartition("/")
    if folder == "book/teach":
        title, _, text = source[0].partition("\n")
        links = (name if to == page else f"[{name}]({to}.md)" for to, name in TEACH.items())
        source[0] = f"{title}\n\n[Teach](../teach.md): {', '.join(links)}\n{text}"


def setup(app):
    """Register the extension."""
    app.connect("source-read", link_teachers)
    app.connect("html-page-context", ways, priority=950)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
