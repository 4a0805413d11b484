"""The decoder-only model: parity with PyTorch's stack, causality, positions, and what it refuses."""

import contextlib
import dataclasses
import json
import math

import numpy as np
import pytest
import torch
from torch import nn
from torch_twins import (
    close,
    copy,
    normal,
    papers_formula,
    random_model,
    randomize,
    recorded,
    same_gradients,
    twins,
)

from exformer.models.check_inputs import check_ids
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.nn.config import TransformerConfig
from exformer.nn.loss import cross_entropy
from exformer.nn.masks import causal_mask

pytestmark = pytest.mark.usefixtures("float64")
VOCAB, HEADS, D_MODEL, D_FF, LAYERS, MAX_LEN, BATCH, TIME = 17, 3, 30, 13, 2, 11, 2, 7
CONFIG = DecoderLMConfig(VOCAB, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, n_layers=LAYERS, max_len=MAX_LEN)
IDS = torch.tensor([[5, 16, 3, 7, 9, 4, 2], [6, 11, 2, 14, 1, 8, 5]])
ALL_POSITIONS = ("sinusoidal", "learned", "rotary", "alibi", "none")
EVERY_POSITION = pytest.mark.parametrize("positions", ALL_POSITIONS)


def build(seed: int = 0, **changes) -> DecoderLM:
    return random_model(DecoderLM, dataclasses.replace(CONFIG, **changes), seed=seed)


@pytest.mark.parametrize("tie_output", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "none"])
@pytest.mark.parametrize(("pre_norm", "activation"), [(False, "relu"), (True, "gelu")])
def test_parity_with_torch(tie_output, positions, pre_norm, activation):
    ours = build(tie_output=tie_output, positions=positions, pre_norm=pre_norm, activation=activation)
    layer = nn.TransformerEncoderLayer(
        D_MODEL, HEADS, D_FF, 0.1, activation, batch_first=True, norm_first=pre_norm
    )
    theirs = nn.TransformerEncoder(layer, LAYERS, enable_nested_tensor=False).eval()
    final = nn.LayerNorm(D_MODEL) if pre_norm else nn.Identity()
    for part in (theirs, final):
        randomize(part, seed=3)
    pairs = [pair for a, b in zip(ours.layers, theirs.layers, strict=True) for pair in twins(a, b)]
    pairs += twins(ours.norm, final) if pre_norm else []
    copy(pairs)
    table = ours.embedding.weight.detach().clone().requires_grad_()
    added = papers_formula(MAX_LEN, d_model=D_MODEL) * (positions == "sinusoidal")
    if positions == "learned":
        added = ours.positions.weight.detach()
    x = table[IDS] * math.sqrt(D_MODEL) + added[:TIME]
    hidden = final(theirs(x, mask=~causal_mask(TIME)))
    wanted = hidden @ (table if tie_output else ours.output.weight.detach()).T
    got = ours(IDS)
    close(got, wanted)
    direction = normal(*got.shape).detach()
    got.backward(direction)
    wanted.backward(direction)
    same_gradients(pairs)
    close(ours.embedding.weight.grad, table.grad)


@EVERY_POSITION
def test_the_order_of_the_past_counts_where_there_are_positions(positions):
    """One layer sees the past as a set; the last token stays the last."""
    model = build(positions=positions, n_layers=1)
    mixed = IDS[:, [2, 0, 5, 1, 4, 3, 6]]
    moved = (model(mixed) - model(IDS))[:, -1].abs().max()
    assert moved < 1e-10 if positions == "none" else moved > 1e-3


def test_dropout_works_in_training_and_is_off_in_evaluation():
    model, without = build(dropout=0.5), build(dropout=0.0)
    assert torch.equal(model(IDS), without(IDS))
    assert torch.equal(model(IDS), without.train()(IDS))
    torch.manual_seed(0)
    assert not torch.equal(model.train()(IDS), model(IDS))


@EVERY_POSITION
def test_embeddings_are_dropped_too(positions):
    # Without layers only embedding, positions and dropout are left; at 0.5 what is kept is doubled.
    model = build(dropout=0.5, positions=positions, pre_norm=False)
    model.layers = nn.ModuleList()
    whole, dropped = model.states(IDS), model.train().states(IDS)
    zero = dropped == 0
    assert 0.4 < zero.double().mean() < 0.6
    close(dropped[~zero], 2 * whole[~zero])


@pytest.mark.parametrize("rate", ["dropout", "attention_dropout"])
def test_each_rate_drops_by_itself(rate):
    torch.manual_seed(0)
    model = build(**({"dropout": 0.0} | {rate: 0.5})).train()
    assert not torch.equal(model(IDS), model(IDS))


# --- switches ---


def test_large_projections_change_no_weight_of_normalized_heads():
    """What the switch is for: without it, a hundredfold projection makes weights of 0 and 1."""
    for qk_norm, same in ((True, True), (False, False)):
        model = build(qk_norm=qk_norm)
        before = recorded(model, IDS)[1]["layers.0.self_attention"]
        with torch.no_grad():
            for part in (model.layers[0].self_attention.w_q, model.layers[0].self_attention.w_k):
                part.weight.mul_(100)
                part.bias.mul_(100)
        after = recorded(model, IDS)[1]["layers.0.self_attention"]
        assert torch.allclose(after, before, atol=1e-4) == same


@pytest.mark.parametrize("positions", ["learned", "rotary"])
def test_normalized_heads_are_off_by_default_and_draw_no_number(positions):
    models = []
    for qk_norm in (False, True):
        torch.manual_seed(0)
        models.append(DecoderLM(dataclasses.replace(CONFIG, positions=positions, qk_norm=qk_norm)))
    plain, normalized = models
    assert not CONFIG.qk_norm
    state = normalized.state_dict()
    assert {name for name in state if name not in plain.state_dict()} == {
        f"layers.{i}.self_attention.norm_{name}.weight" for i in range(LAYERS) for name in "qk"
    }
    assert all(torch.equal(state[name], value) for name, value in plain.state_dict().items())
    assert (normalized(IDS) - plain(IDS)).abs().max() > 1e-3


def test_zero_init_sets_the_last_matrices_alone_to_zero():
    torch.manual_seed(0)
    plain = DecoderLM(CONFIG)
    torch.manual_seed(0)
    model = DecoderLM(dataclasses.replace(CONFIG, zero_init=True))
    for name, value in model.state_dict().items():
        last = name.endswith(("w_o.weight", "w_2.weight"))
        before = plain.state_dict()[name]
        assert torch.equal(value, torch.zeros_like(value) if last else before)
        assert not last or before.abs().max() > 0.1
    assert not CONFIG.zero_init


def test_with_zero_init_a_new_model_is_its_embedding():
    model = DecoderLM(dataclasses.replace(CONFIG, zero_init=True)).eval()
    x = model.positions(model.embedding(IDS))
    close(model(IDS), model.embedding.logits(model.norm(x)))


def test_zero_init_learns_from_the_second_step():
    torch.manual_seed(0)
    model = DecoderLM(dataclasses.replace(CONFIG, zero_init=True, qk_norm=True, activation="squared_relu"))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    moved = []
    for _ in range(2):
        optimizer.zero_grad()
        cross_entropy(model(IDS[:, :-1]), IDS[:, 1:]).backward()
        moved.append({name for name, p in model.named_parameters() if p.grad.abs().max() > 1e-9})
        optimizer.step()
    names = {name for name, _ in model.named_parameters()}
    assert not any(name.endswith(("w_q.weight", "w_1.weight")) for name in moved[0])
    assert names - moved[1] <= {name for name in names if name.endswith("w_k.bias")}


def test_no_bias_is_left_where_none_is_wanted():
    names = [name for name, _ in build(bias=False).named_parameters()]
    assert names
    assert not any("bias" in name for name in names)


def test_refusals():
    for name, value in (("vocab_size", 0), ("n_layers", 0)):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got {value}"):
            dataclasses.replace(CONFIG, **{name: value})
    for positions in ALL_POSITIONS:
        with pytest.raises(ValueError, match=r"12.* max_len is 11"):
            build(positions=positions)(torch.zeros(1, 12, dtype=torch.int64))


@pytest.mark.parametrize(
    ("padding", "start", "max_len", "message"),
    [
        ([2, 0], 0, 3, ""),
        ([3, 0], 0, 3, r"one left-padding length for each of the 2 rows, below 3, got \[3, 0\]"),
        ([-1, 0], 0, 3, "padding must hold one"),
        ([0], 0, 3, "padding must hold one"),
        ([0, 0, 0], 0, 3, "padding must hold one"),
        ([2, 1], 0, 2, ""),
        ([2, 1], 0, 1, "the text has 2 tokens and max_len is 1"),
        ([3, 1], 2, 4, ""),
        (None, 2, 5, ""),
        (None, 2, 4, "the text has 5 tokens and max_len is 4"),
    ],
)
def test_texts_that_can_be_read(padding, start, max_len, message):
    padding = None if padding is None else torch.tensor(padding)
    refused = pytest.raises(ValueError, match=message) if message else contextlib.nullcontext()
    with refused:
        check_ids(torch.zeros(2, 3, dtype=torch.int64), max_len=max_len, start=start, padding=padding)


@pytest.mark.usefixtures("unchecked_shapes")
def test_sizes_are_whole_numbers():
    with pytest.raises(ValueError, match=r"max_len must be an integer, got 7\.5"):
        dataclasses.replace(CONFIG, max_len=7.5)
    found = dataclasses.replace(CONFIG, max_len=np.int64(7), n_heads=torch.tensor(2), begin_id=np.int32(0))
    assert json.loads(json.dumps(dataclasses.asdict(found))) == dataclasses.asdict(
        dataclasses.replace(CONFIG, max_len=7, n_heads=2, begin_id=0)
    )


def test_a_configuration_is_gpt_2s_unless_told_otherwise():
    own = {"vocab_size": 5, "pre_norm": True, "activation": "gelu", "positions": "learned"}
    choices = {"tie_output": True, "scale_embedding": True, "begin_id": None, "pad_id": 0}
    assert dataclasses.asdict(DecoderLMConfig(5)) == dataclasses.asdict(TransformerConfig()) | own | choices
