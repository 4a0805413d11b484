"""A GGUF file is read as the model that was written to it, and what we lack is refused by name."""

import sys

import numpy as np
import pytest
import torch
from gguf import GGMLQuantizationType, GGUFWriter, RopeScalingType, TokenType
from gguf.quants import dequantize, quantize

from exformer import DecoderLM, DecoderLMConfig, from_gguf, load_model
from exformer.cli.main import main
from exformer.hub.gguf import _NAMES
from exformer.hub.hugging_face.names import their_name

TOKENS = ["<|end|>", "<|start|>", "1", "2", "a", "b", "Ġ", "ab", "12", "ĠĠ"]
MERGES = ["a b", "1 2", "Ġ Ġ"]


def random_model(**changes):
    torch.manual_seed(5)
    sizes = {"d_model": 64, "n_heads": 4, "n_kv_heads": 2, "d_ff": 96, "n_layers": 3, "max_len": 37}
    llama = {"norm": "rms", "norm_eps": 1e-5, "activation": "swiglu", "positions": "rotary", "bias": False}
    config = DecoderLMConfig(len(TOKENS), **sizes, **llama, scale_embedding=False, **changes)
    return DecoderLM(config).eval()


def write(
    path,
    model,
    *,
    kind=GGMLQuantizationType.F32,
    rule="smollm",
    architecture="llama",
    merges=MERGES,
    settings=None,
    change=None,
):
    """Write a model as GGUF; return the weights as the file has them, by its names."""
    c, writer = model.config, GGUFWriter(path, architecture)
    writer.add_context_length(c.max_len)
    writer.add_embedding_length(c.d_model)
    writer.add_feed_forward_length(c.d_ff)
    writer.add_block_count(c.n_layers)
    writer.add_head_count(c.n_heads)
    writer.add_head_count_kv(c.n_kv_heads)
    writer.add_layer_norm_rms_eps(c.norm_eps)
    writer.add_rope_freq_base(c.rope_base)
    writer.add_rope_dimension_count(c.d_head)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre(rule)
    writer.add_token_list(TOKENS)
    writer.add_token_merges(merges)
    writer.add_token_types([TokenType.CONTROL] * 2 + [TokenType.NORMAL] * (len(TOKENS) - 2))
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(0)
    writer.add_pad_token_id(0)
    if settings:
        settings(writer)
    tensors = {their_name(name, _NAMES): tensor for name, tensor in model.state_dict().items()}
    if change:
        change(tensors)
    kept = {}
    for name, tensor in tensors.items():
        few = kind if tensor.dim() == 2 else GGMLQuantizationType.F32
        packed = quantize(tensor.numpy(), few)
        kept[name] = torch.from_numpy(np.array(dequantize(packed, few)))
        writer.add_tensor(name, packed, raw_dtype=few)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return kept


@pytest.mark.parametrize("tie_output", [True, False])
@pytest.mark.parametrize("kind", ["F32", "Q8_0", "Q4_1"])
def test_logits_are_those_of_the_written_weights(tmp_path, kind, tie_output):
    model = random_model(rope_base=5e4, tie_output=tie_output)
    kept = write(tmp_path / "m.gguf", model, kind=GGMLQuantizationType[kind])
    ids = torch.randint(len(TOKENS), (2, 29))
    before = model(ids)
    ours = {name: kept[their_name(name, _NAMES)] for name in model.state_dict()}
    model.load_state_dict(ours)
    read = from_gguf(tmp_path / "m.gguf").model
    assert read.config.tie_output is tie_output
    assert not read.training
    torch.testing.assert_close(read(ids), model(ids), rtol=0, atol=0)
    assert torch.equal(before, model(ids)) is (kind == "F32")


def test_digits_are_tokens_of_their_own_by_smollms_rule(tmp_path):
    write(tmp_path / "m.gguf", random_model())
    write(tmp_path / "g.gguf", random_model(), rule="gpt-2")
    text, rules = "ab  12", ("m.gguf", "g.gguf")
    smollm, gpt2 = (from_gguf(tmp_path / name).tokenizer for name in rules)
    assert from_gguf(tmp_path / "m.gguf").model.config.begin_id == 1
    assert [TOKENS[i] for i in smollm.encode(text)] == ["ab", "ĠĠ", "1", "2"]
    assert [TOKENS[i] for i in gpt2.encode(text)] == ["ab", "Ġ", "Ġ", "12"]
    assert smollm.decode(smollm.encode(text)) == gpt2.decode(gpt2.encode(text)) == text
    assert (smollm.bos_id, smollm.eos_id, smollm.pad_id) == (1, 0, 0)


def test_the_command_imports_a_file(tmp_path, capsys):
    model = random_model()
    write(tmp_path / "m.gguf", model)
    main(["import", str(tmp_path / "m.gguf"), "--out", str(tmp_path / "ours")])
    assert "m.gguf" not in capsys.readouterr().err
    loaded = load_model(tmp_path / "ours")
    ids = torch.tensor([loaded.tokenizer.encode("ab 12")])
    torch.testing.assert_close(loaded.model(ids), model(ids), rtol=0, atol=0)


def remove_a_norm(tensors):
    del tensors["blk.1.ffn_norm.weight"]


def add_frequencies(tensors):
    tensors["rope_freqs.weight"] = torch.ones(8)


def without_epsilon(writer):
    del writer.kv_data[0]["llama.attention.layer_norm_rms_epsilon"]


def with_scaled_positions(writer):
    writer.add_rope_scaling_type(RopeScalingType.YARN)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"architecture": "qwen2"}, "has the architecture 'qwen2': the library reads 'llama' only"),
        ({"rule": "llama-bpe"}, "the tokenizer 'gpt2' with the rule 'llama-bpe'"),
        ({"merges": ["a b", "2 b"]}, "tokenizers can't read the content"),
        ({"settings": without_epsilon}, r"lacks llama\.attention\.layer_norm_rms_epsilon$"),
        ({"settings": with_scaled_positions}, "scales its rotary positions"),
        ({"change": remove_a_norm}, r"missing blk\.1\.ffn_norm\.weight"),
        ({"change": add_frequencies}, r"left over rope_freqs\.weight"),
    ],
)
def test_what_the_library_lacks_is_refused(tmp_path, wrong, message):
    write(tmp_path / "m.gguf", random_model(), **wrong)
    with pytest.raises(ValueError, match=message):
        from_gguf(tmp_path / "m.gguf")


def test_a_file_of_another_kind_is_refused(tmp_path):
    (tmp_path / "m.gguf").write_bytes(b"not a model" * 9)
    with pytest.raises(ValueError, match="can't be read as a GGUF file"):
        from_gguf(tmp_path / "m.gguf")


def test_without_the_library_gguf_the_message_names_it(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "gguf", None)
    with pytest.raises(ValueError, match=r"pip install 'exformer\[gguf\]'"):
        from_gguf(tmp_path / "m.gguf")
