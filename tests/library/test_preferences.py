"""Learning from judgments: by hand, as another library computes it, gradients, padding, refusals."""

import math

import pytest
import torch
import torch.nn.functional as F

from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.training.preferences import (
    completion_log_probabilities,
    completion_mask,
    dpo_loss,
    group_advantages,
)

pytestmark = pytest.mark.usefixtures("float64")
EOS = 2


def log_p(model, ids, *, prompt_length=1):
    mask = completion_mask(ids, prompt_length=prompt_length, eos_id=EOS)
    return completion_log_probabilities(model(ids), ids, mask=mask)


@pytest.fixture
def model():
    torch.manual_seed(1)
    return DecoderLM(DecoderLMConfig(11, d_model=6, n_heads=2, n_layers=1)).eval()


# DPO: the numbers of two pairs by hand, with beta 0.1. Margins 1.3 and -2.5.
D = torch.float64
CHOSEN, REJECTED = torch.tensor([-1.0, -4.0], dtype=D), torch.tensor([-2.0, -3.0], dtype=D)
BEFORE = torch.tensor([-1.5, -3.0], dtype=D), torch.tensor([-1.2, -4.5], dtype=D)


def loss_of(chosen=CHOSEN, rejected=REJECTED, before=BEFORE, beta=0.1):
    return dpo_loss(chosen, rejected, reference_chosen=before[0], reference_rejected=before[1], beta=beta)


def test_dpo_by_hand():
    # log(1 + exp(-0.13)) and log(1 + exp(0.25))
    assert loss_of().item() == pytest.approx((0.6302581947 + 0.8259394199) / 2, abs=1e-7)
    assert loss_of(before=(CHOSEN, REJECTED)).item() == pytest.approx(math.log(2))


@pytest.mark.parametrize("beta", [0.05, 0.1, 1.0, 7.0])
def test_dpo_as_trl_computes_its_sigmoid_loss(beta):
    # trl's DPOTrainer.dpo_loss: the ratio of the model minus that of the reference, label smoothing 0.
    logits = (CHOSEN - REJECTED) - (BEFORE[0] - BEFORE[1])
    theirs = -F.logsigmoid(beta * logits) * (1 - 0.0) - F.logsigmoid(-beta * logits) * 0.0
    torch.testing.assert_close(loss_of(beta=beta), theirs.mean(), atol=1e-12, rtol=0)


def test_the_gradient_of_dpo_is_that_of_the_paper():
    # Rafailov et al., section 4: -beta sigma(-beta margin) (grad chosen - grad rejected)
    chosen, rejected = CHOSEN.clone().requires_grad_(), REJECTED.clone().requires_grad_()
    loss_of(chosen, rejected).backward()
    weight = 0.1 * torch.sigmoid(-0.1 * torch.tensor([1.3, -2.5])) / 2
    torch.testing.assert_close(chosen.grad, -weight)
    torch.testing.assert_close(rejected.grad, weight)


def test_dpo_of_large_margins_neither_overflows_nor_vanishes():
    far = torch.tensor([-5_000.0])
    assert loss_of(far, 0 * far, (0 * far, 0 * far), 1.0).item() == pytest.approx(5_000.0)


@pytest.mark.parametrize("beta", [0.0, -0.1, float("nan")])
def test_dpo_refuses_a_beta(beta):
    with pytest.raises(ValueError, match="beta must be above 0"):
        loss_of(beta=beta)


def test_dpo_of_no_pair_is_refused():
    none = torch.zeros(0)
    with pytest.raises(ValueError, match="there is no pair"):
        loss_of(none, none, (none, none))


def test_a_mask_by_hand():
    ids = torch.tensor([[1, 5, 2, 7, 2, 2], [1, 5, 3, 7, 8, 9], [1, 5, 2, 2, 0, 0], [1, 5, 2, 0, 0, 0]])
    assert completion_mask(ids, prompt_length=3, eos_id=EOS).int().tolist() == [
        [0, 0, 0, 1, 1, 0],  # an end token in the prompt ends nothing; one after the end does not count
        [0, 0, 0, 1, 1, 1],  # no end: all tokens count
        [0, 0, 0, 1, 0, 0],  # an end at once
        [0, 0, 0, 1, 1, 1],
    ]
    each = completion_mask(ids, prompt_length=torch.tensor([1, 6, 2, 2]), eos_id=EOS)
    assert each.sum(dim=1).tolist() == [2, 0, 1, 1]


def test_the_mask_is_that_of_trl():
    ids = torch.randint(0, 6, (50, 9), generator=torch.Generator().manual_seed(0))
    completion = ids[:, 3:]
    is_eos = completion == EOS
    end = torch.full((50,), is_eos.size(1))
    end[is_eos.any(dim=1)] = is_eos.int().argmax(dim=1)[is_eos.any(dim=1)]
    theirs = torch.arange(is_eos.size(1)) <= end[:, None]
    ours = completion_mask(ids, prompt_length=3, eos_id=EOS)
    assert (ours[:, 3:] == theirs).all()
    assert not ours[:, :3].any()


@pytest.mark.parametrize("length", [-1, 5])
def test_a_prompt_longer_than_its_row_is_refused(length):
    with pytest.raises(ValueError, match="from 0 to 4"):
        completion_mask(torch.ones(2, 4, dtype=torch.long), prompt_length=length, eos_id=EOS)


def test_log_probability_is_the_sum_over_the_completion(model):
    ids = torch.tensor([[1, 5, 6, 7, 2, 0, 0]])
    steps = model(ids).log_softmax(dim=-1)[0]
    by_hand = sum(steps[t, ids[0, t + 1]] for t in (1, 2, 3))
    torch.testing.assert_close(log_p(model, ids, prompt_length=2), by_hand[None])


def test_an_impossible_token_of_the_prompt_counts_for_nothing():
    logits, ids = torch.zeros(1, 3, 4), torch.tensor([[1, 2, 3]])
    logits[0, 0, 2] = -torch.inf  # 0 times it would be nan
    found = completion_log_probabilities(logits, ids, mask=torch.tensor([[False, False, True]]))
    torch.testing.assert_close(found, -torch.tensor([4.0]).log())


def test_padding_and_what_follows_the_end_change_nothing(model):
    short = torch.tensor([[1, 5, 6, 2]])
    for rest in ([0, 0, 0], [7, 8, 2]):
        longer = torch.cat([short, torch.tensor([rest])], dim=1)
        torch.testing.assert_close(log_p(model, longer), log_p(model, short))


def test_probabilities_of_all_texts_sum_to_1(model):
    first = torch.arange(11).repeat_interleave(11)
    ids = torch.stack([torch.ones_like(first), first, torch.arange(11).repeat(11)], dim=1)
    ids[first == EOS, 2] = 0
    texts = torch.unique(ids, dim=0)
    assert log_p(model, texts).exp().sum().item() == pytest.approx(1.0)


def test_a_first_token_that_counts_is_refused(model):
    ids = torch.tensor([[1, 5, 2]])
    with pytest.raises(ValueError, match="first token has no probability"):
        completion_log_probabilities(model(ids), ids, mask=torch.ones(1, 3, dtype=torch.bool))


def test_advantages_by_hand():
    # mean 2, squares 1 + 1 + 4 + 4 = 10, s = sqrt(10 / 3)
    found = group_advantages(torch.tensor([[1.0, 3.0, 0.0, 4.0]]))
    torch.testing.assert_close(found, torch.tensor([[-1.0, 1.0, -2.0, 2.0]]) / math.sqrt(10 / 3))
    plain = group_advantages(torch.tensor([[1.0, 3.0, 0.0, 4.0]]), scale=False)
    torch.testing.assert_close(plain, torch.tensor([[-1.0, 1.0, -2.0, 2.0]]))


def test_advantages_are_compared_within_a_group_alone():
    found = group_advantages(torch.tensor([[1.0, 0.0], [100.0, 90.0]]))
    torch.testing.assert_close(found[0], found[1])


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("reward", [0.0, 0.1, 1 / 3, 7e8])
def test_a_constant_group_teaches_nothing(reward, scale):
    assert (group_advantages(torch.full((1, 7), reward), scale=scale) == 0).all()


def test_a_group_of_one_is_refused():
    with pytest.raises(ValueError, match="at least two rewards"):
        group_advantages(torch.ones(3, 1))


def test_a_step_raises_what_was_rewarded(model):
    ids = torch.tensor([[1, 5, 6, 2], [1, 7, 8, 2]])
    before = log_p(model, ids).detach()
    advantages = group_advantages(torch.tensor([[1.0, 0.0]]))[0]
    (-(advantages * log_p(model, ids)).mean()).backward()
    with torch.no_grad():
        for p in model.parameters():
            p -= 0.01 * p.grad
    after = log_p(model, ids)
    assert after[0] > before[0]
    assert after[1] < before[1]
