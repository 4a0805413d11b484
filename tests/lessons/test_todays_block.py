"""The blocks of lesson 17 and the facts: equal sizes, the floor, the sweep, and the file of their runs."""

import json
import math
from dataclasses import replace
from statistics import mean, stdev

import pytest
import torch

from exformer import DecoderLM, cross_entropy
from exformer.nn.mixture_of_experts import balance_loss, record_routing
from exformer_lessons.facts import N_FACTS, Facts
from exformer_lessons.todays_block import blocks, facts, long_context, measure


@pytest.mark.parametrize("switches", [(), *((name,) for name in blocks.SWITCHES), blocks.LLAMA], ids="+".join)
def test_blocks_of_equal_size(switches):
    wanted = blocks.n_parameters(DecoderLM(blocks.block()))
    assert blocks.n_parameters(DecoderLM(blocks.block(switches))) == pytest.approx(wanted, rel=4e-3)


def test_a_width_that_is_given_stays():
    assert blocks.block(blocks.LLAMA, d_ff=40).d_ff == 40


def test_every_sentence_is_read_once():
    rows = [row for batch in blocks._batches(3) for row in batch.tolist()]
    assert sorted(tuple(id for id in row if id) for row in rows) == sorted(map(tuple, blocks.training_rows()))
    first, again, other = (blocks._batches(seed)[0] for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert first.shape != other.shape or not torch.equal(first, other)


def test_the_excess_is_the_loss_above_that_of_the_grammar():
    torch.manual_seed(0)
    model = DecoderLM(blocks.block(blocks.LLAMA)).train()
    ids, floor = blocks.test_batch()
    with torch.no_grad():
        loss = cross_entropy(model(ids[:, :-1]), ids[:, 1:], pad_id=0).item()
    assert blocks.excess(model) == pytest.approx(loss - floor, abs=1e-5)
    assert model.training
    assert 2 < floor < 2.2 < 3 < loss


def test_a_short_training_learns():
    model, seconds = blocks.learn(blocks.block(blocks.LLAMA), rate=0.01, seed=0, steps=12)
    assert blocks.excess(model) < blocks.excess(DecoderLM(blocks.block(blocks.LLAMA))) - 0.3
    assert seconds > 0


def test_facts_are_as_frequent_as_said():
    corpus = Facts()
    assert corpus.p.sum().item() == pytest.approx(1)
    assert (corpus.p[0] / corpus.p[7]).item() == pytest.approx(8**1.5)
    assert len({tuple(key) for key in corpus.keys.tolist()}) == N_FACTS
    keys = torch.cat([keys for keys, _ in corpus.batches(20, size=512, seed=1)])
    found = (keys == corpus.keys[0]).all(dim=1).double().mean().item()
    assert found == pytest.approx(corpus.p[0].item(), abs=0.02)


def test_values_belong_to_their_keys():
    corpus = Facts()
    known = dict(zip(map(tuple, corpus.keys.tolist()), corpus.values.tolist(), strict=True))
    keys, values = next(corpus.batches(1, size=99, seed=2))
    assert [known[tuple(key)] for key in keys.tolist()] == values.tolist()


def test_the_expected_loss_and_loads_by_hand():
    torch.manual_seed(1)
    model, corpus = DecoderLM(facts.memory(8, n_experts=4)).eval(), Facts()
    excess, loads = facts.excess(model, corpus)
    with torch.no_grad(), record_routing() as routing:
        logits = model(corpus.keys)[:, -1]
    p_right = logits.log_softmax(-1).gather(1, corpus.values[:, None])[:, 0]
    assert excess == pytest.approx(-(corpus.p * p_right).sum().item(), rel=1e-5)
    chosen = routing[0][:, -1].topk(2).indices
    by_hand = [(corpus.p * (chosen == e).any(dim=1)).sum().item() / 2 for e in range(4)]
    assert loads == pytest.approx(by_hand)
    assert sum(loads) == pytest.approx(1)


def test_the_balance_loss_is_that_of_the_last_position():
    model = DecoderLM(facts.memory(8, n_experts=4, balance_weight=0.5)).train()
    batch = next(Facts().batches(1, size=32, seed=0))
    with record_routing() as routing:
        loss = facts.value_loss(model, batch)
    alone = facts.value_loss(model.eval(), batch)
    added = 0.5 * balance_loss(routing[0][:, -1], experts_per_token=2)
    torch.testing.assert_close(loss, alone + added)


def test_a_sweep_goes_on_beyond_its_edges():
    def run_with(best):
        tried = []

        def run(rate, seed):
            tried.append((rate, seed))
            return {"excess": (rate / best - 1) ** 2}

        return measure._measured(blocks.block(), run), tried

    for best in (0.01, 0.0025, 0.04):
        found, tried = run_with(best)
        assert found["rate"] == best
        rates = [float(rate) for rate in found["sweep"]]
        assert min(rates) < best < max(rates)
        assert [seed for rate, seed in tried if rate == best] == [5, *range(5)]
        assert found["excess"] == [0.0] * 5


def test_closer_rates_have_all_seeds_and_the_best_mean_counts():
    tried = []

    def run(rate, seed):
        tried.append((rate, seed))
        return {"excess": abs(rate - 0.007) + seed / 10}

    found = measure._measured(blocks.block(), run, closer=(0.7, 1.4))
    assert found["rate"] == 0.007
    assert list(found["means"]) == ["0.0035", "0.005", "0.007"]
    assert [seed for rate, seed in tried if rate == 0.007] == [*range(5)]
    assert found["excess"] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4])


def test_experts_do_the_work_of_the_dense_network():
    sizes = measure._experts(96)
    assert 2 * sizes["experts"]["d_ff"] == sizes["dense"]["d_ff"]
    assert 8 * sizes["experts"]["d_ff"] == sizes["dense, 4 × as wide"]["d_ff"]
    assert facts.memory(**sizes["experts"]).experts_per_token == 2
    many, wide = (
        blocks.n_parameters(DecoderLM(facts.memory(**sizes[name])))
        for name in ("experts", "dense, 4 × as wide")
    )
    assert many - wide == 8 * 32  # the router


def test_the_command_writes_the_parts_that_are_named(tmp_path, monkeypatch):
    monkeypatch.setattr(measure, "FILE", tmp_path / "runs.json")
    cases = {"one": lambda: {"a": lambda: {"x": [1.23456789]}}, "two": lambda: {"b": lambda: {"y": 2}}}
    monkeypatch.setattr(measure, "PARTS", cases)
    measure.main(["two"])
    measure.main(["one"])
    found = json.loads((tmp_path / "runs.json").read_text(encoding="utf-8"))
    assert found == {"two": {"b": {"y": 2}}, "one": {"a": {"x": [1.23457]}}}
    assert measure.runs("one")["a"]["x"] == [1.23457]


def test_switches_are_those_of_llama():
    config = blocks.block(blocks.LLAMA)
    asked = {"pre_norm": True, "norm": "rms", "bias": False, "positions": "rotary", "activation": "swiglu"}
    assert {name: getattr(config, name) for name in asked} == asked
    assert config.n_heads == 2 * config.n_kv_heads
    assert replace(blocks.block(), d_ff=1).pre_norm is False


def interval(name, base, part="alone", base_part="alone"):
    runs = measure.runs(part)[name]["excess"], measure.runs(base_part)[base]["excess"]
    d = [a - b for a, b in zip(*runs, strict=True)]
    return mean(d), 2.78 * stdev(d) / len(d) ** 0.5


def test_the_file_holds_what_the_page_says():
    singles = measure.runs("alone")
    assert singles.keys() == {"2017", "Llama", *blocks.SWITCHES}
    assert {len(run["excess"]) for run in singles.values()} == {len(measure.SEEDS)}
    clear = {name for name in singles if name != "2017" and sum(interval(name, "2017")) < 0}
    assert blocks.SWITCHES.keys() - clear == {"pre-norm", "RMSNorm", "no biases", "grouped queries"}
    for run in (*singles.values(), *measure.runs("memories").values(), *measure.runs("grammar").values()):
        rates = sorted(run["sweep"], key=float)
        assert min(run["sweep"], key=run["sweep"].get) not in (rates[0], rates[-1])
        assert run["means"][f"{run['rate']:g}"] == min(run["means"].values())
        assert mean(run["excess"]) == pytest.approx(min(run["means"].values()), abs=2e-5)
    for name in ("experts", "experts, no balance loss"):
        d, half = interval(name, "dense", "memories", "memories")
        assert d < 0.8 * interval("dense, 4 × as wide", "dense", "memories", "memories")[0] < 0
        assert d + half < 0 < interval(name, "dense", "grammar", "grammar")[0]


def test_most_best_rates_are_at_an_edge_of_the_last_three():
    runs = measure.runs("alone").values()
    inside = [run for run in runs if list(run["means"])[1] == f"{run['rate']:g}"]
    assert (len(inside), len(runs)) == (3, 11)


def test_pre_norm_is_ahead_where_the_rate_is_not_that_of_2017():
    common, singles = measure.runs("common"), measure.runs("alone")
    ahead = {rate: mean(five) - mean(common["2017"][rate]) for rate, five in common["pre-norm"].items()}
    assert ahead["0.02"] < 3 * ahead["0.01"] < 0 < ahead["0.007"] < ahead["0.005"]
    assert (singles["2017"]["rate"], singles["pre-norm"]["rate"]) == (0.007, 0.01)
    for name, rate in (("2017", "0.007"), ("pre-norm", "0.01"), ("QK-norm", "0.01")):
        assert common[name][rate] == singles[name]["excess"]


def test_a_common_rate_is_tried_with_each_change(monkeypatch):
    monkeypatch.setattr(blocks, "learn", lambda config, rate, seed: (rate + seed, 0.0))
    monkeypatch.setattr(blocks, "excess", lambda model: model)
    found = {name: case() for name, case in measure.common().items()}
    assert found.keys() == {"2017", *blocks.SWITCHES} == measure.runs("common").keys()
    for name, by in found.items():
        assert list(by) == list(measure.runs("common")[name])
        assert by["0.01"] == [0.01 + seed for seed in measure.SEEDS]


def test_at_a_common_rate_pre_norm_is_clear_too():
    common, singles = measure.runs("common"), measure.runs("alone")
    clear, surely, lead = set(), set(), {}
    for name in blocks.SWITCHES:
        d = [a - b for a, b in zip(common[name]["0.01"], common["2017"]["0.01"], strict=True)]
        clear |= {name} if mean(d) + 2.78 * stdev(d) / len(d) ** 0.5 < 0 else set()
        surely |= {name} if mean(d) + 5.4 * stdev(d) / len(d) ** 0.5 < 0 else set()
        lead[name] = round(-1_000 * mean(d))
    assert surely == {"rotary", "QK-norm"}  # the answer of Break it
    assert (lead["QK-norm"], round(-1_000 * interval("QK-norm", "2017")[0])) == (24, 16)
    others = {"RMSNorm", "no biases", "grouped queries"}
    assert blocks.SWITCHES.keys() - clear == others
    assert {singles[name]["rate"] for name in others} == {0.007}


def test_the_last_of_three_digits_is_where_it_is_asked_for():
    rng = torch.Generator().manual_seed(3)
    ids, digits = long_context.texts(13, distances=[1, 5, 10] * 20, rng=rng)
    is_digit = (ids >= long_context.N_LETTERS) & (ids < long_context.QUESTION)
    assert is_digit.sum(dim=1).tolist() == [3] * 60
    assert [row.nonzero().max().item() for row in is_digit] == [11, 7, 2] * 20
    shown = ids[is_digit].reshape(60, 3) - long_context.N_LETTERS
    assert torch.equal(shown[:, -1], digits)
    assert {len({*row}) for row in shown.tolist()} == {3}
    assert {*is_digit[::3].nonzero()[:, 1].tolist()} == {*range(12)}  # the others are anywhere before it
    assert {*digits.tolist()} == {*range(long_context.N_DIGITS)}
    assert ids[:, -1].tolist() == [long_context.QUESTION] * 60
    for distance in (0, 11):
        with pytest.raises(ValueError, match=r"distances must be from 1 to 10 in texts of 13"):
            long_context.texts(13, distances=[distance], rng=rng)


def test_slower_rotations_are_positions_closer_together():
    torch.manual_seed(2)
    model = DecoderLM(long_context.reader()).eval()
    slow = long_context.slowed(model, 2.0).eval()
    q = torch.randn(1, 2, 1, 16)
    fast, halved = (each.layers[0].self_attention.positions for each in (model, slow))
    torch.testing.assert_close(halved(q, q, start=4)[0], fast(q, q, start=2)[0])
    ids, _ = long_context.texts(13, distances=[9], rng=torch.Generator().manual_seed(6))
    assert not torch.allclose(slow(ids), model(ids))
    for ours, theirs in zip(slow.parameters(), model.parameters(), strict=True):
        assert torch.equal(ours, theirs)
    assert model.config.rope_scaling is None


def test_an_infinite_factor_stops_all_rotations():
    model = DecoderLM(long_context.reader()).eval()
    q = torch.randn(1, 2, 1, 16)
    stopped = long_context.slowed(model, math.inf).layers[0].self_attention.positions
    torch.testing.assert_close(stopped(q, q, start=400)[0], q)


def test_windows_in_two_layers_hide_what_is_beyond_their_reach():
    torch.manual_seed(4)
    config = long_context.reader(window=16)
    model = DecoderLM(config).eval()
    ids, _ = long_context.texts(64, distances=[40], rng=torch.Generator().manual_seed(5))
    reach = config.n_layers * (config.window - 1)
    for distance, seen in ((reach, True), (reach + 1, False)):
        other = ids.clone()
        other[0, -1 - distance] = (ids[0, -1 - distance] + 1) % long_context.N_LETTERS
        assert torch.equal(model(other)[0, -1], model(ids)[0, -1]) is not seen


def test_recall_in_long_texts_is_what_the_page_says():
    found = {name: run["accuracy"] for name, run in measure.runs("recall").items()}
    assert {len(five) for run in found.values() for five in run.values()} == {len(measure.SEEDS)}
    assert {tuple(map(int, run)) for run in found.values()} == {long_context.DISTANCES}
    windows = {int(distance): mean(five) for distance, five in found["windows of 16"].items()}
    assert min(windows[d] for d in windows if d <= 24) > 0.95
    assert max(windows[d] for d in windows if d > 30) < 0.2
    slower = found["rotations 8 times slower"]
    assert min(map(mean, slower.values())) > 0.85
    off = [mean(one) for one in zip(*found["rotations off"].values(), strict=True)]
    apart = [a - b for a, b in zip(map(mean, zip(*slower.values(), strict=True)), off, strict=True)]
    assert 0 < mean(apart) < 2.78 * stdev(apart) / len(apart) ** 0.5
    short = measure.runs("recall")["all positions"]["in training lengths"]
    assert {distance: min(five) for distance, five in short.items()} == dict.fromkeys(short, 1.0)
    plain = {int(distance): mean(five) for distance, five in found["all positions"].items()}
    far = [plain[d] < 0.5 for d in plain if d > 40]
    assert sum(far) > 0.8 * len(far)
    assert min(plain[d] for d in plain if d < 25) > 0.89


def test_experts_of_a_narrow_networks_work_help_with_facts_alone():
    found = measure.runs("quarter")
    for part, helps in (("memories", True), ("grammar", False)):
        run, narrow = found[part], measure.runs(part)["dense, 1/4 as wide"]
        rates = sorted(run["sweep"], key=float)
        assert min(run["sweep"], key=run["sweep"].get) not in (rates[0], rates[-1])
        apart = [a - b for a, b in zip(run["excess"], narrow["excess"], strict=True)]
        half = 2.78 * stdev(apart) / len(apart) ** 0.5
        assert (mean(apart) + half < 0) is helps
        assert run["parameters"] == pytest.approx(measure.runs(part)["dense"]["parameters"], rel=0.06)
