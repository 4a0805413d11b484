"""How a stack begins: layers that add nothing, and learn all the same."""

import dataclasses

import pytest
import torch
from exformer.nn.initialization import zero_outputs
from test_continuation import CONFIG as TRANSLATOR
from test_continuation import SRC, TGT
from test_decoder_lm import CONFIG, IDS
from torch_twins import close, randomize

from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.nn.layers import DecoderLayer, EncoderLayer
from exformer.training.loss import cross_entropy

pytestmark = pytest.mark.usefixtures("float64")


@pytest.mark.parametrize("layer", [EncoderLayer, DecoderLayer])
def test_a_layer_begins_as_the_identity(layer) -> None:
    stack = layer(12, n_heads=3, d_ff=7, pre_norm=True).eval()
    randomize(stack)  # biases too
    zero_outputs(stack)
    x = torch.randn(2, 5, 12)
    more = (torch.randn(2, 4, 12),) if layer is DecoderLayer else ()
    assert torch.equal(stack(x, *more), x)


def test_only_the_last_matrices_are_zero() -> None:
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


def test_a_new_language_model_is_its_embedding() -> None:
    model = DecoderLM(dataclasses.replace(CONFIG, zero_init=True)).eval()
    x = model.positions(model.embedding(IDS))
    close(model(IDS), model.embedding.logits(model.norm(x)))


def test_a_new_translator_does_not_see_the_source_yet() -> None:
    model = EncoderDecoder(dataclasses.replace(TRANSLATOR, pre_norm=True, zero_init=True)).eval()
    close(model(SRC, TGT), model(SRC.flip(0), TGT))


def test_from_the_second_step_on_everything_learns() -> None:
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
