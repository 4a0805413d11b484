"""The modules of the library in the order of the data: for the reference page, and for a test of imports."""

from pathlib import Path

#: A module imports only modules that stand before it here; a package stands for all modules in it.
ORDER = """
    storage corpora tokenizers data nn models training generation evaluation hub recipes lessons cli __main__
""".split()  # noqa: SIM905 (a list of words reads better)
MARK = "<!-- modules of the library -->"


def modules(root):
    """Return the dotted names of all modules of the library, in the order of the data."""
    library = Path(root, "lib", "exformer")
    names = []
    for path in library.rglob("*.py"):
        parts = path.relative_to(library).with_suffix("").parts
        if not parts[-1].startswith("__"):
            names.append(".".join(parts))
    return sorted(names, key=lambda name: (rank(name), name))


def rank(name):
    """Return a module's place in the order; one that is not in it comes last, and a test says so."""
    first = name.split(".")[0]
    return ORDER.index(first) if first in ORDER else len(ORDER)


def write_modules(app, docname, source):
    """Put one section a module in the place of the mark."""
    if MARK not in source[0]:
        return
    sections = [
        f"## {name}\n\n```{{eval-rst}}\n.. automodule:: exformer.{name}\n   :members:\n```\n"
        for name in modules(app.srcdir)
    ]
    source[0] = source[0].replace(MARK, "\n".join(sections))


def keep_sentences(app, what, name, thing, options, lines):
    """Keep napoleon from taking the words before a colon in a constant's description for its type."""
    if what in ("data", "attribute"):
        lines[:] = [line.replace(": ", " – ", 1) for line in lines]


def setup(app):
    """Register the extension."""
    app.connect("autodoc-process-docstring", keep_sentences, priority=100)
    app.connect("source-read", write_modules)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
