"""LoRA: what trains and what is frozen, merged and unmerged models, tied weights, adapter files, and PEFT."""

import copy
import json

import pytest
import torch
from peft import LoraConfig, get_peft_model
from torch import nn
from torch_twins import close, randomize

from exformer.generation.generate import generate
from exformer.hub.adapters import load_adapter, save_adapter
from exformer.hub.hugging_face.folder import to_hugging_face
from exformer.hub.pretrained import load_model, save_model
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.nn.lora import LoRALinear, add_lora, lora_layers, merge_lora
from exformer.tokenizers.characters_and_words import CharTokenizer
from exformer.training.config import TrainingConfig
from exformer.training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("float64")
SIZES = {"d_model": 10, "n_heads": 2, "n_kv_heads": 1, "d_ff": 7, "n_layers": 2, "max_len": 11}
IDS = torch.tensor([[3, 4, 5, 6, 7], [8, 9, 10, 3, 2]])
EVERYWHERE = ("w_q", "w_k", "w_v", "w_o", "w_1", "w_2")


def decoder(**choices: object) -> DecoderLM:
    torch.manual_seed(4)
    model = DecoderLM(DecoderLMConfig(13, **SIZES, dropout=0.0, **choices))
    randomize(model, seed=3)
    return model.eval()


def adapted(model: nn.Module, **settings) -> nn.Module:
    """Add LoRA whose matrices are not zero."""
    add_lora(model, **settings)
    with torch.no_grad():
        for _, layer in lora_layers(model):
            layer.lora_b.normal_(generator=torch.Generator().manual_seed(5))
    return model


def test_matrices_have_the_dtype_of_their_layer() -> None:
    layer = LoRALinear(nn.Linear(2, 3, dtype=torch.bfloat16), rank=1, alpha=1.0)
    assert layer(torch.ones(1, 2, dtype=torch.bfloat16)).dtype == torch.bfloat16
    assert {weight.dtype for weight in layer.parameters()} == {torch.bfloat16}


def test_a_layer_by_hand() -> None:
    linear = nn.Linear(2, 2)
    layer = LoRALinear(linear, rank=1, alpha=3.0)
    with torch.no_grad():
        linear.weight.copy_(torch.tensor([[1.0, 2.0], [0.0, 1.0]]))
        linear.bias.copy_(torch.tensor([10.0, 20.0]))
        layer.lora_a.copy_(torch.tensor([[1.0, -1.0]]))
        layer.lora_b.copy_(torch.tensor([[2.0], [5.0]]))
    x = torch.tensor([[4.0, 1.0]])  # A x = 3, B A x = (6, 15), three times that
    close(layer(x), torch.tensor([[6 + 10 + 18.0, 1 + 20 + 45.0]]))
    merged = layer.merge()
    assert type(merged) is nn.Linear
    close(merged.weight, torch.tensor([[1 + 6.0, 2 - 6.0], [15.0, 1 - 15.0]]))
    close(merged(x), torch.tensor([[34.0, 66.0]]))


def test_a_model_begins_as_it_was() -> None:
    model = decoder()
    before = model(IDS)
    torch.manual_seed(0)
    add_lora(model, targets=EVERYWHERE)
    assert torch.equal(model(IDS), before)
    assert all(layer.lora_a.abs().max() > 0 for _, layer in lora_layers(model))


def test_a_starts_as_the_weight_of_a_linear_layer() -> None:
    linear = nn.Linear(16, 3)
    torch.manual_seed(0)
    wanted = nn.Linear(16, 5).weight
    torch.manual_seed(0)
    assert torch.equal(LoRALinear(linear, rank=5, alpha=1.0).lora_a, wanted)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_only_the_small_matrices_train(optimizer) -> None:
    model, ids = add_lora(decoder(), rank=2), IDS
    before = {name: p.detach().clone() for name, p in model.named_parameters()}
    config = TrainingConfig(steps=30, lr=0.02, muon_lr=0.02, warmup=3, optimizer=optimizer, weight_decay=0.1)
    losses = Trainer(model, [ids], config=config).fit()
    assert losses[-1] < losses[0] - 0.1
    for name, p in model.named_parameters():
        learns = name.endswith(("lora_a", "lora_b"))
        assert p.requires_grad == learns
        assert torch.equal(p, before[name]) != learns
        assert (p.grad is not None) == learns


@pytest.mark.parametrize("choices", [{}, {"tie_output": False}, {"bias": False, "n_experts": 3}], ids=str)
def test_merged_is_unmerged_and_stays_so_in_a_file(choices, tmp_path) -> None:
    targets = (*EVERYWHERE, "output") if choices.get("tie_output") is False else EVERYWHERE
    model, tokenizer = decoder(**choices), CharTokenizer.from_texts(["abcdefghij"])
    names = list(model.state_dict())
    adapted(model, rank=3, alpha=5.0, targets=targets)
    wanted = model(IDS)
    with pytest.raises(ValueError, match=r"the model has LoRA: merge_lora\(model\) first, or save_adapter"):
        save_model(tmp_path, model, tokenizer, card={})
    with pytest.raises(ValueError, match=r"the model has LoRA: merge_lora\(model\) first"):
        to_hugging_face(tmp_path, model)
    text = generate(model, tokenizer, "abc", max_new_tokens=6, temperature=0.0)
    assert merge_lora(model) is model
    close(model(IDS), wanted)
    assert list(model.state_dict()) == names
    assert all(p.requires_grad for p in model.parameters())
    save_model(tmp_path, model, tokenizer, card={})
    loaded = load_model(tmp_path).model
    close(loaded(IDS), wanted)
    assert generate(loaded, tokenizer, "abc", max_new_tokens=6, temperature=0.0) == text


def test_lora_after_lora() -> None:
    model = adapted(decoder(), rank=2)
    with pytest.raises(ValueError, match=r"the model has LoRA already: merge_lora\(model\) first"):
        add_lora(model)
    once = merge_lora(model)(IDS)
    adapted(model, rank=1, targets="w_1")
    assert [name for name, _ in lora_layers(model)] == [f"layers.{n}.feed_forward.w_1" for n in (0, 1)]
    assert (model(IDS) - once).abs().max() > 1e-3
    with pytest.raises(ValueError, match="the model has no LoRA that could be merged"):
        merge_lora(decoder())


def test_tied_weights() -> None:
    for target in ("embedding", "output"):
        message = rf"targets must be linear layers of the model \(w_1, .*\), got '{target}': an embedding"
        with pytest.raises(ValueError, match=message):
            add_lora(decoder(), targets=("w_q", target))
    model = decoder(tie_output=False)
    model.output.weight = model.embedding.weight  # by hand
    before = [p.requires_grad for p in model.parameters()]
    message = "embedding.weight and output.weight are one tied weight, and merging would change both: choose"
    with pytest.raises(ValueError, match=message):
        add_lora(model, targets=("w_q", "output"))
    assert [p.requires_grad for p in model.parameters()] == before
    assert not list(lora_layers(model))


@pytest.mark.parametrize("target", ["q", "attention.w_q"])
def test_targets_are_whole_parts_of_names(target) -> None:
    model = decoder()
    with pytest.raises(ValueError, match=f"targets must be linear layers of the model .*, got '{target}'"):
        add_lora(model, targets=("w_v", target))
    assert not list(lora_layers(model))


def test_targets_of_one_side() -> None:
    model = EncoderDecoder(EncoderDecoderConfig(13, 17, **SIZES)).eval()
    add_lora(model, rank=1, targets=["cross_attention.w_q", "decoder.0.feed_forward.w_1"])
    assert [name for name, _ in lora_layers(model)] == [
        "decoder.0.cross_attention.w_q",
        "decoder.0.feed_forward.w_1",
        "decoder.1.cross_attention.w_q",
    ]


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_wrong_rank() -> None:
    for rank in (0, 2.5):
        model = decoder()
        with pytest.raises(ValueError, match=rf"rank must .*, got {rank}"):
            add_lora(model, rank=rank)
        assert all(p.requires_grad for p in model.parameters())


def test_an_adapter_in_a_folder(tmp_path) -> None:
    model = adapted(decoder(), rank=3, alpha=5.0, targets=("w_q", "w_1"))
    save_adapter(tmp_path, model, card={"seed": 7, "rank": "lies"})
    again = decoder()
    card = load_adapter(tmp_path, again)
    assert torch.equal(again(IDS), model(IDS))
    assert (card["kind"], card["rank"], card["alpha"], card["seed"]) == ("LoRA", 3, 5.0, 7)
    assert [p.requires_grad for p in again.parameters()] == [p.requires_grad for p in model.parameters()]
    size = (tmp_path / "adapter.safetensors").stat().st_size
    assert size < 8 * sum(p.numel() for p in model.parameters() if p.requires_grad) + 2000


def test_an_adapter_of_another_model(tmp_path) -> None:
    save_adapter(tmp_path, adapted(decoder()), card={})
    other = decoder()
    with torch.no_grad():
        other.embedding.weight[3, 4] += 0.01
    for model in (other, decoder(tie_output=False)):
        with pytest.raises(ValueError, match="belongs to a DecoderLM with other weights than this"):
            load_adapter(tmp_path, model)
        assert all(p.requires_grad for p in model.parameters())


def test_a_damaged_adapter(tmp_path) -> None:
    save_adapter(tmp_path, adapted(decoder()), card={})
    card = json.loads((tmp_path / "adapter.json").read_text())
    for changes, message in (
        ({"kind": "DecoderLM"}, "the card must be of kind 'LoRA', got 'DecoderLM'"),
        ({"rank": "8"}, "the card must hold rank, alpha and targets of LoRA"),
        ({"rank": 9}, r"lora_a is float64 \(8, 10\), expected"),
        ({"targets": card["targets"][1:]}, "2 unknown"),
        ({"targets": ["nothing"]}, "the card's target nothing is no linear layer of the model"),
    ):
        (tmp_path / "adapter.json").write_text(json.dumps(card | changes))
        model = decoder()
        with pytest.raises(ValueError, match=message):
            load_adapter(tmp_path, model)
        assert all(p.requires_grad for p in model.parameters())
    with pytest.raises(ValueError, match="the model has no LoRA to save"):
        save_adapter(tmp_path / "other", decoder(), card={})


@pytest.mark.usefixtures("unchecked_shapes")  # their layers are no nn.Linear
@pytest.mark.parametrize("targets", [["w_q", "w_v"], list(EVERYWHERE)], ids=len)
def test_peft(targets) -> None:
    """Outputs, gradients and the merged model are those of Hugging Face's PEFT."""
    ours, plain = adapted(decoder(), rank=3, alpha=5.0, targets=targets), decoder()
    theirs = get_peft_model(plain, LoraConfig(r=3, lora_alpha=5, target_modules=targets)).eval()
    pairs = []
    for name, layer in lora_layers(ours):
        twin = theirs.base_model.model.get_submodule(name)
        pairs += [(layer.lora_a, twin.lora_A.default.weight), (layer.lora_b, twin.lora_B.default.weight)]
    assert len(pairs) == sum(p.requires_grad for p in theirs.parameters()) == 2 * 2 * len(targets)
    with torch.no_grad():
        for mine, other in pairs:
            other.copy_(mine)
    got, wanted = ours(IDS), theirs(IDS)
    close(got, wanted)
    got.cos().sum().backward()
    wanted.cos().sum().backward()
    for mine, other in pairs:
        close(mine.grad, other.grad)
    merged = theirs.merge_and_unload()
    for (name, mine), other in zip(
        merge_lora(copy.deepcopy(ours)).named_parameters(), merged.parameters(), strict=True
    ):
        torch.testing.assert_close(mine, other, atol=1e-10, rtol=0, msg=name)
