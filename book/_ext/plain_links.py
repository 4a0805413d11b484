r"""Plain links become cross-references and citations, and ``\tag`` becomes the number of an equation.

Each of these links leads somewhere in Jupyter and on GitHub too. On the page

- ``[the softmax](../book/glossary.md#softmax)`` leads to the entry of the glossary;
- ``[Vaswani et al. (2017)](https://arxiv.org/abs/1706.03762)``, a link to the address that a source has in
  book/references.bib, leads to its row among the references, as ``../book/references.md#vaswani2017`` does;
- ``[A15](../book/claims.md#A15)`` leads to that row of the ledger;
- ``[heads](04_multi_head_attention.ipynb#Cut-and-join)`` leads to the section of that title, spaces as
  hyphens, as in Jupyter, or to the figure of that name (``mystnb.figure.name``);
- ``[(3.1)](#eq-3.1)`` leads to the equation that bears ``\tag{3.1}``;
- ``[`causal_mask()`](../lib/exformer/nn/masks.py)`` leads to the page of the library.

A link that leads nowhere fails the build, and so does a tag that is not the number of its equation.
"""

import re
from urllib.parse import unquote

from docutils import nodes
from ledger_data import read_claims
from pybtex.backends.plaintext import Backend
from sphinx import addnodes
from sphinx.transforms import SphinxTransform
from sphinx.transforms.post_transforms import SphinxPostTransform
from sphinx.util import logging
from sphinx.util.nodes import make_refnode

LOG = logging.getLogger(__name__)
TAG = re.compile(r"\s*\\tag\{([\w.]+)\}")
#: Words that cite: “Vaswani et al. (2017)” or “Vaswani et al., 2017”.
CITES = re.compile(r"\S.*(?:\((?:\d{4}|n\.d\.)\)|, (?:\d{4}|n\.d\.))")
MODULE = re.compile(r"(?:\.\./)*lib/(exformer(?:/\w+)*)\.py")
GLOSSARY, REFERENCES, LEDGER = "book/glossary", "book/references", "book/claims"


def slug(term):
    """Return the anchor of a term of the glossary: "Top-p sampling" becomes "top-p-sampling"."""
    return re.sub(r"\W+", "-", term.lower()).strip("-")


def anchor(title):
    """Return the anchor that Jupyter gives to a heading: "Why divide?" becomes "Why-divide?"."""
    return title.strip().replace(" ", "-")


def label(docname, number):
    """Return the name of an equation in the whole book."""
    return f"{docname.rpartition('/')[2]} {number}"


class Equations(SphinxTransform):
    r"""Make a numbered equation of each that bears ``\tag``."""

    default_priority = 400

    def apply(self, **options):
        """Take the tag away, the page writes the number itself."""
        domain, docname = self.env.get_domain("math"), self.env.docname
        for node in list(self.document.findall(nodes.math_block)):
            tag = TAG.search(node.astext())
            if tag is None:
                continue
            text, name = TAG.sub("", node.astext()), label(docname, tag[1])
            domain.note_equation(docname, name, location=node)
            number = domain.get_equation_number_for(name)
            ids = [nodes.make_id(f"equation-{name}")]
            new = nodes.math_block(
                text, text, nowrap=node["nowrap"], number=number, label=name, docname=docname
            )
            new["ids"], new["tag"] = ids, tag[1]
            new.source, new.line = node.source, node.line
            node.replace_self(new)


class Links(SphinxTransform):
    """Turn plain links into references that are resolved when all pages are read."""

    default_priority = 450  # before MyST, which takes what is left

    def apply(self, **options):
        """Take the links of a page in turn."""
        entries = self.env.get_domain("cite").bibdata.data.entries
        self.sources = {address: key for key, entry in entries.items() for address in _addresses(entry)}
        for node in list(self.document.findall(nodes.reference)):
            self._address(node, node.get("refuri", ""))
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("reftype") == "myst" and node.get("reftargetid"):
                self._page(node, node["reftarget"], unquote(node["reftargetid"]))
        for node in list(self.document.findall(addnodes.download_reference)):
            module = MODULE.fullmatch(node["reftarget"])
            if module:
                self._library(node, module[1].replace("/", "."))

    def _address(self, node, address):
        if address.startswith("#"):
            self._page(node, self.env.docname, unquote(address[1:]))
        elif address in self.sources:
            self._wait(node, "citation", "", self.sources[address])
        elif CITES.fullmatch(node.astext()):
            LOG.warning("no source of references.bib has the address %s", address, location=node)

    def _page(self, node, docname, target):
        if docname == GLOSSARY:
            self._wait(node, "term", docname, target)
        elif docname == REFERENCES:
            self._wait(node, "citation", docname, target)
        elif docname == LEDGER:
            self._wait(node, "claim", docname, target)
        elif target.startswith("eq-"):
            self._wait(node, "equation", docname, target.removeprefix("eq-"))
        elif docname.startswith("notebooks/"):
            self._wait(node, "section", docname, target)

    def _wait(self, node, kind, docname, target):
        inside = node.children[0].children if isinstance(node, addnodes.pending_xref) else node.children
        options = {
            "refdomain": "",
            "reftype": "plain",
            "kind": kind,
            "refdocname": docname,
            "reftarget": target,
        }
        new = addnodes.pending_xref("", nodes.inline("", "", *inside), **options)
        new.source, new.line = node.source, node.line
        node.replace_self(new)

    def _library(self, node, module):
        name = node.astext().removesuffix("()")
        kind = "func" if node.astext().endswith("()") else "class"
        words = nodes.literal("", node.astext(), classes=["xref", "py", f"py-{kind}"])
        target = f"{module.removesuffix('.__init__')}.{name}"
        options = {
            "refdomain": "py",
            "reftype": "obj",
            "reftarget": target,
            "refexplicit": True,
            "refwarn": True,
        }
        new = addnodes.pending_xref("", words, refdoc=self.env.docname, **options)
        new.source, new.line = node.source, node.line
        node.replace_self(new)


class ResolveLinks(SphinxPostTransform):
    """Let each waiting link lead to what it names, or say that there is no such thing."""

    default_priority = 8

    def run(self, **options):
        """Take the links of a page in turn; then compare the numbers of its equations."""
        for node in list(self.document.findall(addnodes.pending_xref)):
            if node.get("reftype") == "plain":
                found = getattr(self, f"_{node['kind']}")(node)
                if found is None:
                    words = "this link leads nowhere: there is no %s “%s” %s"
                    place = f"in {node['refdocname']}" if node["refdocname"] else ""
                    LOG.warning(words, node["kind"], node["reftarget"], place, location=node)
                node.replace_self(found if found is not None else node[0])
        numbers = self.env.toc_fignumbers.get(self.env.docname, {}).get("displaymath", {})
        for node in self.document.findall(nodes.math_block):
            right = ".".join(map(str, numbers.get((node["ids"] or [""])[0], ())))
            if node.get("tag") and node["tag"] != right:
                LOG.warning("the equation with \\tag{%s} has number %s", node["tag"], right, location=node)

    def _refer(self, node, docname, target, classes=(), title=None):
        words = node[0]
        words["classes"] = [*classes]
        return make_refnode(self.app.builder, self.env.docname, docname, target, words, title)

    def _term(self, node):
        for (kind, name), (docname, target) in self.env.get_domain("std").objects.items():
            if kind == "term" and slug(name) == node["reftarget"]:
                return self._refer(node, docname, target, ["xref", "std", "std-term"])
        return None

    def _citation(self, node):
        for source in self.env.get_domain("cite").citations:
            if source.key == node["reftarget"]:
                self._check_words(node, source.entry)
                title = source.tooltip_entry and source.tooltip_entry.text.render(Backend()).replace(
                    "\\url ", ""
                )
                return self._refer(node, source.bibliography_key.docname, source.citation_id, title=title)
        return None

    def _check_words(self, node, entry):
        """Words that cite name the first author and the year; other words may link to a source, too."""
        words, year = node.astext(), entry.fields.get("year", "n.d.")
        author = " ".join(map(str, entry.persons["author"][0].rich_last_names))
        if CITES.fullmatch(words) and not (year in words and author in words):
            LOG.warning("“%s” cites a source by %s, %s", words, author, year, location=node)

    def _claim(self, node):
        known = {row["id"] for row in read_claims(self.env.srcdir)}
        target = node["reftarget"]
        return self._refer(node, LEDGER, f"ledger-{target}") if target in known else None

    def _equation(self, node):
        name = label(node["refdocname"], node["reftarget"])
        found = self.env.get_domain("math").equations.get(name)
        return found and self._refer(node, found[0], nodes.make_id(f"equation-{name}"))

    def _section(self, node):
        toc = self.env.tocs.get(node["refdocname"], nodes.bullet_list())
        for entry in toc.findall(nodes.reference):
            if anchor(entry.astext()) == node["reftarget"]:
                target = entry["anchorname"].removeprefix("#")
                return self._refer(node, node["refdocname"], target, ["std", "std-ref"])
        docname, target = self.env.get_domain("std").anonlabels.get(node["reftarget"], ("", ""))
        return self._refer(node, docname, target) if docname == node["refdocname"] else None


def _addresses(entry):
    return [
        entry.fields[key] if key == "url" else f"https://doi.org/{entry.fields[key]}"
        for key in ("url", "doi")
        if key in entry.fields
    ]


def setup(app):
    """Register the extension."""
    app.add_transform(Equations)
    app.add_transform(Links)
    app.add_post_transform(ResolveLinks)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
