"""A claim holds with every value at the edge of its tolerance; its condition is a function of its values."""

import ast
import builtins
import itertools
import json
from pathlib import Path

import pytest

from exformer_lessons.notebook import key_of, load, paths
from exformer_lessons.tolerances import read_tags


def condition(claim):
    """Return a claim's own condition, from its notebook; it may use its values, builtins and math."""
    nodes = list(ast.walk(claim.keyword("holds")))
    own = {each.arg for each in nodes if isinstance(each, ast.arg)}
    own |= {each.id for each in nodes if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)}
    others = {each.id for each in nodes if isinstance(each, ast.Name)} - own - set(vars(builtins)) - {"math"}
    assert not others, f"{claim.claim_id}: holds uses {', '.join(sorted(others))}: make it a value"
    return claim.condition()


def edges(values, tolerances):
    """Yield the values with each that has a tolerance at its lower and upper edge, and as it is."""
    named = [name for name in values if name in tolerances]
    for signs in itertools.product((-1, 0, 1), repeat=len(named)):
        moved = {
            name: values[name] + sign * tolerances[name] for name, sign in zip(named, signs, strict=True)
        }
        yield values | moved


def complaints(lesson):
    """Return what is wrong with the claims of a notebook."""
    found = []
    for claim in lesson.claims:
        if claim.kind == "shown":
            continue
        if not claim.says:
            found.append(f"{claim.claim_id}: says must be a plain string, its figures among the values")
        values = claim.stored.get("values", {})
        given = {each.arg for each in claim.call.keywords} - {"holds", "says", "budget"}
        if set(values) != given:
            found.append(f"{claim.claim_id}: the stored values are others: make notebooks NB={lesson.key}")
            continue
        holds, asked = condition(claim), {each.arg for each in claim.keyword("holds").args.args}
        for moved in edges(values, read_tags(claim.cell.tags)):
            if not holds(**{name: moved[name] for name in asked}):
                found.append(f"{claim.claim_id} does not hold for {moved}")
                break
    return found


@pytest.mark.parametrize("path", paths(), ids=key_of)
def test_claims_at_the_edges_of_their_tolerances(path: Path) -> None:
    assert complaints(load(path)) == []


def lesson_with(tmp_path, source, values, *tags):
    cell = {"cell_type": "code", "source": source, "metadata": {"tags": [f"tolerance:{tag}" for tag in tags]}}
    kept = {"kind": "claim", "id": "A01", "says": "", "values": values}
    cell["outputs"] = [{"output_type": "display_data", "data": {}, "metadata": {"exformer": kept}}]
    path = tmp_path / "one.ipynb"
    path.write_text(json.dumps({"cells": [cell]}), encoding="utf-8")
    return load(path)


CLAIM = 'claim("A01", holds=lambda a, b: a > b + 0.3, says="{a} {b}", a=a, b=b)'


@pytest.mark.parametrize(
    ("values", "tags", "right"),
    [
        ({"a": 0.9, "b": 0.5}, [], True),
        ({"a": 0.7, "b": 0.5}, [], False),
        ({"a": 0.9, "b": 0.5}, ["a=0.09"], True),
        ({"a": 0.9, "b": 0.5}, ["a=0.11"], False),
        ({"a": 0.9, "b": 0.5}, ["b=0.11"], False),
        ({"a": 0.9, "b": 0.5}, ["a=0.06", "b=0.06"], False),  # each alone would do
        ({"a": 0.9, "b": 0.5}, ["a=0.04", "b=0.04", "decimals=1"], True),
        ({"a": 0.9}, [], False),
    ],
)
def test_a_claim_too_near_to_its_edge(tmp_path, values, tags, right) -> None:
    assert (complaints(lesson_with(tmp_path, CLAIM, values, *tags)) == []) == right


def test_a_condition_that_holds_only_at_its_edges(tmp_path) -> None:
    source = 'claim("A01", holds=lambda a: abs(a - 0.5) > 0.01, says="{a}", a=a)'
    assert complaints(lesson_with(tmp_path, source, {"a": 0.5}, "a=0.1")) != []


def test_names_in_a_condition(tmp_path) -> None:
    source = CLAIM.replace("0.3", "math.sqrt(max(least, 0.01))")
    lesson = lesson_with(tmp_path, source, {"a": 0.9, "b": 0.5})
    with pytest.raises(AssertionError, match="holds uses least: make it a value"):
        complaints(lesson)
    lesson = lesson_with(tmp_path, source.replace("least", "0.01"), {"a": 0.9, "b": 0.5})
    assert complaints(lesson) == []
