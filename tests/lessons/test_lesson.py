"""Set-up, claims and source of a lesson."""

import math
import random

import matplotlib as mpl
import numpy as np
import pytest
import torch

from exformer_lessons import claims, source
from exformer_lessons.claims import ClaimError, claim, kept_findings
from exformer_lessons.claims import shown as show_row
from exformer_lessons.setup import start
from exformer_lessons.source import show_source


@pytest.fixture
def shown(monkeypatch):
    things = []
    for module in (claims, source):
        monkeypatch.setattr(module, "render", things.append)
    return things


def test_a_claim_is_one_line_and_one_card(shown) -> None:
    claim("A15", holds=lambda: torch.tensor(True), says="spread <32> & more ")
    assert repr(shown[0]) == "claim A15 | spread <32> & more"
    card = shown[0]._repr_html_()
    assert 'id="claim-A15"' in card
    assert "spread &lt;32&gt; &amp; more</div>" in card


def test_the_error_of_a_claim_that_does_not_hold(shown) -> None:
    with pytest.raises(ClaimError, match="claim A15 does not hold: spread 31"):
        claim("A15", holds=lambda: 31 > 32, says="spread 31")
    assert shown == []


@pytest.mark.parametrize(
    ("claim_id", "says", "message"),
    [
        ("a15", "x", "must be a letter and two digits"),
        ("A155", "x", "must be a letter and two digits"),
        ("A15", " ", "one line that is not empty"),
        ("A15", "two\nlines", "one line that is not empty"),
    ],
)
def test_errors_of_sentences_and_ids(claim_id, says, message) -> None:
    with pytest.raises(ValueError, match=message):
        claim(claim_id, holds=lambda: True, says=says)


def test_named_values_in_the_sentence(shown) -> None:
    claim(
        "A01",
        holds=lambda attention, one_vector: attention > one_vector + 0.3,
        says="At {n} words attention keeps {attention:.0%}, one vector {one_vector:.0%}.",
        n=12,
        attention=torch.tensor(0.5),
        one_vector=np.float32(0.125),
    )
    assert repr(shown[0]) == "claim A01 | At 12 words attention keeps 50%, one vector 12%."
    data, metadata = shown[0]._repr_mimebundle_()
    assert data == {"text/plain": repr(shown[0]), "text/html": shown[0]._repr_html_()}
    assert metadata == {
        "exformer": {
            "kind": "claim",
            "id": "A01",
            "says": "At {n} words attention keeps {attention:.0%}, one vector {one_vector:.0%}.",
            "values": {"n": 12, "attention": 0.5, "one_vector": 0.125},
        }
    }
    assert [type(value) for value in metadata["exformer"]["values"].values()] == [int, float, float]


def test_a_row_that_is_true_by_definition(shown) -> None:
    show_row("B05", says="{n} columns, as before", n=32)
    assert repr(shown[0]) == "shown B05 | 32 columns, as before"
    assert "<strong>Shown B05</strong> 32 columns" in shown[0]._repr_html_()
    assert shown[0]._repr_mimebundle_()[1]["exformer"]["kind"] == "shown"


def test_the_budget_beside_the_card(shown) -> None:
    for budget in (True, False):
        claim("A01", holds=lambda n: n > 1, says="After {n} passes.", budget=budget, n=2)
    kept = [each._repr_mimebundle_()[1]["exformer"] for each in shown]
    assert [each.get("budget") for each in kept] == [True, None]


def test_bools_among_the_values(shown) -> None:
    claim("A01", holds=lambda found: found, says="It is {found}.", found=np.bool_(True))
    assert repr(shown[0]) == "claim A01 | It is True."
    assert shown[0].values == {"found": True}
    assert type(shown[0].values["found"]) is bool


def test_nan_refutes_a_claim(shown) -> None:
    with pytest.raises(ClaimError, match="claim A01 does not hold"):
        claim("A01", holds=lambda a, b: a > 1, says="{a} and {b}", a=2.0, b=math.nan)


@pytest.mark.parametrize("share", [0.25, math.nan, math.inf])
def test_conditions_on_the_figures(shown, share) -> None:
    with pytest.raises(ClaimError, match=rf"claim A01 does not hold: .* \(share = {share}\)"):
        claim("A01", holds=lambda share: not share < 0.3, says="It is {share:.0%}.", share=share)
    assert shown == []


def test_collected_findings(shown) -> None:
    with kept_findings() as found:
        claim("A01", holds=lambda share: share > 0.5, says="{share:.0%}", share=0.3)
        claim("A02", holds=lambda: False, says="no")
        show_row("A03", says="yes")
    assert [(each.claim_id, each.holds, each.kind) for each in found] == [
        ("A01", False, "claim"),
        ("A02", False, "claim"),
        ("A03", True, "shown"),
    ]
    assert shown == []
    with pytest.raises(ClaimError):
        claim("A02", holds=lambda: False, says="no")


def test_nested_collection_of_findings() -> None:
    with kept_findings() as outer:
        with kept_findings() as inner:
            claim("A01", holds=lambda: True, says="in")
        claim("A02", holds=lambda: False, says="out")
    assert [each.claim_id for each in inner] == ["A01"]
    assert [each.claim_id for each in outer] == ["A02"]


def no_more_than(share):
    return share < 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"holds": True, "share": 0.5}, "holds must be a function of share, got True: write holds=lambda"),
        ({"holds": True, "budget": True}, "holds must be a function of the values"),
        ({"says": "{other}", "share": 0.5}, "'other' is not among the values .share.: add other="),
        (
            {"holds": lambda share, other: share < other, "share": 0.5},
            "'other' is not among the values .share.",
        ),
        ({"says": "{share}"}, "'share' is not among the values .there are none."),
        ({"share": 0.5, "spare": 1}, "spare is measured, but neither the sentence nor the condition uses it"),
        ({"says": "half", "share": 0.5}, "shows no value: write {share} into it"),
        ({"says": "{}", "share": 0.5}, "must name its values, as {share:.0%}, got {}"),
        ({"says": "{0}", "share": 0.5}, "must name its values"),
        ({"says": "{share.real}", "share": 0.5}, "must name its values.* got {share.real}"),
        ({"says": "{share", "share": 0.5}, "cannot be formatted: expected '}'"),
        ({"says": "{share:.0%}", "share": "half"}, "cannot be formatted: Unknown format code"),
        ({"share": [0.5]}, "share must be a bool, a number or a word, got list: name the one number"),
        ({"share": torch.ones(2)}, "share must be a bool, .* got Tensor"),
        ({"share": np.ones(2)}, "share must be a bool, .* got ndarray"),
        ({"says": "two\nlines {share}", "share": 0.5}, "one line that is not empty"),
    ],
)
def test_errors_of_named_values(options, message) -> None:
    with pytest.raises(ValueError, match=message):
        claim("A01", **{"holds": no_more_than, "says": "It is {share}."} | options)


class Sample:
    """A class to be shown."""

    size = 3

    def double(self) -> int:
        """Double the size."""
        return 2 * self.size


def test_source_without_docstrings(shown) -> None:
    show_source(Sample)
    assert repr(shown[0]) == (
        "class Sample:\n    size = 3\n\n    def double(self) -> int:\n        return 2 * self.size"
    )
    assert shown[0]._repr_markdown_() == f"```python\n{shown[0]!r}\n```"


def test_source_with_docstrings(shown) -> None:
    show_source(Sample.double, docstring=True)
    text = repr(shown[0])
    assert text.startswith("def double")  # not indented
    assert '"""Double the size."""' in text


def test_source_of_a_docstring_alone(shown) -> None:
    show_source(ClaimError)
    assert repr(shown[0]) == (
        'class ClaimError(Exception):\n    """A claim that the numbers do not support."""'
    )


def test_digits_and_style_after_start() -> None:
    with mpl.rc_context({"axes.spines.top": True}):
        start()
        assert not mpl.rcParams["axes.spines.top"]
    assert repr(torch.tensor([0.00004, 1234.5678])) == "tensor([   0.000, 1234.568])"


def test_random_numbers_after_start() -> None:
    def draw():
        return random.random(), float(np.random.rand()), torch.rand(3).tolist()

    start(seed=7)
    first = draw()
    start(seed=7)
    assert draw() == first
    start(seed=8)
    assert draw() != first
    assert torch.get_num_threads() == 1
    assert torch.are_deterministic_algorithms_enabled()
