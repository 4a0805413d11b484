"""The whole model: parity with nn.Transformer, causality, padding, and what it refuses."""

import dataclasses
import math

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_decoder_lm import ALL_POSITIONS
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
    transformer_twins,
)

from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.nn.config import TransformerConfig
from exformer.nn.masks import causal_mask
from exformer.nn.multi_head import MultiHeadAttention
from exformer.nn.normalization import LayerNorm, RMSNorm
from exformer.nn.positions.alibi import ALiBi
from exformer.nn.positions.rotary import RotaryPositions
from exformer.training.loop import set_seed

pytestmark = pytest.mark.usefixtures("float64")
SRC_VOCAB, TGT_VOCAB, HEADS, D_MODEL, D_FF, LAYERS, MAX_LEN = 17, 19, 2, 22, 13, 2, 11
CONFIG = EncoderDecoderConfig(
    SRC_VOCAB, TGT_VOCAB, d_model=D_MODEL, n_heads=HEADS, d_ff=D_FF, n_layers=LAYERS, max_len=MAX_LEN
)
SRC = torch.tensor([[5, 16, 3, 7, 9, 4, 2], [6, 11, 2, 0, 0, 0, 0], [8, 3, 9, 13, 2, 0, 0]])
TGT = torch.tensor([[1, 18, 4, 3, 9], [1, 7, 0, 0, 0], [1, 6, 6, 0, 0]])


ENCODER = [f"encoder.{i}.self_attention" for i in range(LAYERS)]
DECODER = [f"decoder.{i}.self_attention" for i in range(LAYERS)]
CROSS = [f"decoder.{i}.cross_attention" for i in range(LAYERS)]


def build(seed: int = 0, **changes) -> EncoderDecoder:
    return random_model(EncoderDecoder, dataclasses.replace(CONFIG, **changes), seed=seed)


def torch_twin(config: EncoderDecoderConfig) -> nn.Transformer:
    """Build nn.Transformer; it normalizes at the end of each stack only in pre-norm, as the paper has it."""
    c = config
    options = {"batch_first": True, "norm_first": c.pre_norm}
    sizes = (c.d_model, c.n_heads, c.d_ff, c.dropout, c.activation)
    norms = [nn.LayerNorm(c.d_model) if c.pre_norm else None for _ in range(2)]
    encoder = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(*sizes, **options), c.n_layers, norms[0], enable_nested_tensor=False
    )
    decoder = nn.TransformerDecoder(nn.TransformerDecoderLayer(*sizes, **options), c.n_layers, norms[1])
    twin = nn.Transformer(
        c.d_model, c.n_heads, custom_encoder=encoder, custom_decoder=decoder, batch_first=True
    ).eval()
    randomize(twin)
    return twin


def torch_logits(theirs: nn.Transformer, leaves: dict[str, torch.Tensor]) -> torch.Tensor:
    """Compute everything around nn.Transformer from tables, by the paper."""
    src = leaves["src_embedding.weight"][SRC] * math.sqrt(D_MODEL)
    tgt = leaves["tgt_embedding.weight"][TGT] * math.sqrt(D_MODEL)
    sinusoids = papers_formula(MAX_LEN, d_model=D_MODEL)
    hidden = theirs(
        src + leaves.get("src_positions.weight", sinusoids)[: SRC.size(1)],
        tgt + leaves.get("tgt_positions.weight", sinusoids)[: TGT.size(1)],
        tgt_mask=~causal_mask(TGT.size(1)),
        src_key_padding_mask=SRC == 0,
        tgt_key_padding_mask=TGT == 0,
        memory_key_padding_mask=SRC == 0,
    )
    return hidden @ leaves.get("output.weight", leaves["tgt_embedding.weight"]).T


@pytest.mark.parametrize("tie_output", [True, False], ids=["tied", "untied"])
@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
@pytest.mark.parametrize(("pre_norm", "activation"), [(False, "relu"), (True, "gelu")])
def test_parity_with_torch(tie_output, positions, pre_norm, activation):
    ours = build(pre_norm=pre_norm, activation=activation, positions=positions, tie_output=tie_output)
    theirs = torch_twin(ours.config)
    pairs = transformer_twins(ours, theirs)
    copy(pairs)
    in_a_twin = {id(p) for p, *_ in pairs}
    mine = {name: p for name, p in ours.named_parameters() if id(p) not in in_a_twin}
    leaves = {name: p.detach().clone().requires_grad_() for name, p in mine.items()}
    got, wanted = ours(SRC, TGT), torch_logits(theirs, leaves)
    close(got, wanted)
    direction = normal(*got.shape).detach()
    got.backward(direction)
    wanted.backward(direction)
    same_gradients(pairs + [(mine[name], leaves[name], slice(None)) for name in mine])


def test_logits_by_hand():
    # Width 2 and all sublayers silent: a norm turns a row into (1, -1) or (-1, 1), by which entry is larger
    # (but for ε), and so do all norms after it. The positional code of position 0 is (sin 0, cos 0) = (0, 1).
    #   token 1 has the row (3, 0): √2·(3, 0) + (0, 1) = (4.2, 1) -> (1, -1)
    #   token 2 has the row (0, 5): √2·(0, 5) + (0, 1) = (0, 8.1) -> (-1, 1)
    # The logits are the dot products with the rows (0, 0), (3, 0), (0, 5).
    model = EncoderDecoder(EncoderDecoderConfig(3, 3, d_model=2, n_heads=1, d_ff=3, n_layers=3)).eval()
    with torch.no_grad():
        for name, p in model.named_parameters():
            if "attention.w_" in name or "feed_forward.w_" in name:
                p.zero_()
        model.tgt_embedding.weight.copy_(torch.tensor([[0.0, 0], [3, 0], [0, 5]]))
    got = model(torch.tensor([[1], [1]]), torch.tensor([[1], [2]]))
    wanted = torch.tensor([[[0.0, 3, -5]], [[0, -3, 5]]])
    torch.testing.assert_close(got, wanted, atol=1e-4, rtol=0)


@pytest.mark.parametrize("pre_norm", [False, True])
def test_number_of_parameters_by_hand(pre_norm):
    attention, norm = 4 * (22 * 22 + 22), 2 * 22  # four projections; a gain and a bias a column
    network = 22 * 13 + 13 + 13 * 22 + 22
    encoder_layer, decoder_layer = attention + network + 2 * norm, 2 * attention + network + 3 * norm
    wanted = 17 * 22 + 19 * 22 + 2 * (encoder_layer + decoder_layer) + 2 * norm * pre_norm
    assert sum(p.numel() for p in build(pre_norm=pre_norm).parameters()) == wanted


@settings(max_examples=20)
@given(seed=st.integers(0, 2**20), at=st.integers(1, 4), pre_norm=st.booleans(), double=st.booleans())
def test_the_past_does_not_see_the_future_bit_for_bit(seed, at, pre_norm, double):
    model = build(seed, pre_norm=pre_norm).to(torch.float64 if double else torch.float32)
    generator = torch.Generator().manual_seed(seed)
    tgt = torch.randint(1, TGT_VOCAB, (3, 5), generator=generator)
    changed = tgt.clone()
    changed[:, at:] = torch.randint(0, TGT_VOCAB, (3, 5 - at), generator=generator)  # padding as well
    before, after = model(SRC, tgt), model(SRC, changed)
    assert torch.equal(before[:, :at], after[:, :at])
    moved = (changed != tgt)[:, at]  # control: where the token itself changed, its logits do change
    assert ((before - after)[:, at].abs().amax(-1) > 1e-6)[moved].all()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**20), more_src=st.integers(0, 4), more_tgt=st.integers(0, 6), pre=st.booleans())
def test_more_padding_changes_nothing(seed, more_src, more_tgt, pre):
    model = build(seed, pre_norm=pre)
    src, tgt = nn.functional.pad(SRC, (0, more_src)), nn.functional.pad(TGT, (0, more_tgt))
    close(model.encode(src)[:, : SRC.size(1)], model.encode(SRC))
    close(model(src, tgt)[:, : TGT.size(1)], model(SRC, TGT))


@settings(max_examples=20)
@given(seed=st.integers(0, 2**20), pre_norm=st.booleans())
def test_each_sentence_is_computed_by_itself_as_if_unpadded(seed, pre_norm):
    model = build(seed, pre_norm=pre_norm)
    together = model(SRC, TGT)
    for row, (src, tgt) in enumerate(zip(SRC, TGT, strict=True)):
        alone = model(src[src != 0][None], tgt[tgt != 0][None])
        close(together[row, : alone.size(1)], alone[0])


@pytest.mark.parametrize(("positions", "kind"), [("rotary", RotaryPositions), ("alibi", ALiBi)])
def test_relative_positions_in_self_attention_only(positions, kind):
    ours, plain = (build(positions=name, d_model=24) for name in (positions, "none"))
    assert {name: p.shape for name, p in ours.named_parameters()} == {
        name: p.shape for name, p in plain.named_parameters()
    }
    for layer in (*plain.encoder, *plain.decoder):
        layer.self_attention.positions = kind()
    close(ours(SRC, TGT), plain(SRC, TGT))


@pytest.mark.parametrize("positions", ALL_POSITIONS)
def test_what_positions_tell(positions):
    model, word = build(positions=positions, d_model=24), SRC[:1]
    whole = model(word, TGT[:1])

    def same(src):
        return torch.allclose(model(src, TGT[:1]), whole, rtol=0, atol=1e-10)

    assert same(word[:, [3, 1, 0, 2, 4, 6, 5]]) == (positions == "none")  # without them a sentence is a set
    assert same(nn.functional.pad(word, (2, 0))) == (positions not in ("sinusoidal", "learned"))  # distances
    assert same(word.flip(1)) == (positions in ("none", "alibi"))  # ALiBi knows no left and right


@pytest.mark.parametrize("pre_norm", [False, True])
def test_every_source_token_reaches_every_logit(pre_norm):
    # The control of the tests above: what is not padding does matter, at every position.
    model = build(pre_norm=pre_norm)
    for position in range(SRC.size(1)):
        changed = SRC.clone()
        changed[0, position] = 10
        assert ((model(changed, TGT) - model(SRC, TGT))[0].abs().amax(-1) > 1e-6).all()


@pytest.mark.parametrize("pre_norm", [False, True])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_source_of_padding_alone_gives_a_defined_result(pre_norm, dtype):
    model, src = build(pre_norm=pre_norm).to(dtype), SRC.clone()
    src[1] = 0
    logits = model(src, TGT)
    assert logits.isfinite().all()
    torch.testing.assert_close(logits[[0, 2]], model(SRC, TGT)[[0, 2]])
    # It says nothing, however long it is.
    torch.testing.assert_close(model(src[1:2, :3], TGT[1:2]), logits[1:2])
    output, weights = recorded(model, src, TGT)
    torch.testing.assert_close(output, logits)
    assert all((weights[name][1] == 0).all() for name in ENCODER + CROSS)
    logits.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_a_target_of_padding_alone_gives_finite_logits():
    tgt = TGT.clone()
    tgt[2] = 0
    model = build()
    close(model(SRC, tgt)[:2], model(SRC, TGT)[:2])
    assert model(SRC, tgt).isfinite().all()


def test_shapes_and_masks_of_attention_weights():
    found = recorded(build(), SRC, TGT)[1]
    for names, shape in ((ENCODER, (7, 7)), (DECODER, (5, 5)), (CROSS, (5, 7))):
        assert all(found[name].shape == (3, HEADS, *shape) for name in names)
    for weights in found.values():
        close(weights.sum(-1), torch.ones(weights.shape[:-1]))
        assert not weights.requires_grad
    for weights in (found[name] for name in ENCODER + CROSS):
        assert (weights.permute(0, 3, 1, 2)[SRC == 0] == 0).all()
    for weights in (found[name] for name in DECODER):
        assert (weights.triu(1) == 0).all()
        assert (weights.permute(0, 3, 1, 2)[TGT == 0] == 0).all()


def test_dropout_works_in_training_and_is_off_in_evaluation():
    model, without = build(dropout=0.5), build(dropout=0.0)
    torch.manual_seed(0)
    assert torch.equal(model(SRC, TGT), without(SRC, TGT))
    assert torch.equal(model(SRC, TGT), without.train()(SRC, TGT))
    model.train()
    assert not torch.equal(model(SRC, TGT), model(SRC, TGT))


def test_embeddings_are_dropped_too():
    # Without layers only embedding, position and dropout are left; at 0.5 what is kept is doubled.
    model = build(dropout=0.5, tie_output=False)
    model.encoder, model.decoder, model.output = nn.ModuleList(), nn.ModuleList(), nn.Identity()
    for compute in (model.encode, lambda src: model.decode(TGT, memory=normal(3, 7, 22), src=src)):
        whole, dropped = model.eval() and compute(SRC), model.train() and compute(SRC)
        zero = dropped == 0
        assert 0.4 < zero.double().mean() < 0.6
        close(dropped[~zero], 2 * whole[~zero])


def test_the_same_seed_makes_the_same_model():
    states = []
    for seed in (3, 3, 4):
        set_seed(seed)
        states.append(EncoderDecoder(CONFIG).state_dict())
    first, again, other = states
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first["src_embedding.weight"], other["src_embedding.weight"])


def test_source_and_target_can_share_a_table():
    shared, apart = build(share_embeddings=True, src_vocab_size=TGT_VOCAB), build(src_vocab_size=TGT_VOCAB)
    table = shared.state_dict()["tgt_embedding.weight"]
    apart.load_state_dict({**shared.state_dict(), "src_embedding.weight": table})
    assert torch.equal(shared(SRC, TGT), apart(SRC, TGT))
    assert len(list(apart.parameters())) == len(list(shared.parameters())) + 1
    shared(SRC, TGT).square().sum().backward()
    apart(SRC, TGT).square().sum().backward()
    both = apart.src_embedding.weight.grad + apart.tgt_embedding.weight.grad
    close(shared.tgt_embedding.weight.grad, both)
    with pytest.raises(ValueError, match="must have one vocabulary, got 17 and 19 tokens"):
        build(share_embeddings=True)
    with pytest.raises(ValueError, match="must have one vocabulary, got 23 and 19 tokens"):
        build(share_embeddings=True, src_vocab_size=23)


def test_another_padding_token_can_be_chosen():
    model, other = build(pad_id=0), build(pad_id=14)
    tables = other.src_embedding.weight, other.tgt_embedding.weight
    with torch.no_grad():
        for table in tables:
            table[14] = table[0]
    src, tgt = (ids.masked_fill(ids == 0, 14) for ids in (SRC, TGT))
    close(other(src, tgt)[..., 1:14], model(SRC, TGT)[..., 1:14])


@pytest.mark.parametrize(
    ("pad_id", "src", "tgt", "pieces"),
    [
        (0, [[5, 3, 2], [4, 2, 0]], [[1, 3, 4, 5], [1, 0, 4, 0]], (1, 2, 1)),
        (0, [[5, 3, 2], [4, 2, 0]], [[1, 3, 4, 5], [1, 6, 0, 7]], (2, 1, 1)),
        (14, [[5, 0, 2], [4, 2, 14]], [[1, 0, 4], [1, 14, 4]], (1, 1, 1)),
    ],
    ids=["some rows", "after two words", "another token"],
)
def test_a_cache_hides_padding(pad_id, src, tgt, pieces):
    model, src, tgt = build(pad_id=pad_id), torch.tensor(src), torch.tensor(tgt)
    memory, cache = model.encode(src), model.new_cache()
    found = [model.decode(piece, memory=memory, src=src, cache=cache) for piece in tgt.split(pieces, dim=1)]
    close(torch.cat(found, dim=1), model.decode(tgt, memory=memory, src=src))
    close(memory[1:, :2], model.encode(src[1:, :2]))


@pytest.mark.parametrize("side", ["src", "tgt"])
@pytest.mark.parametrize("positions", ALL_POSITIONS)
def test_a_sentence_longer_than_max_len_is_refused(side, positions):
    model, longest = build(positions=positions, d_model=24), torch.ones(3, MAX_LEN, dtype=torch.int64)
    assert model(longest, longest).isfinite().all()
    src, tgt = (nn.functional.pad(longest, (0, side == name), value=1) for name in ("src", "tgt"))
    with pytest.raises(ValueError, match="the text has 12 tokens and max_len is 11: cut it, or build"):
        model(src, tgt)


@pytest.mark.usefixtures("unchecked_shapes")
def test_batches_that_differ_are_refused():
    model = build()
    with pytest.raises(ValueError, match="there are 3 source sentences and 2 target sentences"):
        model(SRC, TGT[:2])
    memory = model.encode(SRC[:2])
    with pytest.raises(ValueError, match="there are 2 source sentences and 3 target sentences"):
        model.decode(TGT, memory=memory, src=SRC[:2])
    with pytest.raises(ValueError, match="there are 2 source sentences and 3 target sentences"):
        model.decode(TGT, memory=memory, src=SRC[:2], cache=model.new_cache())
    with pytest.raises(ValueError, match=r"key must be .*batch of 3 .*got the shape \(2, 7, 22\)"):
        model.decode(TGT, memory=model.encode(SRC[:2]), src=SRC)
    with pytest.raises(ValueError, match=r"must fit scores of the shape \(3, 5, 4\)"):
        model.decode(TGT, memory=model.encode(SRC[:, :4]), src=SRC)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"src_vocab_size": 0}, "src_vocab_size must be at least 1, got 0"),
        ({"tgt_vocab_size": -1}, "tgt_vocab_size must be at least 1, got -1"),
        ({"d_model": 0}, "d_model must be at least 1, got 0"),
        ({"n_heads": 0}, "n_heads must be at least 1, got 0"),
        ({"d_ff": 0}, "d_ff must be at least 1, got 0"),
        ({"n_layers": 0}, "n_layers must be at least 1, got 0"),
        ({"max_len": 0}, "max_len must be at least 1, got 0"),
        ({"n_kv_heads": 0}, "n_kv_heads must be at least 1, got 0"),
        ({"n_kv_heads": 3}, r"n_heads \(2\) must be divisible by n_kv_heads \(3\)"),
        ({"norm": "batch"}, "norm must be one of layer, rms, got 'batch'"),
        ({"attention_dropout": 1.0}, r"attention_dropout must lie in \[0, 1\), got 1.0"),
        ({"pad_id": -1}, "pad_id must lie from 0 to 16, got -1"),
        ({"pad_id": 17}, "pad_id must lie from 0 to 16, got 17"),
        (
            {"positions": "turned"},
            "sinusoidal_halves, learned, rotary, alibi, none, got 'turned'",
        ),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"dropout": -0.1}, r"dropout must lie in \[0, 1\), got -0.1"),
        ({"n_heads": 4}, r"d_model \(22\) must be divisible by n_heads \(4\)"),
        ({"d_model": 21, "n_heads": 3}, r"d_model \(21\) must be even"),
        (
            {"activation": "tanh"},
            "activation must be one of relu, gelu, gelu_tanh, silu, squared_relu, swiglu, got 'tanh'",
        ),
        (
            {"n_heads": 2, "positions": "rotary"},
            r"rotate columns in pairs: d_head \(11\) must be even",
        ),
    ],
)
def test_configurations_that_make_no_model_are_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        EncoderDecoder(dataclasses.replace(CONFIG, **changes))


def test_norm_kind_throughout_a_translator():
    for norm, kind in (("layer", LayerNorm), ("rms", RMSNorm)):
        parts = [
            part for part in build(norm=norm, pre_norm=True).modules() if type(part) in (LayerNorm, RMSNorm)
        ]
        assert [type(part) for part in parts] == [kind] * (5 * LAYERS + 2)


def test_every_attention_of_a_translator_is_normalized():
    attentions = [part for part in build(qk_norm=True).modules() if isinstance(part, MultiHeadAttention)]
    assert len(attentions) == 3 * LAYERS
    assert all(part.norm_q is not None and part.norm_k is not None for part in attentions)


def test_zero_init_translator_ignores_the_source():
    model = EncoderDecoder(dataclasses.replace(CONFIG, pre_norm=True, zero_init=True)).eval()
    close(model(SRC, TGT), model(SRC.flip(0), TGT))
    plain = EncoderDecoder(dataclasses.replace(CONFIG, pre_norm=True)).eval()
    assert (plain(SRC, TGT) - plain(SRC.flip(0), TGT)).abs().max() > 1e-3


def test_a_configuration_cannot_be_changed():
    with pytest.raises(dataclasses.FrozenInstanceError):
        CONFIG.d_model = 4


def test_a_configuration_is_the_papers_unless_told_otherwise():
    own = {"src_vocab_size": 5, "tgt_vocab_size": 7, "positions": "sinusoidal"}
    choices = {"tie_output": True, "share_embeddings": False, "pad_id": 0, "output_bias": False}
    layers = dataclasses.asdict(TransformerConfig())
    assert dataclasses.asdict(EncoderDecoderConfig(5, 7)) == layers | own | choices | {
        "scale_embedding": True
    }
