"""The reference page: the public names, each with an example that runs, and no spoiler of an exercise."""

import ast
import doctest
import html
import re
import textwrap
from pathlib import Path

import pytest
from api_modules import modules, packages, public_names, sections, signature

import exformer

ROOT = Path(__file__).parents[2]
PUBLIC = public_names(ROOT)


@pytest.mark.parametrize("name", PUBLIC)
def test_each_public_name_has_an_example_that_runs_by_itself(name) -> None:
    thing = getattr(exformer, name)
    text = textwrap.dedent(thing.__doc__)
    example = doctest.DocTestParser().get_doctest(text, {name: thing}, name, None, 0)
    assert example.examples, "its docstring has no example"
    said = []
    assert doctest.DocTestRunner().run(example, out=said.append).failed == 0, "".join(said)


def test_public_names_by_package_in_order() -> None:
    text = sections(ROOT)
    assert re.findall(r"^\.\. auto\w+:: exformer\.(\S+)$", text, flags=re.M) == [
        f"{module}.{name}" for name, module in PUBLIC.items()
    ]
    heads = re.findall(r"^## (\w+)$", text, flags=re.M)
    assert heads == [package for package in packages(ROOT) if package in heads]
    assert len(heads) > 5
    section = {}
    for part in text.split("## ")[1:]:
        section |= dict.fromkeys(re.findall(r"auto\w+:: exformer\.(\w+)\.", part), part.split("\n")[0])
    assert all(package == head for package, head in section.items())


def test_a_signature_is_the_source_one_parameter_a_line() -> None:
    assert signature(exformer.LayerNorm) == [
        "LayerNorm(d_model: int, *, eps: float | None = None, bias: bool = True)",
    ]
    assert signature(exformer.scaled_dot_product_attention) == [
        "scaled_dot_product_attention(",
        '    q: Float[Tensor, "*batch query d_k"],',
        '    k: Float[Tensor, "*batch key d_k"],',
        '    v: Float[Tensor, "*batch key d_v"],',
        "    *,",
        '    mask: Bool[Tensor, "..."] | None = None,',
        '    bias: Float[Tensor, "..."] | None = None,',
        ") -> tuple[",
        '    Float[Tensor, "*batch query d_v"],',
        '    Float[Tensor, "*batch query key"],',
        "]",
    ]


def test_signature_of_a_config_on_the_page() -> None:
    lines = signature(exformer.DecoderLMConfig)
    assert lines[:3] == ["DecoderLMConfig(", "    vocab_size: int,", "    *,"]
    assert '    norm: str = "layer",' in lines
    assert "    lr_by_module: Mapping[str, float] = {}," in signature(exformer.TrainingConfig)


def hints():
    """Return the texts that name the mistakes of the exercises."""
    found = set()
    for path in (ROOT / "lib" / "exformer_lessons").glob("*/mistakes.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Dict):
                found |= {key.value for key in node.keys if isinstance(key, ast.Constant)}
    # Names of tensors, which are keys as well, are no sentences.
    texts = {text for text in found if isinstance(text, str) and len(text) > 20 and " " in text}
    assert len(texts) > 300
    return texts


def page(book):
    """Return the built page."""
    return (book / "book" / "api.html").read_text(encoding="utf-8")


def test_the_page_is_small(book: Path) -> None:
    assert len(page(book).encode()) < 400_000


def test_the_page_has_a_row_for_each_module(book: Path) -> None:
    assert re.findall(r'<tr id="module-exformer\.([\w.]+)">', page(book)) == modules(ROOT)


def test_no_page_tells_the_mistakes_of_an_exercise(book: Path) -> None:
    text = html.unescape(re.sub(r"<[^>]*>", "", page(book)))
    assert [hint for hint in hints() if hint in text] == []
    assert list(book.glob("_modules/**/*_mistakes.html")) == []
