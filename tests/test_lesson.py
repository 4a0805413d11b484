"""Set-up, claims and source of a lesson."""

import math
import random

import numpy as np
import pytest
import torch

from exformer.lessons import claims, source
from exformer.lessons.claims import ClaimError, at_least, at_most, claim
from exformer.lessons.setup import start
from exformer.lessons.source import show_source


@pytest.fixture
def shown(monkeypatch):
    things = []
    for module in (claims, source):
        monkeypatch.setattr(module, "render", things.append)
    return things


@pytest.fixture
def _settings_put_back():
    threads, exact = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    yield
    torch.set_num_threads(threads)
    torch.use_deterministic_algorithms(exact)
    torch.set_printoptions(profile="default")


def test_a_claim_is_one_line_and_one_card(shown) -> None:
    claim("A15", holds=torch.tensor(True), says="spread <32> & more ")
    assert repr(shown[0]) == "claim A15 | spread <32> & more"
    card = shown[0]._repr_html_()
    assert 'id="claim-A15"' in card
    assert "spread &lt;32&gt; &amp; more</div>" in card


def test_a_claim_that_does_not_hold_stops_the_lesson(shown) -> None:
    with pytest.raises(ClaimError, match="claim A15 does not hold: spread 31"):
        claim("A15", holds=31 > 32, says="spread 31")
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
def test_a_claim_of_another_form_is_refused(claim_id, says, message) -> None:
    with pytest.raises(ValueError, match=message):
        claim(claim_id, holds=True, says=says)


def test_a_number_within_its_bound_is_shown_as_the_bound() -> None:
    assert at_least(0.97, 0.9) == at_least(0.9, 0.9) == "90% or more"
    assert at_most(0.03, 0.1) == at_most(0.1, 0.1) == "10% or less"
    assert at_least(2.41, 2.0, ".1f") == "2.0 or more"
    assert at_most(1.612, 1.7, ".2f") == "1.70 or less"


def test_a_number_outside_its_bound_is_shown_itself() -> None:
    assert at_least(0.87, 0.9) == "87%"
    assert at_most(0.13, 0.1) == "13%"
    assert at_least(math.nan, 0.9) == at_most(math.nan, 0.1) == "nan%"
    assert at_most(1.812, 1.7, ".2f") == "1.81"


@pytest.mark.parametrize(
    ("tell", "bound", "spec", "shown"),
    [(at_most, 0.104, ".0%", "10%"), (at_least, 0.896, ".0%", "90%"), (at_least, 2.04, ".1f", "2.0")],
)
def test_a_bound_that_is_shown_rounded_is_refused(tell, bound, spec, shown) -> None:
    for value in (0.0, bound, 9.0):
        with pytest.raises(ValueError, match=f"bound .{bound}. must have no more digits .* got '{shown}'"):
            tell(value, bound, spec)


def test_bounds_of_every_form_are_shown() -> None:
    assert at_most(0.1, 0.29) == "29% or less"  # 100 · 0.29 is not 29 in floating point
    assert at_most(5.0, 12_000.0, ",.0f") == "12,000 or less"
    assert at_least(0.2, 0.0, ".1f") == "0.0 or more"
    assert at_least(0.2, -0.125, ".1%") == "-12.5% or more"


class Sample:
    """A class to be shown."""

    size = 3

    def double(self) -> int:
        """Double the size."""
        return 2 * self.size


def test_source_is_shown_without_docstrings(shown) -> None:
    show_source(Sample)
    assert repr(shown[0]) == (
        "class Sample:\n    size = 3\n\n    def double(self) -> int:\n        return 2 * self.size"
    )
    assert shown[0]._repr_markdown_() == f"```python\n{shown[0]!r}\n```"


def test_source_is_shown_with_docstrings_where_wanted(shown) -> None:
    show_source(Sample.double, docstring=True)
    text = repr(shown[0])
    assert text.startswith("def double")  # not indented
    assert '"""Double the size."""' in text


@pytest.mark.usefixtures("_settings_put_back")
def test_a_lesson_starts_the_same_each_time() -> None:
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
