"""Our models are Hugging Face's BERT, GPT-2, Llama and Marian: outputs and gradients, with random weights."""

import pytest
import torch
from hf_twins import copy_from_hf, exact, hf_twins, same_gradients_as_hf
from torch import Tensor, nn
from torch_twins import close, normal, randomize
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertForSequenceClassification,
    BertForTokenClassification,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    LlamaForCausalLM,
    MarianConfig,
    MarianMTModel,
    MistralConfig,
    MistralForCausalLM,
    MixtralConfig,
    MixtralForCausalLM,
)
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS
from transformers.models.mixtral.modeling_mixtral import load_balancing_loss_func

from exformer.models.classification import ClassHead, TagHead
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.nn.mixture_of_experts import balance_loss, record_routing
from exformer.nn.normalization import LayerNorm
from exformer.nn.positions.rotary import RopeScaling

pytestmark = pytest.mark.usefixtures("float64")
VOCAB, TGT_VOCAB, HEADS, D_MODEL, D_FF, LAYERS, MAX_LEN, CLASSES = 17, 19, 3, 30, 13, 2, 11, 5
LLAMA_HEADS, LLAMA_D_HEAD = 6, 10
SIZES = {"d_model": D_MODEL, "n_heads": HEADS, "d_ff": D_FF, "n_layers": LAYERS, "max_len": MAX_LEN}
EPS = LayerNorm(2).eps
IDS = torch.tensor([[5, 16, 3, 7, 9, 4, 2], [6, 11, 2, 14, 0, 0, 0]])
SEGMENTS = torch.tensor([[0, 0, 0, 1, 1, 1, 1], [0, 0, 1, 1, 0, 0, 0]])
TGT = torch.tensor([[1, 18, 4, 3, 9], [1, 7, 2, 0, 0]])
EVERY_WAY_TO_ATTEND = pytest.mark.parametrize("attention", ["eager", "sdpa"])


def ready(theirs: nn.Module, seed: int = 3) -> nn.Module:
    """Give a model of theirs random weights in float64, and switch dropout off."""
    theirs = theirs.double().eval()
    randomize(theirs, seed=seed)
    return theirs


def same_gradients(got: Tensor, wanted: Tensor, *, counts: Tensor, pairs: list) -> None:
    """Hold outputs and gradients equal; padding has no target, so no gradient comes from there."""
    close(got, wanted)
    direction = normal(*got.shape).detach() * counts
    got.backward(direction)
    wanted.backward(direction)
    same_gradients_as_hf(pairs)


def bert_config(attention: str = "sdpa", **changes) -> BertConfig:
    return BertConfig(
        vocab_size=VOCAB,
        hidden_size=D_MODEL,
        num_attention_heads=HEADS,
        intermediate_size=D_FF,
        num_hidden_layers=LAYERS,
        max_position_embeddings=MAX_LEN,
        layer_norm_eps=EPS,
        attn_implementation=attention,
        **changes,
    )


@EVERY_WAY_TO_ATTEND
@pytest.mark.parametrize("segments", [None, SEGMENTS], ids=["one-segment", "two-segments"])
def test_encoder_lm_is_bert(segments, attention):
    ours = EncoderLM(EncoderLMConfig(VOCAB, **SIZES, n_segments=2)).eval()
    theirs = ready(BertForMaskedLM(bert_config(attention)))
    pairs = hf_twins(dict(ours.named_parameters()), theirs)
    copy_from_hf(pairs)
    got = ours(IDS, segments=segments)
    wanted = theirs(IDS, attention_mask=(IDS != 0).long(), token_type_ids=segments).logits
    same_gradients(got, wanted, counts=(IDS != 0)[..., None], pairs=pairs)


@pytest.mark.parametrize(
    ("head", "peer"),
    [
        (ClassHead(D_MODEL, n_classes=CLASSES), BertForSequenceClassification),
        (TagHead(D_MODEL, n_tags=CLASSES), BertForTokenClassification),
    ],
    ids=["class", "tags"],
)
def test_heads_are_berts(head, peer):
    model = EncoderLM(EncoderLMConfig(VOCAB, **SIZES, n_segments=2)).eval()
    head = head.double().eval()
    theirs = ready(peer(bert_config(num_labels=CLASSES)))
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
def test_decoder_lm_is_gpt2(attention):
    ours = DecoderLM(DecoderLMConfig(VOCAB, **SIZES, scale_embedding=False)).eval()
    config = GPT2Config(
        vocab_size=VOCAB,
        n_embd=D_MODEL,
        n_head=HEADS,
        n_inner=D_FF,
        n_layer=LAYERS,
        n_positions=MAX_LEN,
        layer_norm_epsilon=EPS,
        activation_function="gelu",
        bos_token_id=1,
        eos_token_id=2,
        attn_implementation=attention,
    )
    theirs = ready(GPT2LMHeadModel(config))
    pairs = hf_twins(dict(ours.named_parameters()), theirs)
    copy_from_hf(pairs)
    same_gradients(ours(IDS), theirs(IDS).logits, counts=torch.ones(1), pairs=pairs)


def llama(n_kv_heads: int, *, model: type = LlamaForCausalLM, config: type = LlamaConfig, **more):
    """Make a Llama, or a model of the same parts."""
    config = config(
        vocab_size=VOCAB,
        hidden_size=LLAMA_HEADS * LLAMA_D_HEAD,
        num_attention_heads=LLAMA_HEADS,
        num_key_value_heads=n_kv_heads,
        intermediate_size=D_FF,
        num_hidden_layers=LAYERS,
        max_position_embeddings=MAX_LEN,
        rms_norm_eps=1e-6,
        rope_parameters={"rope_type": "default", "rope_theta": 10_000.0},
        tie_word_embeddings=False,
        bos_token_id=1,
        eos_token_id=2,
        attn_implementation="sdpa",  # the eager softmax is in float32 always
        **more,
    )
    return exact(ready(model(config)))


def our_llama(n_kv_heads: int, **more) -> DecoderLM:
    config = DecoderLMConfig(
        VOCAB,
        d_model=LLAMA_HEADS * LLAMA_D_HEAD,
        n_heads=LLAMA_HEADS,
        n_kv_heads=n_kv_heads,
        d_ff=D_FF,
        n_layers=LAYERS,
        max_len=MAX_LEN,
        norm="rms",
        pre_norm=True,
        activation="swiglu",
        positions="rotary",
        bias=False,
        tie_output=False,
        scale_embedding=False,
        **more,
    )
    return DecoderLM(config).eval()


@pytest.mark.parametrize("n_kv_heads", [1, 2, 3, 6])
@pytest.mark.parametrize("padding", [[0, 0], [0, 3]], ids=["whole", "left-padded"])
def test_decoder_lm_is_llama(n_kv_heads, padding):
    theirs, ours = llama(n_kv_heads), our_llama(n_kv_heads)
    pairs = hf_twins(dict(ours.named_parameters()), theirs)
    copy_from_hf(pairs)
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
@pytest.mark.parametrize("padding", [[0, 0], [0, 3]], ids=["whole", "left-padded"])
def test_decoder_lm_with_a_window_is_mistral(window, padding):
    theirs = llama(2, model=MistralForCausalLM, config=MistralConfig, sliding_window=window)
    ours, ids = our_llama(2, window=window), torch.randint(1, VOCAB, (2, 3 * MAX_LEN))
    pairs = hf_twins(dict(ours.named_parameters()), theirs)
    copy_from_hf(pairs)
    attention_mask = (torch.arange(ids.size(1)) >= torch.tensor(padding)[:, None]).long()
    seen, left = attention_mask[..., None], torch.tensor(padding) if any(padding) else None
    wanted = theirs(ids, attention_mask=attention_mask, use_cache=False).logits
    same_gradients(ours(ids, padding=left) * seen, wanted * seen, counts=torch.ones(1), pairs=pairs)
    cache, start = ours.new_cache(), 0
    for end in (7, 8, 9, 20, 21, 3 * MAX_LEN):  # in steps and pieces, far beyond max_len
        got = ours(ids[:, start:end], cache=cache, padding=None if start else left)
        close(got * seen[:, start:end], (wanted * seen)[:, start:end])
        start = end


@pytest.mark.parametrize("experts_per_token", [1, 2, 3])
def test_decoder_lm_with_experts_is_mixtral(experts_per_token):
    more = {"num_local_experts": 5, "num_experts_per_tok": experts_per_token, "sliding_window": 3}
    theirs = llama(2, model=MixtralForCausalLM, config=MixtralConfig, **more)
    ours = our_llama(2, n_experts=5, experts_per_token=experts_per_token, window=3)
    pairs = hf_twins(dict(ours.named_parameters()), theirs)
    copy_from_hf(pairs)
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
def test_encoder_decoder_is_marian(activation, attention):
    ours = EncoderDecoder(EncoderDecoderConfig(VOCAB, TGT_VOCAB, **SIZES, activation=activation)).eval()
    sides = ("encoder", "decoder")
    config = MarianConfig(
        vocab_size=VOCAB,
        decoder_vocab_size=TGT_VOCAB,
        share_encoder_decoder_embeddings=False,
        d_model=D_MODEL,
        **{f"{side}_layers": LAYERS for side in sides},
        **{f"{side}_attention_heads": HEADS for side in sides},
        **{f"{side}_ffn_dim": D_FF for side in sides},
        max_position_embeddings=MAX_LEN,
        scale_embedding=True,
        activation_function=activation,
        pad_token_id=0,
        eos_token_id=2,
        forced_eos_token_id=2,
        decoder_start_token_id=1,
        attn_implementation=attention,
    )
    theirs = ready(MarianMTModel(config))
    pairs = hf_twins(dict(ours.named_parameters()), theirs)
    copy_from_hf(pairs)
    with torch.no_grad():  # the same sines and cosines in another order of the columns
        for side, positions in (
            (theirs.model.encoder, ours.src_positions),
            (theirs.model.decoder, ours.tgt_positions),
        ):
            side.embed_positions.weight.copy_(positions.weight)
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
