"""Our models are Hugging Face's BERT, GPT-2, Llama and Marian: outputs and gradients, with random weights."""

from pathlib import Path

import pytest
import torch
from hf_twins import (
    VOCAB,
    Twin,
    bert,
    copy_from_hf,
    gpt2,
    hf_twins,
    llama,
    marian,
    mistral,
    mixtral,
    same_gradients_as_hf,
    saved,
)
from torch import Tensor, nn
from torch_twins import close, normal
from transformers import BertForSequenceClassification, BertForTokenClassification, LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from exformer import from_hugging_face
from exformer.hub.hugging_face.configs import read_config
from exformer.models.classification import ClassHead, TagHead
from exformer.models.encoder_lm import EncoderLM
from exformer.nn.mixture_of_experts import balance_loss, record_routing
from exformer.nn.positions.rotary import RopeScaling

pytestmark = pytest.mark.usefixtures("float64")
CLASSES = 5
IDS = torch.tensor([[5, 16, 3, 7, 9, 4, 2], [6, 11, 2, 14, 0, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 0]])
TGT = torch.tensor([[1, 18, 4, 3, 9], [1, 7, 2, 0, 0]])
EVERY_WAY_TO_ATTEND = pytest.mark.parametrize("attention", ["eager", "sdpa"])
LEFT_PADDED = pytest.mark.parametrize("padding", [[0, 0], [0, 3]], ids=["whole", "left-padded"])


def read(theirs: nn.Module, folder: Path) -> tuple[nn.Module, nn.Module, list[Twin]]:
    """Return our model of theirs, theirs with random weights, and which parameter is which."""
    theirs = saved(theirs, folder)
    ours = from_hugging_face(folder).model
    named = dict(ours.named_parameters())
    if ours.kind == "encoder-decoder":
        del named["output_bias"]  # which does not learn there
    return ours, theirs, hf_twins(named, theirs)


def same_gradients(got: Tensor, wanted: Tensor, *, counts: Tensor, pairs: list[Twin]) -> None:
    """Hold outputs and gradients equal; padding has no target, so no gradient comes from there."""
    close(got, wanted)
    direction = normal(*got.shape).detach() * counts
    got.backward(direction)
    wanted.backward(direction)
    same_gradients_as_hf(pairs)


@EVERY_WAY_TO_ATTEND
@pytest.mark.parametrize("segments", [None, SEGMENTS], ids=["one-segment", "two-segments"])
def test_encoder_lm_is_bert(tmp_path, segments, attention):
    ours, theirs, pairs = read(bert(attn_implementation=attention), tmp_path)
    got = ours(IDS, segments=segments)
    wanted = theirs(IDS, attention_mask=(IDS != 0).long(), token_type_ids=segments).logits
    same_gradients(got, wanted, counts=(IDS != 0)[..., None], pairs=pairs)


@pytest.mark.parametrize(
    ("head", "peer"),
    [
        (ClassHead(20, n_classes=CLASSES), BertForSequenceClassification),
        (TagHead(20, n_tags=CLASSES), BertForTokenClassification),
    ],
    ids=["class", "tags"],
)
def test_heads_are_berts(tmp_path, head, peer):
    theirs = saved(bert(peer, num_labels=CLASSES), tmp_path)
    model = EncoderLM(read_config(theirs.config.to_dict())[1]).eval()
    head = head.double().eval()
    mine = nn.ModuleDict({"model": model, "head": head}).named_parameters()
    of_the_other_head = ("transform", "norm_output", "output_bias")
    named = {name.removeprefix("model."): p for name, p in mine}
    named = {name: p for name, p in named.items() if not name.startswith(of_the_other_head)}
    pairs = hf_twins(named, theirs)
    copy_from_hf(pairs)
    got = head(model.states(IDS, segments=SEGMENTS))
    wanted = theirs(IDS, attention_mask=(IDS != 0).long(), token_type_ids=SEGMENTS).logits
    counts = (IDS != 0)[..., None] if got.ndim == 3 else torch.ones(2, 1)
    same_gradients(got, wanted, counts=counts, pairs=pairs)


@EVERY_WAY_TO_ATTEND
def test_decoder_lm_is_gpt2(tmp_path, attention):
    ours, theirs, pairs = read(gpt2(attn_implementation=attention), tmp_path)
    same_gradients(ours(IDS), theirs(IDS).logits, counts=torch.ones(1), pairs=pairs)


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
@LEFT_PADDED
def test_decoder_lm_is_llama(tmp_path, n_kv_heads, padding):
    ours, theirs, pairs = read(llama(num_key_value_heads=n_kv_heads), tmp_path)
    attention_mask = (torch.arange(IDS.size(1)) >= torch.tensor(padding)[:, None]).long()
    seen = attention_mask[..., None]  # what padding is turned into says nothing
    wanted = theirs(IDS, attention_mask=attention_mask, use_cache=False).logits
    got = ours(IDS, padding=torch.tensor(padding) if any(padding) else None)
    same_gradients(got * seen, wanted * seen, counts=torch.ones(1), pairs=pairs)
    # Token by token, over the cache of each.
    cache, kept = ours.new_cache(), None
    for t in range(3, IDS.size(1)):
        new = slice(0 if t == 3 else t, t + 1)
        mine = ours(IDS[:, new], cache=cache, padding=torch.tensor(padding) if t == 3 else None)
        other = theirs(
            IDS[:, new], attention_mask=attention_mask[:, : t + 1], past_key_values=kept, use_cache=True
        )
        kept = other.past_key_values
        close(mine[:, -1], other.logits[:, -1])


@pytest.mark.parametrize("window", [1, 3, 5, 40])
@LEFT_PADDED
def test_decoder_lm_with_a_window_is_mistral(tmp_path, window, padding):
    ours, theirs, pairs = read(mistral(sliding_window=window), tmp_path)
    ids = torch.randint(1, VOCAB, (2, 33))
    attention_mask = (torch.arange(ids.size(1)) >= torch.tensor(padding)[:, None]).long()
    seen, left = attention_mask[..., None], torch.tensor(padding) if any(padding) else None
    wanted = theirs(ids, attention_mask=attention_mask, use_cache=False).logits
    same_gradients(ours(ids, padding=left) * seen, wanted * seen, counts=torch.ones(1), pairs=pairs)
    cache, start = ours.new_cache(), 0
    for end in (7, 8, 9, 20, 21, 33):  # in steps and pieces, far beyond max_len
        got = ours(ids[:, start:end], cache=cache, padding=None if start else left)
        close(got * seen[:, start:end], (wanted * seen)[:, start:end])
        start = end


@pytest.mark.parametrize("experts_per_token", [1, 2, 3])
def test_decoder_lm_with_experts_is_mixtral(tmp_path, experts_per_token):
    theirs = mixtral(num_experts_per_tok=experts_per_token, sliding_window=3)
    ours, theirs, pairs = read(theirs, tmp_path)
    wanted = theirs(IDS, use_cache=False, output_router_logits=True)
    with record_routing() as routing:
        got = ours(IDS)
    same_gradients(got, wanted.logits, counts=torch.ones(1), pairs=pairs)
    for mine, other in zip(routing, wanted.router_logits, strict=True):
        close(mine.flatten(end_dim=1), other)
    # The balance loss, theirs in float32 always: of each layer, of all together, and without padding.
    options, seen = {"num_experts": 5, "top_k": experts_per_token}, IDS != 0
    for logits in (*routing, torch.cat(routing)):
        found = balance_loss(logits, experts_per_token=experts_per_token).item()
        assert found == pytest.approx(
            load_balancing_loss_func((logits.flatten(end_dim=1),), **options).item()
        )
    assert found == pytest.approx(wanted.aux_loss.item())
    found = balance_loss(routing[0], experts_per_token=experts_per_token, counts=seen)
    theirs_seen = load_balancing_loss_func((routing[0].flatten(end_dim=1),), **options, attention_mask=seen)
    assert found.item() == pytest.approx(theirs_seen.item())


@EVERY_WAY_TO_ATTEND
@pytest.mark.parametrize("activation", ["relu", "silu"])
def test_encoder_decoder_is_marian(tmp_path, activation, attention):
    own = {"activation_function": activation, "attn_implementation": attention, "scale_embedding": True}
    theirs = marian(decoder_vocab_size=29, share_encoder_decoder_embeddings=False, **own)
    ours, theirs, pairs = read(theirs, tmp_path)
    got = ours(IDS, TGT)
    wanted = theirs(
        IDS,
        attention_mask=(IDS != 0).long(),
        decoder_input_ids=TGT,
        decoder_attention_mask=(TGT != 0).long(),
        use_cache=False,
    ).logits
    same_gradients(got, wanted, counts=(TGT != 0)[..., None], pairs=pairs)


@pytest.mark.parametrize(
    ("scaling", "theirs"),
    [
        (RopeScaling(4.0), {"rope_type": "linear", "factor": 4.0}),
        (
            RopeScaling(8.0, original_max_len=8192),
            {
                "rope_type": "llama3",
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 8192,
            },
        ),
        (
            RopeScaling(3.0, original_max_len=100, low_freq_factor=0.5, high_freq_factor=7.0),
            {
                "rope_type": "llama3",
                "factor": 3.0,
                "low_freq_factor": 0.5,
                "high_freq_factor": 7.0,
                "original_max_position_embeddings": 100,
            },
        ),
    ],
    ids=["linear", "llama-3.1", "llama-other"],
)
@pytest.mark.parametrize("base", [10_000.0, 500_000.0])
def test_rope_scaling_is_hugging_faces(scaling: RopeScaling, theirs: dict, base: float) -> None:
    config = LlamaConfig(
        hidden_size=256, num_attention_heads=2, rope_parameters={**theirs, "rope_theta": base}
    )
    wanted, factor = ROPE_INIT_FUNCTIONS[theirs["rope_type"]](config, torch.device("cpu"))
    frequency = base ** (-torch.arange(0, 128, 2, dtype=torch.float64) / 128)
    assert factor == 1.0
    torch.testing.assert_close(scaling.scale(frequency).float(), wanted, rtol=3e-6, atol=0)
