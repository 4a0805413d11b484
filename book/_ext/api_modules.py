"""The reference page: the public names by package, in the order of the data, and a table of all modules.

The page has a mark for each. A reference to what is not public leads to its module's row.
"""

import ast
import dataclasses
import html
import importlib
import inspect
import re
import textwrap
import tomllib
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from repo_links import find_repository

WIDTH = 76
MODULE = re.compile(r"\b(?:[a-z_]+\.)+(?=[A-Z])")
WORD = re.compile(r'<span class="pre">([^<]*)</span>')
NAMES, TABLE = "<!-- the public names -->", "<!-- all modules -->"
#: What a reader calls on an object of a class, beside what its constructor takes.
OPTIONS = "   :members:\n   :exclude-members: training\n"


def packages(root):
    """Return the packages in the order of the data: a package imports only those before it."""
    tools = tomllib.loads(Path(root, "pyproject.toml").read_text(encoding="utf-8"))["tool"]
    [layers] = [each["layers"] for each in tools["importlinter"]["contracts"] if each["type"] == "layers"]
    return layers[::-1]


def modules(root):
    """Return the dotted names of all modules of the library, in the order of the data."""
    library, names = Path(root, "lib", "exformer"), []
    for package in packages(root):
        paths = sorted((library / package).rglob("*.py")) or [library / f"{package}.py"]
        parts = [path.relative_to(library).with_suffix("").parts for path in paths]
        names += sorted(".".join(part) for part in parts if not part[-1].startswith("__"))
    return names


def public_names(root):
    """Return {name: its module} of what ``from exformer import …`` offers, in the order of the stub."""
    stub = ast.parse(Path(root, "lib", "exformer", "__init__.pyi").read_text(encoding="utf-8"))
    imports = [node for node in stub.body if isinstance(node, ast.ImportFrom)]
    return {alias.asname or alias.name: node.module for node in imports for alias in node.names}


def first_line(path):
    """Return the first line of a module's docstring."""
    return ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))).splitlines()[0]


def sections(root):
    """Write one section per package with public names, one entry per name."""
    names, text = public_names(root), []
    for package in packages(root):
        own = {name: module for name, module in names.items() if module.split(".")[0] == package}
        if own:
            about = first_line(Path(root, "lib", "exformer", package, "__init__.py"))
            text.append(f"## {package}\n\n{about}\n")
            text += [_entry(name, module) for name, module in own.items()]
    return "\n".join(text)


def _entry(name, module):
    thing = getattr(importlib.import_module(f"exformer.{module}"), name)
    kind, options = ("class", OPTIONS) if isinstance(thing, type) else ("function", "")
    if "VocabularyTokenizer" in [base.__name__ for base in getattr(thing, "__bases__", ())]:
        options += "   :inherited-members:\n"  # all that they do
    return f"```{{eval-rst}}\n.. auto{kind}:: exformer.{module}.{name}\n{options}```\n"


def table(root):
    """Write the table of all modules, each row with an id to which references lead."""
    url, branch = find_repository(Path(root))
    groups = []
    for package in packages(root):
        rows = [_row(root, name, url, branch) for name in modules(root) if name.split(".")[0] == package]
        if rows:
            head = f'<tr><th colspan="2" scope="rowgroup">{package}</th></tr>'
            groups.append(f"<tbody>{head}{''.join(rows)}</tbody>")
    head = '<tr><th scope="col">module</th><th scope="col">what it holds</th></tr>'
    return f'<table class="modules"><thead>{head}</thead>{"".join(groups)}</table>'


def _row(root, name, url, branch):
    path = Path("lib", "exformer", *name.split(".")).with_suffix(".py")
    file = re.sub(
        r"([/_])", r"\1<wbr>", "/".join(path.parts[3:] or path.parts[2:])
    )  # a narrow screen breaks lines there
    file = f'<a href="{url}/blob/{branch}/{path.as_posix()}">{file}</a>' if url else file
    about = html.escape(re.sub(r":\w+:`~?([^`]*)`", r"\1", first_line(Path(root, path)))).replace("``", "")
    return f'<tr id="module-exformer.{name}"><th scope="row">{file}</th><td>{about}</td></tr>'


def write_page(app, docname, source):
    """Put the public names and the table in the places of their marks."""
    if NAMES in source[0]:
        source[0] = source[0].replace(NAMES, sections(app.srcdir)).replace(TABLE, table(app.srcdir))


def lead_to_module(app, env, node, contnode):
    """Lead a reference to something of the library that is not public to its module's row, if it is there."""
    target = node.get("reftarget", "")
    module = _module_of(target) or _module_of(f"{node.get('py:module')}.{target}")
    if module is None or module.removeprefix("exformer.") not in modules(app.srcdir):
        return None
    uri = app.builder.get_relative_uri(node["refdoc"], "book/api") + f"#module-{module}"
    return nodes.reference("", "", contnode, internal=True, refuri=uri)


def _module_of(target):
    """Return the module in which a dotted name is defined; nothing if there is no such thing."""
    parts = target.split(".")
    for n in range(len(parts), 0, -1):
        try:
            thing = importlib.import_module(".".join(parts[:n]))
        except ImportError:
            continue
        for part in parts[n:]:
            if not hasattr(thing, part):
                return None
            thing = getattr(thing, part)
        return ".".join(parts[:n])
    return None


def head_only(app, what, name, thing, options, signature, returned):
    """Leave the name alone in an entry's head; the signature comes below it, a parameter a line."""
    return "", None


def signature_first(app, what, name, thing, options, lines):
    """Begin an entry with its signature as the source has it, the words for axes included."""
    if what not in ("function", "method", "class"):  # a property is called by its name
        return
    lines[:0] = [".. code-block:: text", "", *(f"   {line}" for line in signature(thing)), ""]


def signature(thing):
    """Return the lines of a signature: one if it fits, else one per parameter."""
    source = ast.parse(textwrap.dedent(inspect.getsource(thing))).body[0]
    returns = ""
    if dataclasses.is_dataclass(thing):
        parameters = _fields(thing)
    else:
        function = source
        if isinstance(thing, type):
            owner = next(cls for cls in thing.__mro__ if "__init__" in vars(cls))
            function = ast.parse(textwrap.dedent(inspect.getsource(owner.__init__))).body[0]
        elif source.returns is not None:
            returns = f" -> {_text(source.returns)}"
        parameters = [text for text in _parameters(function.args) if text not in ("self", "cls")]
    line = f"{thing.__name__}({', '.join(parameters)}){returns}"
    if len(line) <= WIDTH:
        return [line]
    lines = [f"{thing.__name__}(", *(f"    {parameter}," for parameter in parameters)]
    if len(returns) < WIDTH or not returns.startswith(" -> tuple["):
        return [*lines, f"){returns}"]
    return [*lines, ") -> tuple[", *(f"    {_text(part)}," for part in source.returns.slice.elts), "]"]


def _parameters(args):
    """Write each parameter of a function as its source does."""
    positional = [*args.posonlyargs, *args.args]
    defaults = [None] * (len(positional) - len(args.defaults)) + args.defaults
    written = [_parameter(*pair) for pair in zip(positional, defaults, strict=True)]
    if args.vararg or args.kwonlyargs:
        written.append("*" + (_parameter(args.vararg, None) if args.vararg else ""))
    written += [_parameter(*pair) for pair in zip(args.kwonlyargs, args.kw_defaults, strict=True)]
    return written + (["**" + _parameter(args.kwarg, None)] if args.kwarg else [])


def _parameter(arg, default):
    text = arg.arg + (f": {_text(arg.annotation)}" if arg.annotation else "")
    return text + (f" = {_text(default)}" if default is not None else "")


def _text(node):
    return ast.unparse(node).replace("'", '"')


def _fields(config):
    """Write the fields of a dataclass as parameters: those that are passed by position, then the others."""
    fields = dataclasses.fields(config)
    named = [_field(field) for field in fields if field.kw_only]
    return [_field(field) for field in fields if not field.kw_only] + (["*", *named] if named else [])


def _field(field):
    kind = field.type if isinstance(field.type, str) else inspect.formatannotation(field.type)
    default = field.default_factory() if callable(field.default_factory) else field.default
    text = f"{field.name}: {MODULE.sub('', kind)}"
    return (text if default is dataclasses.MISSING else f"{text} = {default!r}").replace("'", '"')


def lighten(app, pagename, templatename, context, doctree):
    """Take out the marks around each word of code, which only keep it whole, and methods in the contents."""
    if pagename != "book/api" or not context.get("body"):
        return
    context["body"] = WORD.sub(r"\1", context["body"]).replace("docutils literal notranslate", "literal")
    contents = BeautifulSoup(context["toc"], "html.parser")
    for methods in contents.select("ul ul ul ul"):
        methods.decompose()
    context["toc"] = str(contents)


def setup(app):
    """Register the extension."""
    app.connect("autodoc-process-signature", head_only)
    app.connect("autodoc-process-docstring", signature_first, priority=900)  # after napoleon
    app.connect("source-read", write_page)
    app.connect("missing-reference", lead_to_module)
    app.connect("html-page-context", lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
