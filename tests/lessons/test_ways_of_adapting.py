"""The ways of adapting a model in the lesson: what each trains, its languages, and the file of the runs."""

from dataclasses import replace

import pytest
import torch

from exformer import DecoderLM, DecoderLMConfig, merge_lora, pad
from exformer.corpora import english
from exformer.nn.lora import lora_layers
from exformer_lessons.adapting import measure, ways
from exformer_lessons.adapting.measure import at_equal_learning
from exformer_lessons.adapting.ways import (
    TAG,
    TOKENIZER,
    Way,
    adapt,
    change_beside_old,
    excesses,
    loss_of,
    measured,
    prepare,
    translate,
)
from exformer_lessons.training.programs import encode, tokenizer, training_rows

ROWS = encode(["the dog sleeps outside", "a cat likes the man"])


@pytest.fixture(scope="module", autouse=True)
def few_texts():
    """Train and measure on few texts, as it is quick."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ways, "training_rows", lambda n, seed: training_rows(400, seed))
        patch.setattr(ways, "_test_rows", lambda: (ROWS, 2.0))
        ways._allowed.cache_clear()
        yield
    ways._allowed.cache_clear()


@pytest.fixture(scope="module")
def base():
    torch.manual_seed(0)
    config = DecoderLMConfig(TOKENIZER.vocab_size, d_model=16, d_ff=32, n_heads=2, n_layers=1, dropout=0.0)
    config = replace(config, positions="rotary")
    return DecoderLM(config).eval()


def test_the_tag_is_a_word_that_no_text_contains():
    assert all(TOKENIZER.encode(word) == tokenizer().encode(word) for word in english.WORDS)
    assert TOKENIZER.vocab_size == tokenizer().vocab_size + 1 == TAG + 1
    assert all(TAG not in row for row in training_rows(400, 0))


def test_reversed_sentences():
    there = translate(ROWS, Way())
    assert TOKENIZER.decode(there[0]) == "outside sleeps dog the"
    assert [(row[0], row[-1]) for row in there] == [(row[0], row[-1]) for row in ROWS]
    assert translate(there, Way()) == [list(row) for row in ROWS]
    tagged = translate(ROWS, Way(tag=True))
    assert [row[0] for row in tagged] == [TAG, TAG]
    assert [row[1:] for row in tagged] == [row[1:] for row in there]


def test_swapped_words_are_a_permutation():
    words = ways._swapped_words()
    assert len(words) == 60
    assert set(words) == set(words.values())
    assert not set(words) & {TOKENIZER.pad_id, TOKENIZER.bos_id, TOKENIZER.eos_id, TAG}
    rows = training_rows(400, 0)
    there = translate(rows, Way(dialect="swapped"))
    assert len({tuple(row) for row in there}) == len({tuple(row) for row in rows})
    assert [len(row) for row in there] == [len(row) for row in rows]
    assert there != [list(row) for row in rows]


@pytest.mark.parametrize(
    ("way", "trained"),
    [
        (Way("prompt"), {"prompt"}),
        (Way("head"), {"output.weight"}),
        (Way("layers"), {"w_q.weight", "w_k.weight", "w_v.weight", "w_o.weight", "w_1.weight", "w_2.weight"}),
        (Way("lora", 2), {"lora_a", "lora_b"}),
    ],
    ids=lambda each: each.part if isinstance(each, Way) else "",
)
def test_what_a_way_trains(base, way, trained):
    before = {name: p.detach().clone() for name, p in base.named_parameters()}
    model = prepare(base, way)
    names = [name for name, p in model.named_parameters() if p.requires_grad]
    assert {end for end in trained for name in names if name.endswith(end)} == trained
    assert all(name.endswith(tuple(trained)) for name in names)
    if way.part != "prompt":
        assert excesses(model, Way()) == excesses(base, Way())
    optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=1.0)
    loss_of(model, ROWS).backward()
    optimizer.step()
    assert all(torch.equal(p, before[name]) for name, p in base.named_parameters())
    assert excesses(model, Way())[1] != excesses(base, Way())[1]


def test_all_weights_train(base):
    assert all(p.requires_grad for p in prepare(base, Way()).parameters())


def test_a_prompt_of_no_vectors_changes_nothing(base):
    ids = pad(ROWS, pad_id=TOKENIZER.pad_id)
    short = ways.Prompted(prepare(base, Way()), 1)
    short.prompt = torch.nn.Parameter(torch.empty(0, 16))
    torch.testing.assert_close(short(ids), base(ids))
    long = ways.Prompted(prepare(base, Way()), 3)
    assert long(ids).shape == base(ids).shape
    assert (long(ids)[:, 0] - base(ids)[:, 0]).abs().max() > 1e-3


def test_words_that_english_allows(base):
    """A model that spreads its probability over them gives them all of it; one that guesses, their share."""
    allowed = ways._allowed()
    assert allowed.shape == (2, 6, TOKENIZER.vocab_size)
    after_the_dog = allowed[0, 2]
    assert after_the_dog[TOKENIZER.encode("sleeps")[0]] == 1
    assert after_the_dog[TOKENIZER.encode("sleep")[0]] == 0
    assert allowed[0, 4, TOKENIZER.eos_id] == 1
    assert allowed[0, 5].sum() == 0  # padding

    class Judge(torch.nn.Module):
        def forward(self, ids):
            return (allowed + 1e-30).log() if self.knows else torch.zeros_like(allowed)

    judge = Judge()
    judge.knows = True
    assert measured(judge, Way())[2] == pytest.approx(1, abs=1e-3)
    judge.knows = False
    share = torch.cat([allowed[0, :5], allowed[1]]).mean().item()
    assert measured(judge, Way())[2] == pytest.approx(share, abs=1e-3)


def test_a_training_ends_with_its_schedule(base, monkeypatch):
    monkeypatch.setattr(ways, "POINTS", (0, 10, 20))
    model, curve = adapt(base, Way(steps=12), peak=0.01, seed=0)
    assert len(curve) == 3
    assert curve[-1] == measured(model, Way())
    assert adapt(base, Way(steps=12), peak=0.01, seed=0, until=curve[0][0])[1] == curve[:2]


def test_a_short_adaptation_of_each_kind(base, monkeypatch):
    monkeypatch.setattr(ways, "POINTS", (0, 10, 20))
    for way in (
        Way(steps=20),
        Way("lora", 1, steps=20),
        Way("head", steps=20),
        Way("prompt", steps=20),
        Way(old=0.5, tag=True, steps=20),
    ):
        model, curve = adapt(base, way, peak=0.01, seed=0)
        assert len(curve) == 3
        assert curve[-1] == measured(model, way)
        assert curve[-1][0] < curve[0][0]
        assert adapt(base, way, peak=0.01, seed=0)[1] == curve
        assert adapt(base, way, peak=0.01, seed=1)[1] != curve


def test_with_replay_every_text_is_old_or_new(base, monkeypatch):
    monkeypatch.setattr(ways, "POINTS", (0, 40))
    seen = []
    monkeypatch.setattr(
        ways, "_steps", lambda model, batch, **_: iter([seen.append(batch()) for _ in range(40)])
    )
    adapt(base, Way(old=0.1, tag=True), peak=0.01, seed=0)
    rows = [row for batch in seen for row in batch]
    assert [len(batch) for batch in seen] == [32] * 40
    old = [row for row in rows if row[0] != TAG]
    assert 0.07 < len(old) / len(rows) < 0.13
    assert all(english.is_grammatical(TOKENIZER.decode(row)) for row in old[:50])


def test_a_model_without_lora_is_what_it_was(base):
    model = prepare(base, Way("lora", 2))
    with torch.no_grad():
        for _, layer in lora_layers(model):
            layer.lora_b.normal_()
    assert excesses(model, Way()) != excesses(base, Way())
    for _, layer in lora_layers(model):
        layer.alpha = 0.0
    assert excesses(model, Way()) == excesses(base, Way())


def test_changes_are_compared_with_the_old_weights(base):
    model = prepare(base, Way("lora", 2))
    assert change_beside_old(model, base, Way()) == [0.0, 0.0]
    with torch.no_grad():
        for _, layer in lora_layers(model):
            layer.lora_b.normal_()
    seen = change_beside_old(model, base, Way(tag=True))
    assert min(seen) > 0.01
    assert change_beside_old(merge_lora(model), base, Way(tag=True)) == pytest.approx(seen, rel=1e-4)
    tripled = prepare(base, Way("layers"))
    with torch.no_grad():
        for parameter in tripled.parameters():
            if parameter.requires_grad:
                parameter *= 3
    assert change_beside_old(tripled, base, Way()) == pytest.approx([2.0, 2.0], rel=1e-4)


def test_equal_learning_is_interpolated():
    curve = [[4.0, 0.0], [2.0, 1.0], [3.0, 5.0], [0.0, 7.0]]
    assert at_equal_learning(curve, 4.0) is not None
    assert at_equal_learning(curve, 2.5) == pytest.approx(0.75)
    assert at_equal_learning(curve, 1.0) == pytest.approx(5 + 2 * 2 / 3, abs=1e-4)
    assert at_equal_learning(curve[:2], 1.0) is None


def test_the_file_holds_what_the_page_says():
    found = measure.runs("ways")
    assert found.keys() == measure.WAYS.keys()
    for name, way in found.items():
        assert way["rate"] == measure.best_rate(name)
        assert [len(curve) for curve in way["curves"]] == [len(ways.POINTS)] * 5
    assert found["LoRA, rank 4"]["weights"] == 9216
    lost = {name: [at_equal_learning(curve, 1.0) for curve in way["curves"]] for name, way in found.items()}
    for rank in (1, 4, 16, 64):
        five = lost[f"LoRA, rank {rank}"]
        assert min(five) > 5.25 > 4.3 > max(lost["all weights"])
        assert all(a < b < c for a, b, c in zip(lost["all weights"], lost["layers"], five, strict=True))
    kept = [curve[-1][1] for curve in found["tag and replay"]["curves"]]
    alone = [curve[-1][1] for curve in found["tag"]["curves"]]
    assert max(kept) < 0.5 < 6.5 < min(alone)
