"""What the lesson on preferences trains with: judges, samples, votes, and the runs."""

import math
from dataclasses import replace
from statistics import median

import pytest
import torch

from exformer_lessons.preferences import free_logits, judging, measure, results
from exformer_lessons.training.programs import Program, encode, new_model, tokenizer


@pytest.fixture(scope="module")
def model():
    return new_model(replace(Program(), d_model=16), seed=0).eval()


def test_judges_by_hand():
    texts = ["the dogs sleep", "the dogs sleeps", "", None, "the dogs <s> sleep"]
    assert [judging.is_right(text) for text in texts] == [True, False, False, False, False]
    assert [judging.words_of(text) for text in texts[:4]] == [3, 3, 0, judging.LONGEST]
    assert [judging.words_if_right(text) for text in texts[:2]] == [3, 0]
    assert judging.of_texts(["the dogs sleep", "the dogs sleep", "dog", None]) == {
        "right": 2,
        "words": (3 + 3 + 1 + judging.LONGEST) / 4,
    }


def test_samples_end_with_padding_and_come_from_the_model(model):
    tok = tokenizer()
    ids = judging.sample_ids(model, 300, rng=torch.Generator().manual_seed(1))
    assert (ids[:, 0] == tok.bos_id).all()
    assert ids.size(1) <= judging.LONGEST + 1
    after = ((ids == tok.eos_id).cumsum(dim=1) - (ids == tok.eos_id).int()) > 0
    assert (ids[after] == tok.pad_id).all()
    first = torch.bincount(ids[:, 1], minlength=tok.vocab_size) / 300
    p = model(torch.tensor([[tok.bos_id]]))[0, 0].softmax(dim=0)
    assert (first - p).abs().max() < 0.1
    texts = judging.texts_of(ids)
    assert [text is None for text in texts] == [tok.eos_id not in row for row in ids.tolist()]


def test_log_probability_of_a_text_by_hand(model):
    row = encode(["the dog sleeps"])[0]
    steps = model(torch.tensor([row])).log_softmax(dim=-1)[0]
    by_hand = sum(steps[t, row[t + 1]].item() for t in range(len(row) - 1))
    padded = torch.tensor([[*row, 0, 0]])
    assert judging.log_p(model, padded).item() == pytest.approx(by_hand, abs=1e-5)


def test_padding_after_a_row_without_an_end_does_not_count(model):
    rows = [row[:-1] for row in encode(["the dog sleeps", "the dogs near the houses sleep"])]
    together = judging.pair_log_p(model, rows)
    alone = torch.cat([judging.pair_log_p(model, [row]) for row in rows])
    assert together.tolist() == pytest.approx(alone.tolist(), abs=1e-4)


def test_probability_of_a_verb_is_that_of_the_last_token(model):
    pairs = judging.verb_pairs(7, seed=1)
    each = [model(torch.tensor([row[:-1]]))[0, -1].softmax(dim=0)[row[-1]].item() for row in pairs[0]]
    assert measure.probability_of_verb(model, pairs) == pytest.approx(sum(each) / 7, rel=1e-3)


def test_the_exact_vote_by_enumeration():
    p = torch.tensor([0.6, 0.4, 0.25], dtype=torch.float64)
    for n in (1, 3, 5):
        each = [
            sum(
                torch.prod(torch.where(torch.tensor(votes), q, 1 - q)).item()
                for votes in torch.cartesian_prod(*[torch.tensor([False, True])] * n).reshape(-1, n).tolist()
                if sum(votes) > n / 2
            )
            for q in p
        ]
        assert measure.vote(p, n) == pytest.approx(sum(each) / 3)
    assert measure.vote(p[:1], 3) == pytest.approx(0.648)


def test_plain_steps_are_those_of_gradient_descent(model, monkeypatch):
    monkeypatch.setattr(judging, "JUDGED", judging.GROUP)
    for plain, largest in ((True, 1.0), (False, 9.0)):  # clipped to norm 1; Adam's step has no such limit
        tuned = judging.policy_gradient(model, judging.words_of, rate=1.0, seed=0, plain=plain)
        moved = [a - b for a, b in zip(tuned.parameters(), model.parameters(), strict=True)]
        assert (torch.stack([m.norm() for m in moved]).norm() <= largest + 1e-4) == plain


def test_a_price_is_paid_for_distance_alone(model, monkeypatch):
    monkeypatch.setattr(judging, "JUDGED", 2 * judging.GROUP)
    plain = judging.policy_gradient(model, judging.words_of, rate=1e-3, seed=0)
    dear = judging.policy_gradient(model, judging.words_of, rate=1e-3, seed=0, kl=1e6)
    free = judging.policy_gradient(model, judging.words_of, rate=1e-3, seed=0, kl=0.0)
    weights = [next(m.parameters()) for m in (plain, dear, free)]
    assert torch.equal(weights[0], weights[2])
    assert not torch.equal(weights[0], weights[1])


def test_dpo_wins_the_pairs_it_trains_on(model):
    pairs = judging.verb_pairs(40, seed=1)
    assert all(a[:-1] == b[:-1] and a[-1] != b[-1] for a, b in zip(*pairs, strict=True))
    before = judging.pairs_won(model, model, pairs)
    assert before["loss"] == pytest.approx(0.6931, abs=1e-4)
    tuned = judging.dpo(model, pairs, rate=3e-3, seed=0, matched=True)
    after = judging.pairs_won(tuned, model, pairs)
    assert after["won"] > 0.9 > before["won"]
    assert after["loss"] < 0.5


def test_texts_with_the_same_number_belong_together(model, monkeypatch):
    asked = []
    of_rows = judging.pair_log_p
    monkeypatch.setattr(judging, "pair_log_p", lambda m, rows: asked.append(rows) or of_rows(m, rows))

    def stop(step, model):
        raise KeyboardInterrupt

    pairs = judging.verb_pairs(40, seed=1)
    for matched in (True, False):
        asked.clear()
        with pytest.raises(KeyboardInterrupt):
            judging.dpo(model, pairs, rate=0.0, seed=0, matched=matched, watch=stop)
        ours, theirs = asked[:2]
        assert all(a[:-1] == b[:-1] for a, b in zip(ours, theirs, strict=True)) == matched


def test_asking_keeps_right_texts_and_a_price_some_wrong_ones(model, monkeypatch):
    """A stand-in generates a right text in every fourth; its optimum at a price is known."""
    texts = ["the dogs sleep", "dog", None, ""]
    monkeypatch.setattr(judging, "sample_texts", lambda _, n, **__: texts * (n // 4))
    kept, each = judging.ask(model, 400)
    assert kept == texts[:1] * 400
    assert each == pytest.approx(4)
    kept, each = judging.ask(model, 2_000, price=0.5)
    z = 0.25 + 0.75 * math.exp(-2)
    assert sum(map(judging.is_right, kept)) / 2_000 == pytest.approx(0.25 / z, abs=0.03)
    assert each == pytest.approx(1 / z, rel=0.05)
    texts[0] = "dog"
    with pytest.raises(ValueError, match="only 0 are kept"):
        judging.ask(model, 10)


def test_a_model_is_at_no_distance_from_itself(model):
    other = new_model(replace(Program(), d_model=16), seed=1).eval()
    assert judging.distance(model, model) == 0
    assert judging.distance(model, other) > 0


@pytest.mark.parametrize("scale", [True, False])
def test_a_step_of_two_free_logits_by_hand(scale, monkeypatch):
    monkeypatch.setattr(free_logits, "JUDGED", judging.GROUP)
    rewards = torch.tensor([1.0, 0.0], dtype=torch.float64)
    trained = free_logits.reinforce_free_logits(
        torch.zeros(2, dtype=torch.float64), rewards, rate=0.5, seed=3, scale=scale, plain=True
    )
    half, rng = torch.full((2,), 0.5, dtype=torch.float64), torch.Generator().manual_seed(3)
    right = int((torch.multinomial(half, 128, replacement=True, generator=rng) == 0).sum())
    pull = right / 128 * (1 - right / 128)  # on the first logit; on the second, minus as much
    if scale:
        pull /= math.sqrt(right * (128 - right) / (128 * 127))
    assert trained[0].item() == pytest.approx(1 / (1 + math.exp(-2 * 0.5 * pull)))


def test_free_logits_begin_with_the_frequencies_of_texts(model, monkeypatch):
    texts = ["the dogs sleep", "dog", "dog", None]
    monkeypatch.setattr(free_logits, "sample_texts", lambda _, n, **__: texts * (n // 4))
    logits, rewards = free_logits.texts_as_logits(model, 2, seed=0)
    assert logits.softmax(dim=0).tolist() == pytest.approx([0.25, 0.5, 0.25])
    assert rewards.tolist() == [1, 0, 0]
    assert free_logits.different(torch.tensor([0.2, 0.1, 0.7]), rewards, seed=0) == 1
    assert free_logits.different(torch.ones(400), torch.ones(400), seed=0) > 300
    with pytest.raises(ValueError, match="at least 1, in thousands of texts, got 0"):
        free_logits.texts_as_logits(model, 0, seed=0)


def test_a_table_narrows_more_than_the_network():
    def most(lowest, runs):
        return max(run["different"] for five in runs for run in five if run["right"] >= lowest)

    table = [five for name, five in measure.runs("free").items() if name != "before"]
    assert most(0.95, table) <= 20
    assert most(950, measure.runs("policy").values()) > 300


def test_the_verb_gains_while_right_texts_vanish():
    found = measure.runs("verbs")
    for course in found["DPO 0.001"] + found["right verbs 0.001"]:
        first, last = course[0], course[-1]
        assert first["won"] < 0.4 < 0.85 < last["won"]
        assert last["verb"] > 5 * first["verb"]
        assert last["right"] < first["right"] / 2


def test_the_file_holds_what_the_page_says():
    rows = results.rows()
    assert rows["policy gradient"][0] > 990 > 30 > rows["policy gradient"][1]
    winners = measure.runs("winners")
    spans = {name: [run["different"] for run in five] for name, five in winners.items()}
    assert [(min(span), max(span)) for span in spans.values()] == [(5, 17), (6, 50)]
    best = [rows.pop(name) for name in list(rows) if name.startswith("asked") or "optimum" in name]
    base = rows.pop("as it is")
    assert all(row[1] == base[1] for row in best)
    assert all(row[1] < base[1] and row[3] < best[0][3] for row in rows.values())
    assert max(rows.values(), key=lambda row: row[1]) == rows["fine-tuned on accepted texts"]
    assert round(rows["policy gradient"][3]) == -25 < round(rows["DPO (below)"][3]) == -6
    assert all(row[2] < base[2] for row in (*rows.values(), *best))
    assert round(measure.runs("base")["grammar"]["words"], 1) == 9.6
    each = [run["each"] for run in measure.runs("optimum")["0"]]
    assert 7 < median(each) < 8
