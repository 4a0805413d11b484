"""Numbers of outputs are compared as numbers, within tolerances that tags name, and never more than that."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from exformer_lessons.tolerances import NUMBER, forgive, read_tags

ROOT = Path(__file__).parents[2]


def printed(text):
    return [{"output_type": "stream", "name": "stdout", "text": text}]


def passes(new, old, *tags):
    """Say whether a text that is printed now passes for the stored one."""
    outputs, unused = forgive(printed(new), printed(old), read_tags([f"tolerance:{tag}" for tag in tags]))
    return outputs == printed(old) and not unused


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("right: 0.97, wrong -0.3 or −2", ["0.97", "-0.3", "−2"]),
        ("1,234.5 of 12,000", ["1,234.5", "12,000"]),
        ("1e-05 3.2E+10 nan -inf", ["1e-05", "3.2E+10"]),
        ("w2 and 1.2.3 and nano", []),
        ("97% and 97.5 %.", ["97", "97.5"]),
        ("[0.1, 0.2,0.3]", ["0.1", "0.2", "0.3"]),
        ("3-5 at 16.", ["3", "5", "16"]),
        ("1,2345", ["1", "2345"]),
    ],
)
def test_what_a_number_is(text, numbers) -> None:
    assert NUMBER.findall(text) == numbers


@pytest.mark.parametrize(
    ("new", "old", "tag"),
    [
        ("right 0.95", "right 0.97", "decimals=0.02"),
        ("right 0.99", "right 0.97", "decimals=0.02"),
        ("right 1.00\n", "right 0.99\n", "decimals=0.02"),
        ("95% of 12", "97% of 12", "percent=2"),
        ("95 %", "97 %", "percent=2"),
        ("-0.01", "0.01", "decimals=0.02"),
        ("a −0.01 b", "a -0.03 b", "decimals=0.02"),
        ("1e-05", "3e-05", "decimals=2e-5"),
        ("12,034 tokens", "12,000 tokens", "integers=50"),
        ("998 tokens, 3 more", "1,030 tokens, 3 more", "integers=50"),
        ("LSTM    9.98   12", "LSTM   10.02   12", "decimals=0.1"),
        ("10.02   | 12", "9.98    | 12", "decimals=0.1"),
        ("nan 0.95", "nan 0.97", "decimals=0.02"),
    ],
)
def test_numbers_within_their_tolerance(new, old, tag) -> None:
    assert passes(new, old, tag)
    assert passes(old, new, tag)
    name, size = tag.split("=")
    assert not passes(new, old, f"{name}={0.9 * float(size) / 4}")


def test_the_value_of_a_cell_and_another_number_of_outputs() -> None:
    new, old = ([{"output_type": "execute_result", "data": {"text/plain": x}}] for x in ("0.96", "0.97"))
    assert forgive(new, old, {"decimals": 0.02}) == (old, set())
    assert forgive([*new, *old], old, {"decimals": 0.02})[0] == [*old, *old]


def test_words_that_a_processor_decides() -> None:
    assert passes("on Monday before before before\n", "on Monday before 59 people .\n", "words=3")
    assert not passes("on Monday before before before\n", "on Monday before 59 people .\n", "words=2")
    assert not passes("on Monday\nbefore", "on Monday", "words=0.5")


@pytest.mark.parametrize(
    ("new", "old", "tags"),
    [
        ("right 0.94", "right 0.97", ["decimals=0.02"]),
        ("right 0.97", "right 0.98", []),
        ("12 of 0.97", "13 of 0.97", ["decimals=2"]),  # integers exactly, unless they are named
        ("97%", "98%", ["decimals=2"]),
        ("0.97", "0.98", ["integers=2"]),
        ("97", "98", ["percent=2"]),
        ("0.97 0.5", "0.97", ["decimals=1"]),
        ("0.97", "0.97 0.5", ["decimals=1"]),
        ("0.97", "0.97\n0.5", ["decimals=1"]),
        ("0.97\n0.5", "0.97", ["decimals=1"]),
        ("word 0.96", "other 0.97", ["decimals=1"]),
        ("0.96 word", "0.97 words", ["decimals=1"]),
        ("0.96%", "0.97", ["decimals=1"]),
        ("a  b 0.96", "a b 0.97", ["decimals=1"]),
        ("a  b", "a b", []),
        ("  a", "a", []),
        ("nan", "0.97", ["decimals=1"]),
        ("0.97", "nan", ["decimals=1"]),
        ("inf", "0.97", ["decimals=1"]),
        ("0.96", "0.97\n", ["decimals=1"]),
        ("5.5", "5", ["decimals=1"]),
    ],
)
def test_differences_beyond_a_tolerance(new, old, tags) -> None:
    assert not passes(new, old, *tags)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("12 words", "decimals=0.1"),
        ("0.97", "integers=1"),
        ("0.97", "percent=1"),
        ("no number", "decimals=0.1"),
    ],
)
def test_a_tolerance_that_no_number_uses(text, tag) -> None:
    assert not passes(text, text, tag)


@pytest.mark.parametrize(
    "tags",
    [
        ["tolerance:decimals"],
        ["tolerance:=0.1"],
        ["tolerance:decimals=0"],
        ["tolerance:decimals=-1"],
        ["tolerance:decimals=5%"],
        ["tolerance:decimals=0.1", "tolerance:decimals=0.2"],
    ],
)
def test_errors_of_tags(tags) -> None:
    with pytest.raises(ValueError, match="must be tolerance:name=size"):
        read_tags(tags)


def test_other_tags() -> None:
    assert read_tags(["timing", "tolerance:did_instead=0.02", "tolerance:a=1e-3"]) == {
        "did_instead": 0.02,
        "a": 0.001,
    }


SAYS = "At {n} words attention keeps {attention:.0%}, one vector {one:.0%}."


def card(says=SAYS, **values):
    values = {"n": 12, "attention": 0.97, "one": 0.1, "far": 0.5} | values
    line = says.format(**values)
    return [
        {
            "output_type": "display_data",
            "data": {"text/plain": f"claim A01 | {line}", "text/html": f"<div>{line}</div>"},
            "metadata": {"exformer": {"kind": "claim", "id": "A01", "says": says, "values": values}},
        }
    ]


def same_card(new, *tags):
    outputs, unused = forgive(new, card(), read_tags([f"tolerance:{tag}" for tag in tags]))
    return outputs[0]["data"] == card()[0]["data"] and not unused


def test_the_tolerance_of_a_value_of_a_claim() -> None:
    assert same_card(card(attention=0.951), "attention=0.02")
    assert not same_card(card(attention=0.949), "attention=0.02"), "the value counts, not its digits"
    assert not same_card(card(one=0.11), "attention=0.02"), "another value"
    assert not same_card(card(attention=0.951))
    assert same_card(card(attention=0.9701)), "without a tolerance: as it is written"
    assert same_card(card(n=13), "n=1")
    assert not same_card(card(n=13), "attention=0.02")
    assert not same_card(card(attention=float("nan")), "attention=0.02")


def test_a_value_that_the_sentence_does_not_show() -> None:
    assert same_card(card(far=0.51), "far=0.02")
    assert not same_card(card(far=0.53), "far=0.02")
    assert not same_card(card(far=1)), "another kind of value"
    assert not same_card(card(far="nan"), "far=0.02")


def test_a_tolerance_of_no_value() -> None:
    assert not same_card(card(), "other=0.1")
    assert not same_card(card(says=SAYS.replace("keeps", "has"), attention=0.96), "attention=0.02")
    assert not same_card(card(says=SAYS.replace("keeps", "has")), "attention=0.02")
    new = [card()[0] | {"data": card()[0]["data"] | {"text/html": "<b>another card</b>"}}]
    assert not same_card(new, "attention=0.02")


CELL = """
from exformer_lessons.claims import claim
claim("A01", holds=lambda share: share > 0.5, says="The share is {share:.0%}.", share=SHARE)
print("other: 0.25")
"""
CASES = {
    "within": (0.96, ["share=0.02"]),
    "beyond": (0.94, ["share=0.02"]),
    "untagged": (0.96, []),
    "unused": (0.97, ["shares=0.02"]),
}


def stored(share, tags):
    """Return a cell that found a share of 97% when its outputs were stored."""
    import nbformat

    output = card("The share is {share:.0%}.", share=0.97)[0]
    output["metadata"]["exformer"]["values"] = {"share": 0.97}
    style = '<div class="claim" id="claim-A01" style="border-left: 4px solid #1f7a5c; padding: 0.5em 1em; '
    card_html = f'{style}margin: 0.75em 0"><strong>Claim A01</strong> The share is 97%.</div>'
    output["data"]["text/html"] = card_html
    return nbformat.v4.new_code_cell(
        CELL.replace("SHARE", str(share)),
        metadata={"tags": [f"tolerance:{tag}" for tag in tags]},
        outputs=[nbformat.from_dict(each) for each in (output, *printed("other: 0.25\n"))],
        execution_count=1,
    )


def test_tolerances_in_nbval(tmp_path) -> None:
    """The whole way: cells that were stored with 97% are executed again with other shares."""
    pytest.importorskip("nbval")
    import nbformat

    notebook = nbformat.v4.new_notebook(cells=[stored(*case) for case in CASES.values()])
    nbformat.write(notebook, tmp_path / "lesson.ipynb")
    settings = (ROOT / "notebooks" / "conftest.py").read_text(encoding="utf-8")
    (tmp_path / "conftest.py").write_text(settings, encoding="utf-8")
    options = ["--nbval", "--nbval-current-env", "-q", "-rA", "-p", "no:cacheprovider", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", *options], capture_output=True, text=True, cwd=tmp_path
    )
    outcomes = re.findall(r"^(PASSED|FAILED) lesson\.ipynb::Cell (\d)", done.stdout, flags=re.M)
    found = {list(CASES)[int(number)]: outcome == "PASSED" for outcome, number in outcomes}
    wanted = {"within": True, "beyond": False, "untagged": False, "unused": False}
    assert found == wanted, done.stdout + done.stderr
    assert "no number asks for the tolerance of shares" in done.stdout
