"""Folders of transformers are read and written: logits to ten digits, the same text, and what is refused."""

import json
import math
import re
import sys
from pathlib import Path

import pytest
import torch
from hf_twins import MAX_LEN, VOCAB, bert, exact, gpt2, llama, marian, mistral, mixtral, saved
from safetensors.torch import load_file, save_file
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from torch import Tensor, nn
from torch_twins import close, randomize
from transformers import (
    BertConfig,
    BertForMaskedLM,
    BertModel,
    GPT2Config,
    GPT2LMHeadModel,
    LlamaConfig,
    MarianConfig,
    MarianMTModel,
    MistralConfig,
    MixtralConfig,
)

from exformer import (
    DecoderLM,
    DecoderLMConfig,
    EncoderDecoder,
    EncoderDecoderConfig,
    EncoderLM,
    EncoderLMConfig,
    RecurrentLM,
    RopeScaling,
    WordTokenizer,
    from_hugging_face,
    generate,
    load_model,
    save_model,
    to_hugging_face,
    translate,
)
from exformer.cli.main import main
from exformer.generation.next_token import Continuation
from exformer.generation.sampling import greedy
from exformer.hub.hugging_face import tensors
from exformer.hub.hugging_face.configs import read_config
from exformer.tokenizers.hugging_face import HuggingFaceTokenizer
from exformer.tokenizers.loading import load_tokenizer

pytestmark = pytest.mark.usefixtures("float64")
END = 1000  # no model ends a text
IDS = torch.tensor([[5, 16, 3, 7, 9, 4, 2], [6, 11, 2, 14, 20, 1, 8]])
SEEN = torch.tensor([[5, 16, 3, 7, 9, 4, 2], [6, 11, 2, 14, 0, 0, 0]])
EACH_MODEL_ONCE = ("gpt2", "llama", "mistral", "mixtral", "bert", "marian")


@pytest.fixture(autouse=True)
def same_weights() -> None:
    """Seed what transformers starts its weights from: a text may end early by chance."""
    torch.manual_seed(0)


def logits(model: nn.Module) -> Tensor:
    """Return the scores that a model of ours, or theirs, gives."""
    ours = hasattr(model, "kind")
    if isinstance(model, EncoderDecoder | MarianMTModel):
        tgt = torch.tensor([[0, 18, 4, 3, 9], [0, 7, 2, 5, 6]])
        if ours:
            return model(SEEN, tgt)
        mask = (SEEN != 0).long()
        return model(SEEN, attention_mask=mask, decoder_input_ids=tgt, use_cache=False).logits
    if isinstance(model, EncoderLM | BertForMaskedLM | BertModel):
        segments = (torch.arange(7) > 3).long().expand(2, -1)
        if ours:
            return (model if model.config.head else model.states)(SEEN, segments=segments)
        return model(SEEN, attention_mask=(SEEN != 0).long(), token_type_ids=segments)[0]
    return model(IDS) if ours else model(IDS, use_cache=False).logits


def same_greedy_text(ours: nn.Module, theirs: nn.Module) -> None:
    """Compare the ids of twelve greedy steps, with each side's own loop and cache."""
    options = {"max_new_tokens": 12, "do_sample": False, "num_beams": 1, "pad_token_id": 0}
    if isinstance(ours, EncoderDecoder):
        wanted = theirs.generate(SEEN, attention_mask=(SEEN != 0).long(), eos_token_id=END, **options)
        start = torch.zeros(2, 1, dtype=torch.int64)
        with torch.no_grad():
            found = greedy(Continuation(ours, src=SEEN), start, eos_id=END, max_new_tokens=12)
        wanted = wanted[:, 1:]
    else:
        mask = torch.ones_like(IDS)
        wanted = theirs.generate(IDS, attention_mask=mask, eos_token_id=END, **options)[:, IDS.size(1) :]
        with torch.no_grad():
            found = greedy(Continuation(ours), IDS, eos_id=END, max_new_tokens=12)
    assert [list(ids) for ids in found] == wanted.tolist()
    assert all(len(ids) == 12 for ids in found)


def there_and_back(theirs: nn.Module, tmp_path: Path) -> nn.Module:
    """Read a model of theirs, compare, write it, let transformers read it, compare again; return ours."""
    theirs = saved(theirs, tmp_path / "theirs")
    ours = from_hugging_face(tmp_path / "theirs").model
    assert not ours.training
    close(logits(ours), logits(theirs))
    to_hugging_face(tmp_path / "back", ours)
    again, report = type(theirs).from_pretrained(
        tmp_path / "back", dtype=torch.float64, output_loading_info=True, attn_implementation="sdpa"
    )
    pooler = {"pooler.dense.weight", "pooler.dense.bias"}  # BertModel has one, states do not depend on it
    assert not report["missing_keys"] - pooler
    assert not report["unexpected_keys"]
    close(logits(exact(again.eval())), logits(theirs))
    state = again.state_dict()
    unused = {"cls.predictions.bias", *pooler}
    for name, value in theirs.state_dict().items():
        assert name in unused or torch.equal(state[name], value), name
    assert from_hugging_face(tmp_path / "back").model.config == ours.config, "those of training too"
    return ours


# --- the families ---


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "changes",
    [{}, {"activation_function": "relu", "layer_norm_epsilon": 0.01, "n_inner": 13, "n_head": 5}],
    ids=["as-it-is", "changed"],
)
def test_gpt2(tmp_path: Path, tied: bool, changes: dict) -> None:
    ours = there_and_back(gpt2(tie_word_embeddings=tied, **changes), tmp_path)
    same_greedy_text(ours, gpt2().from_pretrained(tmp_path / "theirs", dtype=torch.float64))
    assert ours.config.begin_id == 1


LLAMA3 = {
    "rope_type": "llama3",
    "rope_theta": 5e5,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 16,
}


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"num_key_value_heads": 2},
        {"num_key_value_heads": 1, "head_dim": 10},
        {"rope_parameters": {"rope_type": "linear", "rope_theta": 1e4, "factor": 3.0}},
        {"rope_parameters": LLAMA3, "head_dim": 16, "num_key_value_heads": 3},
        {"attention_bias": True, "rms_norm_eps": 0.01},
        {"mlp_bias": True, "attention_bias": True},
    ],
    ids=["default", "grouped", "wide-heads", "linear", "llama3", "biases", "all-biases"],
)
def test_llama(tmp_path: Path, tied: bool, changes: dict) -> None:
    theirs = llama(tie_word_embeddings=tied, **changes)
    ours = there_and_back(theirs, tmp_path)
    same_greedy_text(ours, theirs)


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize(
    "changes", [{}, {"sliding_window": None}, {"head_dim": 10, "rope_parameters": LLAMA3}]
)
def test_mistral(tmp_path: Path, tied: bool, changes: dict) -> None:
    theirs = mistral(tie_word_embeddings=tied, **changes)
    ours = there_and_back(theirs, tmp_path) if changes.get("sliding_window", 3) else None
    if ours is None:  # without a window it is a Llama, and is written as one
        theirs = saved(theirs, tmp_path)
        ours = from_hugging_face(tmp_path).model
        close(logits(ours), logits(theirs))
    assert ours.config.window == changes.get("sliding_window", 3)
    same_greedy_text(ours, theirs)


@pytest.mark.parametrize(
    "changes",
    [{}, {"sliding_window": 4, "num_experts_per_tok": 1}, {"head_dim": 10, "router_aux_loss_coef": 0.5}],
)
def test_mixtral(tmp_path: Path, changes: dict) -> None:
    theirs = mixtral(**changes)
    ours = there_and_back(theirs, tmp_path)
    config = theirs.config
    assert ours.config.experts_per_token == config.num_experts_per_tok
    assert ours.config.balance_weight == config.router_aux_loss_coef
    same_greedy_text(ours, theirs)


def test_llama_settings_of_older_files(tmp_path: Path) -> None:
    """Before version 5 base and scaling were two settings, and the type had another name."""
    theirs = saved(llama(rope_parameters=LLAMA3), tmp_path)
    path = tmp_path / "config.json"
    config = json.loads(path.read_text())
    scaling = config.pop("rope_parameters")
    config |= {"rope_theta": scaling.pop("rope_theta"), "rope_scaling": scaling, "head_dim": None}
    scaling["type"] = scaling.pop("rope_type")
    path.write_text(json.dumps(config))
    close(logits(from_hugging_face(tmp_path).model), logits(theirs))
    config |= {"rope_scaling": None, "rope_theta": 77.0}
    path.write_text(json.dumps(config))
    found = from_hugging_face(tmp_path).model.config
    assert (found.rope_base, found.rope_scaling) == (77.0, None)


FAMILIES = [GPT2Config, LlamaConfig, BertConfig, MarianConfig, MistralConfig, MixtralConfig]


@pytest.mark.parametrize("config", FAMILIES)
def test_what_a_file_leaves_out_is_as_in_transformers(config: type) -> None:
    """A setting that is missing has their default, or is asked for; without a first token there is none."""
    whole = config().to_dict()
    for name in whole.keys() - {"model_type", "bos_token_id"}:
        others = {each: value for each, value in whole.items() if each != name}
        try:
            found = read_config(others)
        except ValueError as error:
            found = str(error)
        assert found in (read_config(whole), f"config.json lacks {name}"), name


@pytest.mark.parametrize("d_head", [4, 6])
def test_rotary_layout_matters(tmp_path: Path, monkeypatch, d_head: int) -> None:
    """Rows that are copied as they are give other logits, and are seen by no shape."""
    theirs = saved(llama(head_dim=d_head), tmp_path)
    close(logits(from_hugging_face(tmp_path).model), logits(theirs))
    monkeypatch.setattr(tensors, "neighbors", lambda matrix, *, d_head: matrix)
    assert (logits(from_hugging_face(tmp_path).model) - logits(theirs)).abs().max() > 0.05


@pytest.mark.parametrize("d_head", [2, 4, 10])
@pytest.mark.parametrize("shape", [(60, 7), (60,)], ids=["matrix", "bias"])
def test_row_orders_are_inverse(d_head: int, shape: tuple[int, ...]) -> None:
    matrix = torch.randn(shape)
    mixed = tensors.neighbors(matrix, d_head=d_head)
    assert torch.equal(tensors.halves(mixed, d_head=d_head), matrix)
    for i in range(d_head // 2):
        assert torch.equal(mixed[2 * i], matrix[i])
        assert torch.equal(mixed[2 * i + 1], matrix[i + d_head // 2])


@pytest.mark.parametrize("tied", [True, False])
@pytest.mark.parametrize("changes", [{}, {"layer_norm_eps": 0.01, "type_vocab_size": 3, "pad_token_id": 4}])
def test_bert(tmp_path: Path, tied: bool, changes: dict) -> None:
    theirs = bert(tie_word_embeddings=tied, **changes)
    ours = there_and_back(theirs, tmp_path) if not changes else None
    if ours is None:  # another padding: no token of SEEN is to be masked
        saved(theirs, tmp_path)
        ours = from_hugging_face(tmp_path).model
        assert (ours.config.pad_id, ours.config.n_segments, ours.config.norm_eps) == (4, 3, 0.01)
        ids = torch.tensor([[5, 6, 4, 4]])
        close(ours(ids), theirs(ids, attention_mask=(ids != 4).long()).logits)


def test_bert_without_its_head(tmp_path: Path) -> None:
    ours = there_and_back(bert(BertModel), tmp_path)
    assert from_hugging_face(tmp_path / "back").card["architecture"] == "BertModel"
    with pytest.raises(ValueError, match=r"no head and predicts no tokens: ask for model\.states\(ids\)"):
        ours(SEEN)
    saved(bert(), tmp_path / "theirs")
    settings = json.loads((tmp_path / "back" / "config.json").read_text())
    (tmp_path / "theirs" / "config.json").write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=r"do not fit BertModel: missing none; left over cls\.predictions"):
        from_hugging_face(tmp_path / "theirs")


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"activation_function": "relu"},
        {"decoder_vocab_size": 29, "share_encoder_decoder_embeddings": False},
        {"share_encoder_decoder_embeddings": False, "tie_word_embeddings": False},
    ],
    ids=["shared", "relu", "two-vocabularies", "untied"],
)
def test_marian(tmp_path: Path, scale: bool, changes: dict) -> None:
    theirs = marian(scale_embedding=scale, **changes)
    ours = there_and_back(theirs, tmp_path)
    same_greedy_text(ours, theirs)
    assert (ours.output_bias != 0).all()


# --- models of ours ---


@pytest.mark.parametrize("tie_output", [True, False])
def test_scaled_embeddings_become_gpt2s(tmp_path: Path, tie_output: bool) -> None:
    config = DecoderLMConfig(VOCAB, d_model=20, n_heads=2, max_len=MAX_LEN, tie_output=tie_output)
    model = DecoderLM(config).eval()
    randomize(model)
    before = {name: value.clone() for name, value in model.state_dict().items()}
    to_hugging_face(tmp_path, model)
    theirs = GPT2LMHeadModel.from_pretrained(tmp_path, dtype=torch.float64).eval()
    close(logits(theirs), logits(model))
    assert all(torch.equal(before[name], value) for name, value in model.state_dict().items())
    close(logits(from_hugging_face(tmp_path).model), logits(model))


def test_translator_without_output_bias(tmp_path: Path) -> None:
    settings = {"positions": "sinusoidal_halves", "share_embeddings": True, "activation": "silu"}
    config = EncoderDecoderConfig(VOCAB, VOCAB, d_model=20, n_heads=2, max_len=MAX_LEN, **settings)
    model = EncoderDecoder(config).eval()
    randomize(model)
    to_hugging_face(tmp_path, model)
    theirs = MarianMTModel.from_pretrained(tmp_path, dtype=torch.float64).eval()
    close(logits(exact(theirs)), logits(model))
    assert not load_file(tmp_path / "model.safetensors")["final_logits_bias"].any()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (DecoderLMConfig(9, d_model=8, n_heads=2, qk_norm=True), "gpt2 has no qk_norm True$"),
        (DecoderLMConfig(9, d_model=8, n_heads=2, bias=False), "gpt2 has no bias False$"),
        (
            DecoderLMConfig(
                9, d_model=8, n_heads=2, norm="rms", activation="swiglu", positions="rotary", o_bias=False
            ),
            "llama has no o_bias False$",
        ),
        (DecoderLMConfig(9, d_model=8, n_heads=2, window=3), "gpt2 has no window 3$"),
        (
            DecoderLMConfig(9, d_model=8, n_heads=2, n_experts=3),
            "gpt2 has no n_experts 3",
        ),
        (EncoderLMConfig(9, d_model=8, n_heads=2, n_segments=2, pre_norm=True), "bert has no pre_norm True$"),
        (EncoderDecoderConfig(9, 9, d_model=8, n_heads=2), "marian has no positions 'sinusoidal'$"),
    ],
    ids=["qk-norm", "bias", "o-bias", "window", "experts", "pre-norm", "sines"],
)
def test_settings_that_no_family_has(tmp_path: Path, config, message: str) -> None:
    build = {DecoderLMConfig: DecoderLM, EncoderLMConfig: EncoderLM, EncoderDecoderConfig: EncoderDecoder}
    model = build[type(config)](config)
    with pytest.raises(ValueError, match=f"no family of Hugging Face has this configuration: {message}"):
        to_hugging_face(tmp_path / "x", model)
    assert not (tmp_path / "x").exists()


def test_only_transformers_are_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="model must be one of DecoderLM, EncoderLM, EncoderDecoder, got "):
        to_hugging_face(tmp_path, RecurrentLM(5, d_model=4))


# --- files ---


@pytest.mark.parametrize("kind", EACH_MODEL_ONCE)
def test_weights_in_several_files(tmp_path: Path, kind: str) -> None:
    theirs = saved(globals()[kind](), tmp_path, max_shard_size="10KB")
    assert len(list(tmp_path.glob("model-*.safetensors"))) > 2
    close(logits(from_hugging_face(tmp_path).model), logits(theirs))


def test_an_export_leaves_no_file_of_an_earlier_model(tmp_path: Path) -> None:
    saved(gpt2(), tmp_path, max_shard_size="10KB")
    (tmp_path / "generation_config.json").write_text('{"eos_token_id": 3}')
    index = (tmp_path / "model.safetensors.index.json").read_text()
    model = from_hugging_face(tmp_path).model
    nn.init.ones_(model.embedding.weight)
    to_hugging_face(tmp_path, model)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["config.json", "model.safetensors"]
    (tmp_path / "model.safetensors.index.json").write_text(index)  # one that another program left
    assert (from_hugging_face(tmp_path).model.embedding.weight == 1).all()


def test_names_of_older_files(tmp_path: Path) -> None:
    """Files of the body alone have no prefix; constants, and heads of other tasks, are left aside."""
    theirs = saved(gpt2(), tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    state = {name.removeprefix("transformer."): value for name, value in state.items()}
    state |= {"h.0.attn.bias": torch.ones(1, 1, 9, 9), "h.1.attn.masked_bias": torch.tensor(-1e4)}
    save_file(state | {"lm_head.weight": state["wte.weight"].clone()}, tmp_path / "model.safetensors")
    close(logits(from_hugging_face(tmp_path).model), logits(theirs))

    theirs = saved(bert(), tmp_path)
    state = load_file(tmp_path / "model.safetensors")
    old = {"LayerNorm.weight": "LayerNorm.gamma", "LayerNorm.bias": "LayerNorm.beta"}
    for new, name in old.items():
        state = {key.replace(new, name): value for key, value in state.items()}
    state |= {"bert.pooler.dense.weight": torch.ones(20, 20), "cls.seq_relationship.bias": torch.ones(2)}
    state |= {"bert.embeddings.position_ids": torch.arange(MAX_LEN)[None]}
    save_file(state, tmp_path / "model.safetensors")
    close(logits(from_hugging_face(tmp_path).model), logits(theirs))


def changed(folder: Path, change) -> None:
    """Change the tensors of a folder."""
    path = folder / "model.safetensors"
    state = load_file(path)
    change(state)
    save_file({name: value.contiguous() for name, value in state.items()}, path)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            lambda state: state.pop("transformer.wpe.weight"),
            r"the weights do not fit GPT2LMHeadModel: missing transformer\.wpe\.weight; left over none",
        ),
        (
            lambda state: state.update({"transformer.h.7.ln_1.bias": torch.ones(2)}),
            r"missing none; left over transformer\.h\.7\.ln_1\.bias",
        ),
        (
            lambda state: state.update({"lm_head.weight": torch.ones(VOCAB, 20)}),  # it is not the embedding
            r"missing none; left over lm_head\.weight",
        ),
        (
            lambda state: state.update({"transformer.ln_f.bias": torch.ones(3)}),
            r"transformer\.ln_f\.bias has the shape \(3,\), which does not fit norm\.bias \(20,\)",
        ),
        (
            lambda state: state.update({"transformer.h.0.mlp.c_fc.weight": torch.ones(80, 20)}),
            r"c_fc\.weight has the shape \(80, 20\), which does not fit layers\.0\.feed_forward\.w_1",
        ),
        (
            lambda state: state["transformer.ln_f.bias"].fill_(math.nan),
            r"holds weights that are .*norm\.bias",
        ),
    ],
    ids=["missing", "left-over", "untied", "shape", "transposed", "nan"],
)
def test_weights_that_do_not_fit(tmp_path: Path, change, message: str) -> None:
    saved(gpt2(), tmp_path)
    changed(tmp_path, change)
    with pytest.raises(ValueError, match=message):
        from_hugging_face(tmp_path)


def test_untied_output_must_be_there(tmp_path: Path) -> None:
    saved(llama(tie_word_embeddings=False), tmp_path)
    changed(tmp_path, lambda state: state.pop("lm_head.weight"))
    with pytest.raises(ValueError, match=r"missing lm_head\.weight; left over none"):
        from_hugging_face(tmp_path)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (
            "gpt2",
            {"model_type": "t5"},
            "the model_type 't5': the library has gpt2, llama, mistral, mixtral, bert",
        ),
        ("gpt2", {"model_type": None}, "has the model_type None"),
        ("gpt2", {"n_embd": None}, "config.json lacks n_embd"),
        ("gpt2", {"n_embd": 21}, r"d_model \(21\) must be divisible by n_heads \(2\)"),
        (
            "gpt2",
            {"activation_function": "mish"},
            "has activation_function 'mish': the library has gelu",
        ),
        ("gpt2", {"scale_attn_by_inverse_layer_idx": True}, "inverse_layer_idx True: .* False"),
        ("llama", {"hidden_act": "gelu"}, "has hidden_act 'gelu': the library has 'silu' only"),
        (
            "llama",
            {"rope_parameters": {"rope_type": "yarn"}},
            "the rope_type 'yarn': the library has default",
        ),
        ("llama", {"rope_parameters": {"rope_type": "linear"}}, "config.json lacks factor"),
        ("bert", {"is_decoder": True}, "has is_decoder True: the library has False only"),
        (
            "marian",
            {"decoder_layers": 3},
            "encoder_layers 2 and decoder_layers 3: the library has one",
        ),
        ("marian", {"normalize_before": True}, "has normalize_before True: the library has False only"),
    ],
)
def test_settings_that_we_lack(tmp_path: Path, kind: str, change: dict, message: str) -> None:
    saved(globals()[kind](), tmp_path)
    path = tmp_path / "config.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | change))
    with pytest.raises(ValueError, match=message):
        from_hugging_face(tmp_path)


def test_pickled_weights_are_not_read(tmp_path: Path) -> None:
    saved(gpt2(), tmp_path)
    (tmp_path / "model.safetensors").rename(tmp_path / "pytorch_model.bin")
    with pytest.raises(ValueError, match=r"as pytorch_model\.bin, a format that can run code: .*save_pretr"):
        from_hugging_face(tmp_path)


@pytest.mark.parametrize("files", [{"x": "../secret.safetensors"}, {"x": 3}, ["x"], None])
def test_index_names_files_of_the_folder(tmp_path: Path, files) -> None:
    saved(gpt2(), tmp_path, max_shard_size="10KB")
    path = tmp_path / "model.safetensors.index.json"
    path.write_text(json.dumps({"weight_map": files}))
    with pytest.raises(ValueError, match=f"{re.escape(path.name)} must name a file of the folder for each"):
        from_hugging_face(tmp_path)


def test_folder_without_configuration(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"config\.json can't be read as a configuration of Hugging Face"):
        from_hugging_face(tmp_path)


# --- tokenizers and the command ---


def write_tokenizer(folder: Path) -> Tokenizer:
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    special = ["<pad>", "<s>", "</s>"]
    trainer = trainers.BpeTrainer(vocab_size=35, special_tokens=special, show_progress=False)
    tokenizer.train_from_iterator(["the red fox sleeps", "a fox"], trainer)
    tokenizer.save(str(folder / "tokenizer.json"))
    return tokenizer


def test_tokenizer_comes_along(tmp_path: Path) -> None:
    saved(gpt2(), tmp_path)
    theirs = write_tokenizer(tmp_path)
    model, ours, card = from_hugging_face(tmp_path)
    assert card == {"source": "Hugging Face", "architecture": "GPT2LMHeadModel"}
    assert (ours.vocab_size, ours.pad_id, ours.bos_id, ours.eos_id) == (VOCAB, 0, 1, 2)
    assert ours.encode("the fox") == theirs.encode("the fox").ids
    assert ours.decode([1, *ours.encode("the fox"), 2]) == "the fox"
    assert ours.decode(torch.tensor([1, *ours.encode("the fox"), 2])) == "the fox"
    assert ours.encode("\ufeffthe\u200b f\xadox\0") == ours.encode("the fox")
    assert not {0, 1, 2} & set(ours.encode("the </s> <s> <pad>"))  # plain text
    for wrong in ([3.0], [[3]], [-1], [ours.vocab_size]):
        with pytest.raises(ValueError, match=r"^expected "):
            ours.decode(wrong)
    save_model(tmp_path / "ours", model, ours, card=card)
    again = load_model(tmp_path / "ours")
    text = generate(model, ours, "the fox", max_new_tokens=5, temperature=0.0)
    assert generate(again.model, again.tokenizer, "the fox", max_new_tokens=5, temperature=0.0) == text
    to_hugging_face(tmp_path / "back", again.model, again.tokenizer)
    assert (tmp_path / "back" / "tokenizer.json").read_text() == (tmp_path / "tokenizer.json").read_text()
    assert json.loads((tmp_path / "back" / "config.json").read_text())["eos_token_id"] == 2


def test_a_tokenizer_neither_pads_nor_cuts(tmp_path: Path) -> None:
    theirs = write_tokenizer(tmp_path)
    whole = theirs.encode("the red fox").ids
    theirs.enable_padding(length=9)
    theirs.enable_truncation(2)
    assert len(theirs.encode("the red fox").ids) != len(whole) > 2
    assert HuggingFaceTokenizer(theirs.to_str()).encode("the red fox") == whole


def test_translator_with_tokenizers(tmp_path: Path) -> None:
    theirs = saved(marian(), tmp_path)
    write_tokenizer(tmp_path)
    model, pair, _ = from_hugging_face(tmp_path)
    src, tgt = pair
    assert (src.pad_id, tgt.bos_id, tgt.eos_id) == (0, 0, 2)
    ids = torch.tensor([[*src.encode("the fox"), 2]])
    found = theirs.generate(ids, max_new_tokens=8, do_sample=False, num_beams=1, eos_token_id=2)[0, 1:]
    assert translate(model, pair, "the fox", max_new_tokens=8) == tgt.decode(found.tolist())


def test_several_end_tokens(tmp_path: Path) -> None:
    theirs = saved(llama(eos_token_id=[5, 6]), tmp_path)
    write_tokenizer(tmp_path)
    path, answers = tmp_path / "generation_config.json", {}
    for named in (None, 6, [9, 6, 4]):  # as in Llama 3 Instruct, whose config.json names fewer
        path.write_text(json.dumps({"eos_token_id": named}))
        model, ours, card = from_hugging_face(tmp_path)
        answers[str(named)] = ours.eos_ids
        save_model(tmp_path / "ours", model, ours, card=card)
        assert load_model(tmp_path / "ours").tokenizer.eos_ids == ours.eos_ids
        to_hugging_face(tmp_path / "back", model, ours)
        assert from_hugging_face(tmp_path / "back").tokenizer.eos_ids == ours.eos_ids
        assert ours.decode([7, *ours.eos_ids, 8]) == ours.decode([7, 8])
    assert answers == {"None": [5, 6], "6": [6], "[9, 6, 4]": [6, 9, 4]}
    ids = torch.tensor([[ours.bos_id, *ours.encode("the fox")]])
    greedy = {"do_sample": False, "pad_token_id": 0, "max_new_tokens": 12}
    free = theirs.generate(ids, eos_token_id=-1, **greedy)[0, ids.size(1) :].tolist()
    ours.eos_ids = [ours.eos_id, next(token for token in free if token != free[0])]
    found = theirs.generate(ids, eos_token_id=ours.eos_ids, **greedy)[0, ids.size(1) :].tolist()
    text = generate(model, ours, "the fox", max_new_tokens=12, temperature=0.0)
    assert text == ours.decode([*ids[0], *found[:-1]])[len("the fox") :]
    assert len(found) < 12


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"vocab_size": 3}, "the tokenizer has [0-9]+ tokens, the model 3: they do not fit"),
        ({"eos_id": 99}, "the tokenizer has no eos token: expected one of </s>, .* below [0-9]+ .* got 99"),
    ],
)
def test_tokenizer_messages(tmp_path: Path, options: dict, message: str) -> None:
    write_tokenizer(tmp_path)
    content = (tmp_path / "tokenizer.json").read_text()
    with pytest.raises(ValueError, match=message):
        HuggingFaceTokenizer(content, **options)
    with pytest.raises(ValueError, match=r"tokenizers can't read the content of tokenizer\.json"):
        HuggingFaceTokenizer("{}")


def test_damaged_tokenizer_file(tmp_path: Path) -> None:
    write_tokenizer(tmp_path)
    path = tmp_path / "ours.json"
    HuggingFaceTokenizer((tmp_path / "tokenizer.json").read_text()).save(path)
    found = json.loads(path.read_text())
    assert load_tokenizer(path).encode("fox") == HuggingFaceTokenizer(found["content"]).encode("fox")
    path.write_text(json.dumps(found | {"eos_id": "2"}))
    with pytest.raises(ValueError, match=r"ours\.json is damaged: expected the content of a tokenizer\.json"):
        load_tokenizer(path)
    path.write_text(json.dumps(found | {"content": "{}"}))
    with pytest.raises(ValueError, match=r"ours\.json: tokenizers can't read"):
        load_tokenizer(path)


def test_tokenizers_must_be_installed(tmp_path: Path, monkeypatch) -> None:
    write_tokenizer(tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(ValueError, match=r"by the library tokenizers: pip install 'exformer\[tokenizers\]'"):
        HuggingFaceTokenizer((tmp_path / "tokenizer.json").read_text())


def test_command(tmp_path: Path, capsys) -> None:
    theirs, ours, back = (str(tmp_path / name) for name in ("theirs", "ours", "back"))
    saved(gpt2(), tmp_path / "theirs")
    assert main(["import", theirs, "--out", ours]) == 2
    assert "theirs has no tokenizer.json: write one" in capsys.readouterr().err
    write_tokenizer(tmp_path / "theirs")
    assert main(["import", theirs, "--out", ours]) == 0
    assert capsys.readouterr().out == f"{ours}: GPT2LMHeadModel, 11,380 parameters\n"
    assert main(["generate", "--model", ours, "--prompt", "the", "--tokens", "3"]) == 0
    assert capsys.readouterr().out.startswith("the")
    assert main(["export", "--model", ours, "--hf", back]) == 0
    assert capsys.readouterr().out == f"{back}: config.json, model.safetensors\n"
    assert (tmp_path / "back" / "tokenizer.json").exists()
    assert main(["export", "--model", "shakespeare-char", "--hf", back]) == 2
    assert "no family of Hugging Face has this configuration" in capsys.readouterr().err


def test_export_of_a_model_with_our_tokenizer(tmp_path: Path, capsys) -> None:
    words = WordTokenizer.from_texts(["the red fox"])
    model = DecoderLM(DecoderLMConfig(words.vocab_size, d_model=8, n_heads=2))
    save_model(tmp_path / "ours", model, words, card={})
    assert main(["export", "--model", str(tmp_path / "ours"), "--hf", str(tmp_path / "back")]) == 0
    assert "its tokenizer is one of this library and has no tokenizer.json" in capsys.readouterr().out
    config = json.loads((tmp_path / "back" / "config.json").read_text())
    assert (config["eos_token_id"], config["pad_token_id"]) == (words.eos_id, 0)


def test_a_tokenizer_that_cannot_replace_the_one_there(tmp_path: Path) -> None:
    saved(gpt2(), tmp_path)
    write_tokenizer(tmp_path)
    model, theirs, _ = from_hugging_face(tmp_path)
    for tokenizer in (None, theirs):
        to_hugging_face(tmp_path, model, tokenizer)
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    with pytest.raises(ValueError, match=r"holds the tokenizer\.json of another model, .* choose another"):
        to_hugging_face(tmp_path, model, WordTokenizer.from_texts(["the red fox"]))
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before


@pytest.mark.parametrize("config", [GPT2Config, LlamaConfig])
def test_an_export_without_tokenizer_names_no_end(tmp_path: Path, config: type) -> None:
    theirs = saved((gpt2 if config is GPT2Config else llama)(), tmp_path)
    assert theirs.config.eos_token_id == 2
    to_hugging_face(tmp_path, from_hugging_face(tmp_path).model)
    assert config.from_pretrained(tmp_path).eos_token_id is None


def test_rope_scaling_in_a_written_configuration(tmp_path: Path) -> None:
    scaling = RopeScaling(2.0, original_max_len=8, low_freq_factor=0.5, high_freq_factor=3.0)
    settings = {"norm": "rms", "activation": "swiglu", "positions": "rotary", "bias": False}
    for each in (scaling, RopeScaling(4.0), None):
        config = DecoderLMConfig(9, d_model=8, n_heads=2, rope_scaling=each, rope_base=77.0, **settings)
        to_hugging_face(tmp_path, DecoderLM(config))
        found = from_hugging_face(tmp_path).model.config
        assert (found.rope_scaling, found.rope_base, found.norm_eps) == (each, 77.0, 1e-6)
