"""Mixture of experts: who is chosen, what they give together, the balance loss, and models made of them."""

import pytest
import torch
from torch import nn
from torch_twins import close, randomize

from exformer.data.masking import MaskedBatch
from exformer.data.padding import pad
from exformer.data.translation import Seq2SeqBatch
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.nn.config import TransformerConfig
from exformer.nn.feedforward import FeedForward
from exformer.nn.loss import cross_entropy
from exformer.nn.mixture_of_experts import MixtureOfExperts, balance_loss, record_routing, route
from exformer.training.config import TrainingConfig
from exformer.training.trainer import Trainer

pytestmark = pytest.mark.usefixtures("float64")
SIZES = {"d_model": 10, "n_heads": 2, "d_ff": 7, "n_layers": 2, "max_len": 11, "dropout": 0.0}
EXPERTS = {"n_experts": 5, "experts_per_token": 2}


def mixture(n_experts: int = 5, experts_per_token: int = 2) -> MixtureOfExperts:
    module = MixtureOfExperts(
        6,
        n_experts=n_experts,
        experts_per_token=experts_per_token,
        make_expert=lambda: FeedForward(6, d_ff=7, activation="swiglu"),
    )
    randomize(module, seed=2)
    return module


def decoder(**choices: object) -> DecoderLM:
    torch.manual_seed(4)
    model = DecoderLM(DecoderLMConfig(13, **SIZES, **EXPERTS, **choices))
    randomize(model, seed=3)
    return model


def inputs() -> torch.Tensor:
    return torch.randn(3, 4, 6, generator=torch.Generator().manual_seed(1), dtype=torch.float64)


def test_a_route_by_hand() -> None:
    logits = torch.tensor([[0.1, 0.4, 0.3, 0.2], [0.7, 0.1, 0.1, 0.1]]).log()
    weights, chosen = route(logits, experts_per_token=2)
    close(weights[0], torch.tensor([4 / 7, 3 / 7]))
    assert chosen[0].tolist() == [1, 2]
    assert chosen[1, 0] == 0
    close(weights.sum(dim=-1), torch.ones(2))
    weights, chosen = route(logits, experts_per_token=1)
    close(weights, torch.ones(2, 1))


def test_half_precision_routes_in_float32() -> None:
    assert route(torch.zeros(2, 3).bfloat16(), experts_per_token=2)[0].dtype == torch.float32
    module, x = mixture().bfloat16(), inputs().bfloat16()
    assert module(x).dtype == torch.bfloat16
    with torch.autocast("cpu", torch.bfloat16):
        assert mixture().float()(inputs().float()).dtype == torch.float32


@pytest.mark.parametrize("experts_per_token", [1, 2, 5])
def test_parity_with_the_weighted_sum_of_experts(experts_per_token) -> None:
    module = mixture(experts_per_token=experts_per_token)
    results = []
    for dense in (False, True):
        x = inputs().requires_grad_()
        module.zero_grad()
        if dense:
            weights, chosen = route(module.router(x), experts_per_token=experts_per_token)
            shares = torch.zeros(3, 4, 5).scatter(-1, chosen, weights)
            output = sum(shares[..., [number]] * expert(x) for number, expert in enumerate(module.experts))
        else:
            output = module(x)
        (output * inputs().cos()).sum().backward()
        results.append([output, x.grad, *[p.grad for p in module.parameters()]])
    for got, wanted in zip(*results, strict=True):
        close(got, wanted)


def test_an_expert_that_nobody_chooses() -> None:
    module = mixture(n_experts=3, experts_per_token=1)
    with torch.no_grad():
        module.router.weight.zero_()
        module.router.weight[1] = inputs()[0, 0]
    x = inputs()[:1, :1]
    close(module(x), module.experts[1](x))
    module(x).sum().backward()
    for number in (0, 2):  # data parallelism and optimizers find a gradient
        assert all((p.grad == 0).all() for p in module.experts[number].parameters())


def test_balance_by_hand() -> None:
    # Both tokens choose expert 0; the second choices are 1 and 2.
    p = torch.tensor([[0.5, 0.3, 0.1, 0.1], [0.6, 0.1, 0.2, 0.1]])
    wanted = 4 * (1.0 * 0.55 + 0.5 * 0.2 + 0.5 * 0.15)
    close(balance_loss(p.log(), experts_per_token=2), torch.tensor(wanted))
    close(balance_loss(p.log()[None], experts_per_token=2), torch.tensor(wanted))
    only = balance_loss(p.log(), experts_per_token=2, counts=torch.tensor([True, False]))
    close(only, torch.tensor(4 * (0.5 + 0.3)))


def test_the_bounds_of_balance() -> None:
    even = torch.eye(4).repeat(3, 1) * 50  # each expert by a quarter of the tokens, almost surely
    assert balance_loss(even, experts_per_token=1).item() == pytest.approx(1.0)
    one = torch.tensor([50.0, 0.0, 0.0, 0.0]).repeat(12, 1)
    assert balance_loss(one, experts_per_token=1).item() == pytest.approx(4.0)


def test_a_language_model_adds_its_balance_in_training_alone() -> None:
    model, ids = decoder(balance_weight=0.5), pad([[3, 4, 5, 6, 7], [8, 9]], pad_id=0)
    read, targets = ids[:, :-1], ids[:, 1:]
    with record_routing() as logits:
        plain = cross_entropy(model(read), targets, pad_id=0)
    counts = read != 0
    balance = torch.stack([balance_loss(each[counts], experts_per_token=2) for each in logits]).mean()
    assert len(logits) == 2
    close(model.train().loss(ids), plain + 0.5 * balance)
    close(model.eval().loss(ids), plain)
    close(decoder(balance_weight=0.0).train().loss(ids), plain)


def test_other_models_add_their_balance_in_training() -> None:
    ids = pad([[3, 4, 5, 6, 7], [8, 9]], pad_id=0)
    for model, batch, n_mixtures in (
        (EncoderLM(EncoderLMConfig(13, **SIZES, **EXPERTS)), MaskedBatch(ids, ids * (ids == 4)), 2),
        (
            EncoderDecoder(EncoderDecoderConfig(13, 13, **SIZES, **EXPERTS)),
            Seq2SeqBatch(ids[:, :3], ids, ids),
            4,
        ),
    ):
        with record_routing() as logits:
            plain = model.eval().loss(batch)
        assert len(logits) == n_mixtures
        counts = [ids[:, : each.size(1)] != 0 for each in logits]
        each = [balance_loss(a[c], experts_per_token=2) for a, c in zip(logits, counts, strict=True)]
        close(model.train().loss(batch), plain + 0.01 * torch.stack(each).mean())


def test_balance_is_learned() -> None:
    torch.manual_seed(0)
    batch = torch.randint(1, 13, (8, 11))
    unevenness = []
    for weight in (0.0, 0.5):
        torch.manual_seed(1)
        model = DecoderLM(
            DecoderLMConfig(13, **SIZES, n_experts=8, experts_per_token=1, balance_weight=weight)
        )
        with torch.no_grad():
            for layer in model.layers:
                layer.feed_forward.router.weight.mul_(4)  # uneven at first
        Trainer(model, [batch], config=TrainingConfig(steps=120, lr=0.01, warmup=5)).fit()
        with record_routing() as logits:
            model.eval()(batch)
        unevenness.append(max(balance_loss(each, experts_per_token=1).item() for each in logits))
    assert unevenness[1] < 1.05 < 1.1 < unevenness[0]


def test_a_mixture_of_one_is_its_expert() -> None:
    model = decoder()
    one = DecoderLM(DecoderLMConfig(13, **SIZES, n_experts=1, experts_per_token=1)).eval()
    plain = DecoderLM(DecoderLMConfig(13, **SIZES)).eval()
    plain.load_state_dict({
        name.replace("experts.0.", ""): p for name, p in one.state_dict().items() if "router" not in name
    })  # fmt: skip
    ids = torch.tensor([[3, 4, 5]])
    close(one(ids), plain(ids))
    assert sum(p.numel() for p in model.parameters()) > sum(p.numel() for p in plain.parameters())


@pytest.mark.usefixtures("unchecked_shapes")
def test_wrong_numbers_of_experts() -> None:
    for n_experts, experts_per_token in ((0, 1), (3, 0), (3, 4), (2.5, 1)):
        for make in (
            lambda n, k: mixture(n, k),
            lambda n, k: TransformerConfig(n_experts=n, experts_per_token=k),
        ):
            with pytest.raises(ValueError, match=r"n_experts must be|experts_per_token must "):
                make(n_experts, experts_per_token)
    with pytest.raises(ValueError, match="balance_weight must be at least 0, got -1"):
        TransformerConfig(n_experts=3, balance_weight=-1.0)


def test_a_zero_start_of_each_expert() -> None:
    model = DecoderLM(DecoderLMConfig(13, **SIZES, **EXPERTS, zero_init=True))
    experts = [module for module in model.modules() if isinstance(module, FeedForward)]
    assert len(experts) == 2 * 5
    assert all((expert.w_2.weight == 0).all() for expert in experts)
    assert isinstance(model.layers[0].feed_forward, nn.Module)


def test_a_start_token_that_is_padding_is_balanced() -> None:
    """Marian's target begins with its padding token: the decoder reads it, so its expert counts."""
    model = EncoderDecoder(EncoderDecoderConfig(13, 13, **SIZES, **EXPERTS))
    src, target = torch.tensor([[3, 4, 5]]), torch.tensor([[6, 7, 8]])
    batch = Seq2SeqBatch(src, torch.tensor([[0, 6, 7]]), target)
    with record_routing() as logits:
        plain = model.eval().loss(batch)
    balance = torch.stack([balance_loss(each.flatten(0, -2), experts_per_token=2) for each in logits])
    close(model.train().loss(batch), plain + 0.01 * balance.mean())
