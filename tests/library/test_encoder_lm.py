"""The encoder-only model: both sides, padding, heads, and what it refuses."""

import dataclasses

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import nn
from torch_twins import close, normal, random_model

from exformer.models.classification import ClassHead, TagHead
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.nn.config import TransformerConfig
from exformer.nn.normalization import LayerNorm, RMSNorm

pytestmark = pytest.mark.usefixtures("float64")
VOCAB, HEADS, D_MODEL, D_FF, LAYERS, MAX_LEN, BATCH, TIME = 17, 3, 30, 13, 2, 11, 2, 7
CONFIG = EncoderLMConfig(VOCAB, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, n_layers=LAYERS, max_len=MAX_LEN)
IDS = torch.tensor([[5, 16, 3, 7, 9, 4, 2], [6, 11, 2, 14, 0, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 0]])
SEEN = IDS != 0
EITHER = (LayerNorm, RMSNorm)


def build(seed: int = 0, **changes) -> EncoderLM:
    return random_model(EncoderLM, dataclasses.replace(CONFIG, **changes), seed=seed)


@settings(max_examples=20)
@given(at=st.integers(0, 3), seed=st.integers(0, 99))
def test_every_token_moves_every_position_of_its_text(at, seed):
    model = build(seed)
    changed = IDS.clone()
    changed[:, at] = changed[:, at] % (VOCAB - 1) + 1  # another token, no padding
    moved = (model(changed) - model(IDS)).abs().amax(dim=-1)
    assert (moved > 1e-9).all()


@settings(max_examples=20)
@given(n=st.integers(1, 4), seed=st.integers(0, 99))
def test_padding_changes_nothing(n, seed):
    model = build(seed)
    longer = F.pad(IDS, (0, n))
    close(model(longer)[:, :TIME], model(IDS))
    close(model(IDS[1:, :4]), model(IDS)[1:, :4])


def test_another_padding_token():
    model = build(pad_id=2)
    ids = torch.tensor([[5, 0, 3, 2, 2]])
    close(model(ids)[:, :3], model(ids[:, :3]))


def test_one_segment_for_all_is_one_more_vector_per_position():
    """Left out, all tokens are of the first segment."""
    with_segments, without = build(n_segments=2), build(seed=5)
    state = with_segments.state_dict()
    first = state.pop("segments.weight")[0]
    without.load_state_dict(state | {"positions.weight": state["positions.weight"] + first})
    close(with_segments(IDS), without(IDS))
    close(with_segments(IDS), with_segments(IDS, segments=torch.zeros_like(IDS)))
    assert (with_segments(IDS, segments=SEGMENTS) - with_segments(IDS)).abs().max() > 1e-3


def test_scores_of_masked_positions_alone():
    model = build()
    masked = torch.rand(IDS.shape, generator=torch.Generator().manual_seed(0)) < 0.3
    assert 0 < masked.sum() < IDS.numel()
    close(model.logits(model.states(IDS)[masked]), model(IDS)[masked])


def test_number_of_parameters_by_hand():
    attention, network, norm = 4 * (30 * 30 + 30), 30 * 13 + 13 + 13 * 30 + 30, 2 * 30
    tables, head = 17 * 30 + 11 * 30 + 2 * 30, 30 * 30 + 30 + norm + 17
    wanted = tables + norm + 2 * (attention + network + 2 * norm) + head
    assert sum(p.numel() for p in build(n_segments=2).parameters()) == wanted


def test_without_biases_it_is_the_model_whose_biases_are_zero():
    without, with_biases = build(bias=False), build()
    assert not any("bias" in name for name, _ in without.named_parameters())
    zeros = {name: torch.zeros_like(p) for name, p in with_biases.state_dict().items()}
    with_biases.load_state_dict(zeros | without.state_dict())
    close(without(IDS), with_biases(IDS))


def test_a_new_model_knows_nothing():
    """All tokens start with almost the same probability, whatever the text."""
    torch.manual_seed(0)
    model = EncoderLM(EncoderLMConfig(VOCAB, n_segments=2)).eval()
    p = model(IDS).softmax(dim=-1)
    assert (p * VOCAB - 1).abs().max() < 1
    for part in (model.embedding, model.positions, model.segments):
        assert 0.015 < part.weight.std() < 0.025


def test_class_head_by_hand():
    head = ClassHead(2, n_classes=3, dropout=0.0)
    with torch.no_grad():
        head.pooler.weight.copy_(torch.tensor([[1.0, 0], [1, 1]]))
        head.pooler.bias.copy_(torch.tensor([0.0, -3]))
        head.output.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [2, 2]]))
        head.output.bias.copy_(torch.tensor([0.0, 0, 1]))
    states = torch.tensor([[[0.5, 2.5], [7, 7]]])  # W h + b = (0.5, 0); tanh 0.5 = 0.46211715726
    close(head(states), torch.tensor([[0.46211715726000975, 0, 2 * 0.46211715726000975 + 1]]))


def test_tag_head_by_hand():
    head = TagHead(2, n_tags=3, dropout=0.0)
    with torch.no_grad():
        head.output.weight.copy_(torch.tensor([[1.0, 0], [0, 1], [2, 2]]))
        head.output.bias.copy_(torch.tensor([0.0, 0, 1]))
    states = torch.tensor([[[0.5, 2.5], [7, -7]]])
    close(head(states), torch.tensor([[[0.5, 2.5, 7], [7, -7, 1]]]))


@pytest.mark.parametrize(
    "head", [ClassHead(30, n_classes=5, dropout=0.5), TagHead(30, n_tags=5, dropout=0.5)]
)
def test_heads_drop_out_in_training_only(head):
    states = normal(3, 7, 30).detach()
    head = head.double().train()
    assert (head(states) - head(states)).abs().max() > 1e-3
    head.eval()
    close(head(states), head(states))


def test_dropout_in_training_only():
    model = build().train()
    assert (model(IDS) - model(IDS)).abs().max() > 1e-3
    close(build()(IDS), build()(IDS))
    assert (model.dropout.rate, model.layers[0].dropout.rate) == (0.1, 0.1)


def test_embeddings_are_dropped_too():
    # Without layers only the normalized embeddings and dropout are left; at 0.5 what is kept is doubled.
    model = build(dropout=0.5)
    model.layers = nn.ModuleList()
    whole, dropped = model.states(IDS), model.train().states(IDS)
    zero = dropped == 0
    assert 0.4 < zero.double().mean() < 0.6
    close(dropped[~zero], 2 * whole[~zero])


def test_refusals():
    for name, value in (("vocab_size", 0), ("n_layers", 0)):
        with pytest.raises(ValueError, match=f"{name} must be at least 1, got {value}"):
            dataclasses.replace(CONFIG, **{name: value})
    with pytest.raises(ValueError, match="pad_id must lie from 0 to 16, got 17"):
        dataclasses.replace(CONFIG, pad_id=17)
    with pytest.raises(ValueError, match="n_segments must be at least 0, got -1"):
        dataclasses.replace(CONFIG, n_segments=-1)
    with pytest.raises(ValueError, match=r"12.* max_len is 11"):
        build()(torch.ones(1, 12, dtype=torch.int64))
    with pytest.raises(ValueError, match="no segments: build it with n_segments=2"):
        build()(IDS, segments=SEGMENTS)
    with pytest.raises(ValueError, match="segments must lie from 0 to 1, got 0 to 2"):
        build(n_segments=2)(IDS, segments=2 * SEGMENTS)
    with pytest.raises(ValueError, match="segments must lie from 0 to 1, got -1 to 0"):
        build(n_segments=2)(IDS, segments=-SEGMENTS)
    with pytest.raises(ValueError, match="n_classes must be at least 1, got 0"):
        ClassHead(3, n_classes=0)
    with pytest.raises(ValueError, match="n_tags must be at least 1, got -1"):
        TagHead(3, n_tags=-1)


@pytest.mark.usefixtures("unchecked_shapes")
def test_segments_of_another_shape_are_refused():
    model = build(n_segments=2)
    for segments, shape in ((SEGMENTS[:, :1], "2, 1"), (SEGMENTS[:1], "1, 7"), (SEGMENTS.T, "7, 2")):
        with pytest.raises(ValueError, match=rf"segments have the shape \({shape}\), the texts \(2, 7\)"):
            model(IDS, segments=segments)


def test_norm_kind_throughout_a_model():
    for norm, kind in (("layer", LayerNorm), ("rms", RMSNorm)):
        parts = [part for part in build(norm=norm, pre_norm=True).modules() if type(part) in EITHER]
        assert [type(part) for part in parts] == [kind] * (2 * LAYERS + 3)


def test_heads_drop_what_the_output_layer_reads():
    states = torch.ones(3, 5, 4)
    for head in (ClassHead(4, n_classes=2, dropout=1.0), TagHead(4, n_tags=2, dropout=1.0)):
        close(head.train()(states), head.output.bias.expand_as(head(states)))


def test_heads_drop_a_tenth_unless_told_otherwise():
    assert [ClassHead(4, n_classes=2).dropout.rate, TagHead(4, n_tags=1).dropout.rate] == [0.1, 0.1]


def test_a_configuration_is_berts_unless_told_otherwise():
    own = {"vocab_size": 5, "activation": "gelu", "positions": "learned", "pad_id": 0, "n_segments": 0}
    own |= {"tie_output": True, "head": True}
    layers = dataclasses.asdict(TransformerConfig())
    assert dataclasses.asdict(EncoderLMConfig(5)) == layers | own
