"""Optimizers: what decays, and which parameters are matrices inside the layers."""

import math

import pytest
import torch
from torch import nn

from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.training.config import TrainingConfig
from exformer.training.optimizers import adamw, make_optimizers, split_parameters

SIZES = {"d_model": 6, "n_heads": 2, "d_ff": 10, "n_layers": 2, "max_len": 7}


def test_one_step_of_adamw_by_hand() -> None:
    # The first step goes by the rate against the sign of the slope; a matrix of 2 loses 0.1 · 0.5 · 2 before.
    matrix, vector = nn.Parameter(torch.full((2, 3), 2.0)), nn.Parameter(torch.full((4,), 2.0))
    optimizer = adamw([matrix, vector], weight_decay=0.5)
    for group in optimizer.param_groups:
        group["lr"] = 0.1
    matrix.grad, vector.grad = torch.full((2, 3), -7.0), torch.full((4,), 3.0)
    optimizer.step()
    torch.testing.assert_close(matrix.data, torch.full((2, 3), 2.0 - 0.1 + 0.1))
    torch.testing.assert_close(vector.data, torch.full((4,), 2.0 - 0.1))


def test_adamw_is_the_one_that_is_not_fused() -> None:
    torch.manual_seed(0)
    ours, theirs = (nn.Parameter(torch.ones(3, 2)) for _ in range(2))
    fused = adamw([ours], betas=(0.8, 0.9), weight_decay=0.1)
    plain = torch.optim.AdamW([theirs], lr=0.01, betas=(0.8, 0.9), eps=1e-9, weight_decay=0.1, fused=False)
    fused.param_groups[0]["lr"] = 0.01
    for _ in range(5):
        ours.grad = torch.randn(3, 2)
        theirs.grad = ours.grad.clone()
        fused.step()
        plain.step()
    torch.testing.assert_close(ours, theirs)


def test_gradients_of_a_billionth_count_half() -> None:
    # The first step of Adam is lr · g / (|g| + ε): half of lr where the gradient is as small as ε, 10⁻⁹.
    parameter = nn.Parameter(torch.zeros(3, 2))
    optimizer = adamw([parameter])
    optimizer.param_groups[0]["lr"] = 0.01
    parameter.grad = torch.full((3, 2), 1e-9)
    optimizer.step()
    torch.testing.assert_close(parameter.data, torch.full((3, 2), -0.005))


@pytest.mark.parametrize("decay", [-1.0, math.nan])
def test_weights_must_not_grow(decay: float) -> None:
    with pytest.raises(ValueError, match=f"weight_decay must be at least 0, got {decay}"):
        adamw([nn.Parameter(torch.ones(3, 2))], weight_decay=decay)


@pytest.mark.parametrize("kind", ["decoder", "both"])
def test_matrices_inside_the_layers(kind: str) -> None:
    if kind == "decoder":
        model = DecoderLM(DecoderLMConfig(11, tie_output=False, **SIZES))
    else:
        model = EncoderDecoder(EncoderDecoderConfig(11, 11, pre_norm=True, share_embeddings=True, **SIZES))
    names = {id(p): name for name, p in model.named_parameters()}
    inside, rest = ([names[id(p)] for p in part] for part in split_parameters(model))
    assert sorted(inside + rest) == sorted(names.values())
    assert all(name.startswith(("layers.", "encoder.", "decoder.")) for name in inside)
    assert {dict(model.named_parameters())[name].ndim for name in inside} == {2}
    assert {name.split(".")[0] for name in rest} >= {"norm" if kind == "decoder" else "decoder_norm"}
    tables = [name for name in rest if dict(model.named_parameters())[name].ndim == 2]
    wanted = ["embedding.weight", "positions.weight", "output.weight"]
    assert sorted(tables) == sorted(wanted if kind == "decoder" else ["tgt_embedding.weight"])
    assert any("feed_forward" in name for name in inside)
    assert any("attention" in name for name in inside)


def test_what_has_two_axes_or_more_decays() -> None:
    parameters = [nn.Parameter(torch.ones((2,) * axes)) for axes in range(4)]
    groups = adamw(parameters, weight_decay=0.5).param_groups
    assert [(group["weight_decay"], [p.ndim for p in group["params"]]) for group in groups] == [
        (0.5, [2, 3]),
        (0.0, [0, 1]),
    ]


def test_muon_without_matrices_is_refused() -> None:
    config = TrainingConfig(optimizer="muon")
    deep = nn.ModuleDict({"blocks": nn.ModuleDict({"h": nn.ModuleList([nn.Linear(4, 4)])})})
    frozen = DecoderLM(DecoderLMConfig(11, tie_output=False, **SIZES))
    frozen.layers.requires_grad_(False)
    for model in (deep, nn.Sequential(nn.Sequential(nn.Linear(4, 4))), frozen):
        with pytest.raises(ValueError, match=r"got none that is trainable: keep the layers .* or take adamw"):
            make_optimizers(model, config)
        assert make_optimizers(model, TrainingConfig())


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_frozen_parameters_are_left_out(optimizer: str) -> None:
    model = DecoderLM(DecoderLMConfig(11, tie_output=False, **SIZES)).requires_grad_(False)
    config = TrainingConfig(optimizer=optimizer)
    with pytest.raises(ValueError, match="all parameters of the model are frozen: set requires_grad"):
        make_optimizers(model, config)
    matrix = model.layers[0].feed_forward.w_1.weight
    for trained in ([matrix], [matrix, model.output.weight]):
        for parameter in trained:
            parameter.requires_grad = True
        found = [
            parameter
            for each, _ in make_optimizers(model, config)
            for group in each.param_groups
            for parameter in group["params"]
        ]
        assert list(map(id, found)) == list(map(id, trained))
        model.requires_grad_(False)
    frozen = nn.Parameter(torch.ones(2, 2), requires_grad=False)
    (group,) = adamw([model.output.weight.requires_grad_(), frozen]).param_groups
    assert len(group["params"]) == 1


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
def test_optimizers_have_the_settings_of_the_config(optimizer: str) -> None:
    config = TrainingConfig(optimizer=optimizer, betas=(0.8, 0.9), momentum=0.7, weight_decay=0.3)
    model = DecoderLM(DecoderLMConfig(11, **SIZES))
    wanted = {"AdamW": {"betas": (0.8, 0.9)}, "Muon": {"momentum": 0.7}}
    for each, _ in make_optimizers(model, config):
        assert all(wanted[type(each).__name__].items() <= group.items() for group in each.param_groups)
        assert each.param_groups[0]["weight_decay"] == 0.3
