"""The wrong imports of lesson 19: all load, each differs as it should, and the file of what was measured."""

import re

import pytest
import torch

from exformer import load_model
from exformer_lessons.pretrained_weights import measure
from exformer_lessons.pretrained_weights.grader import _checks
from exformer_lessons.pretrained_weights.imports import (
    REPAIRS,
    WINDOW,
    WRONG,
    largest_gaps,
    last_layer,
    lettered,
    repaired,
    wrong_import,
)
from exformer_lessons.pretrained_weights.mistakes import KINDS, check
from exformer_lessons.pretrained_weights.pictures import model_of_suspects

CHAR = "shakespeare-char"


@pytest.fixture(scope="module")
def model():
    return load_model(CHAR).model


def test_the_right_import_is_the_model(model):
    assert largest_gaps(wrong_import(model, "right"), model, 5) == 0


@pytest.mark.parametrize("name", [*WRONG, WINDOW])
def test_a_wrong_import_has_the_right_shapes(model, name):
    before = {key: p.clone() for key, p in model.state_dict().items()}
    wrong = wrong_import(model, name)
    assert {key: p.shape for key, p in wrong.state_dict().items()} == {
        key: p.shape for key, p in before.items()
    }
    assert all(torch.equal(p, before[key]) for key, p in model.state_dict().items())


@pytest.mark.parametrize("name", WRONG)
def test_one_token_shows_all_but_three(model, name):
    wrong = wrong_import(model, name)
    unseen = name in ("q and k exchanged", "rotary halves", "rotary base")
    assert (largest_gaps(wrong, model, 1) == 0) == unseen
    assert largest_gaps(wrong, model, 2) > 0.1


@pytest.mark.parametrize("mistake", REPAIRS)
def test_a_repair_undoes_its_own_mistake_and_no_other(model, mistake):
    left = [largest_gaps(repaired(wrong_import(model, mistake), repair), model, 2) for repair in REPAIRS]
    assert [repair for repair, gap in zip(REPAIRS, left, strict=True) if gap < 0.1] == [mistake]
    assert left[list(REPAIRS).index(mistake)] == 0


def test_a_repair_that_there_is_not(model):
    expected = "there is no repair of 'typo': expected rotary base, rotary halves, q and k exchanged"
    with pytest.raises(ValueError, match=expected):
        repaired(model, "typo")


def test_a_repeated_token_hides_the_scores(model):
    wrong, ids = wrong_import(model, "q and k exchanged"), torch.full((1, 9), 7)
    torch.testing.assert_close(wrong(ids), model(ids))
    torch.testing.assert_close(model(ids)[:, -1], model(ids[:, :1])[:, -1])


def test_the_window_shows_at_the_first_token_beyond_it(model):
    wrong = wrong_import(model, WINDOW)
    assert largest_gaps(wrong, model, 32) == 0 < largest_gaps(wrong, model, 33)


def test_a_layer_left_out_adds_nothing(model):
    wrong = wrong_import(model, "right")
    wrong.load_state_dict(last_layer(model.state_dict(), "left out"))
    x = torch.randn(2, 3, 128)
    assert torch.equal(wrong.layers[-1](x), x)


@pytest.mark.parametrize(("how", "size"), [("0.02", 0.02), ("default", 128**-0.5 / 3**0.5)])
def test_a_new_layer_has_the_size_that_is_said(model, how, size):
    given = model.state_dict()
    new, other = last_layer(given, how, seed=1), last_layer(given, how)
    w_v, w_1 = "layers.3.self_attention.w_v.weight", "layers.3.feed_forward.w_1.weight"
    assert new[w_v].std().item() == pytest.approx(size, rel=0.02)
    assert new["layers.3.norm_attention.weight"].unique().tolist() == [1.0]
    assert torch.equal(new[w_1.replace("3", "2")], given[w_1.replace("3", "2")])
    assert not torch.equal(new[w_1], other[w_1])


def test_a_mistake_that_there_is_not(model):
    with pytest.raises(
        ValueError, match=re.escape("there is no mistake 'typo': expected right, window of 32, ids")
    ):
        wrong_import(model, "typo")


def test_each_loss_is_that_of_half_windows(model):
    ids = torch.arange(200) % 60
    nats = measure.token_nats(model, ids)
    assert nats.shape == (5, 32)
    alone = -model(ids[None, 32:96])[0, 63].log_softmax(-1)[ids[96]]
    assert nats[1, 31].item() == pytest.approx(alone.item(), abs=1e-5)


def test_the_file_has_every_import():
    for shipped, found in measure.runs("losses").items():
        assert found.keys() - {"parts"} == {"right", WINDOW, *WRONG}
        assert all(found["right"] < found[name] for name in (*WRONG, WINDOW)), shipped
    assert measure.FILE.stat().st_size < 100_000
    assert sorted(lettered()) == list("ABCDEFGHIJKL")


def test_the_gaps_are_those_of_the_file(model):
    found = measure.runs("gaps")[CHAR]
    for name in ("rotary halves", "ReLU for ReLU²"):
        assert largest_gaps(wrong_import(model, name), model, 3) == pytest.approx(found[name]["3"], rel=0.01)


def test_every_kind_is_planted():
    assert {check(*case) for case in _checks().values()} == set(KINDS)


def test_each_suspect_is_in_the_picture():
    letters = {name: letter for letter, name in lettered().items()}
    shown = [each.text for each in model_of_suspects(letters).texts]
    assert sorted(text for text in shown if len(text) == 1) == sorted(letters[name] for name in WRONG)
    del letters["rotary base"]
    with pytest.raises(ValueError, match="no letter for rotary base: give one for each mistake"):
        model_of_suspects(letters)
