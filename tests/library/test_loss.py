"""The loss: by hand, against PyTorch's, and what padding must not touch."""

import math

import pytest
import torch
import torch.nn.functional as F
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_twins import close, normal

from exformer.nn.loss import cross_entropy, nll

pytestmark = pytest.mark.usefixtures("float64")
# Two tokens over two symbols: probabilities (1/4, 3/4) and (1/2, 1/2).
LOGITS = torch.tensor([[math.log(1), math.log(3)], [5, 5]], dtype=torch.float64)


def test_cross_entropy_by_hand():
    # -ln 3/4 and -ln 1/2, averaged.
    close(nll(LOGITS, torch.tensor([1, 0])), torch.tensor([-math.log(3 / 4), -math.log(1 / 2)]))
    got = cross_entropy(LOGITS, torch.tensor([1, 0]))
    close(got, torch.tensor((-math.log(3 / 4) - math.log(1 / 2)) / 2))


def test_label_smoothing_by_hand():
    # ε = 0.2 leaves 0.8 to the target and gives 0.2/2 = 0.1 to each symbol, the target included: (0.1, 0.9).
    wanted = torch.tensor(-0.1 * math.log(1 / 4) - 0.9 * math.log(3 / 4))
    close(cross_entropy(LOGITS[:1], torch.tensor([1]), label_smoothing=0.2), wanted)
    close(nll(LOGITS[0], torch.tensor(1), label_smoothing=0.2), wanted)


def test_padding_by_hand():
    # The second token does not count, neither in the sum nor in the divisor, smoothed or not.
    got = cross_entropy(LOGITS, torch.tensor([1, 0]), pad_id=0)
    close(got, torch.tensor(-math.log(3 / 4)))
    got = cross_entropy(LOGITS, torch.tensor([1, 0]), pad_id=0, label_smoothing=0.2)
    close(got, torch.tensor(-0.1 * math.log(1 / 4) - 0.9 * math.log(3 / 4)))


def test_ignored_targets_by_hand():
    # A target of -100 counts no more than padding does.
    for options in ({}, {"pad_id": 1}):
        got = cross_entropy(LOGITS, torch.tensor([-100, 0]), **options)
        close(got, torch.tensor(math.log(2)))
    with pytest.raises(ValueError, match="no target counts"):
        cross_entropy(LOGITS, torch.tensor([-100, 1]), pad_id=1)
    with pytest.raises(ValueError, match="got -100 to 0; cross_entropy leaves out targets of -100, and pad"):
        nll(LOGITS, torch.tensor([-100, 0]))


def test_ignored_targets_and_padding_against_torch():
    logits, targets = normal(6, 7), torch.tensor([1, -100, 0, 5, 0, -100])
    got = cross_entropy(logits, targets, pad_id=0, label_smoothing=0.1)
    plain = F.cross_entropy(logits[[0, 3]], targets[[0, 3]], label_smoothing=0.1)
    ignoring = F.cross_entropy(logits, targets.where(targets != 0, -100), label_smoothing=0.1)
    gradient = torch.autograd.grad(got, logits)[0]
    for wanted in (plain, ignoring):
        close(got, wanted)
        close(gradient, torch.autograd.grad(wanted, logits)[0])


def test_loss_on_a_device_without_reading_it():
    # A tensor on the meta device has no numbers: an operation that wants to look at one fails.
    logits = torch.zeros(2, 3, 7, device="meta", requires_grad=True)
    targets = torch.zeros(2, 3, dtype=torch.int64, device="meta")
    cross_entropy(logits, targets, pad_id=0, label_smoothing=0.1).backward()
    assert logits.grad.shape == logits.shape


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**20),
    pad_id=st.sampled_from([None, 0, 3, -100]),
    label_smoothing=st.sampled_from([0.0, 0.1, 0.37, 0.9]),
    shape=st.sampled_from([(), (5,), (3, 5), (2, 3, 5)]),
)
def test_parity_with_torch_and_with_the_mathematics_written_out(seed, pad_id, label_smoothing, shape):
    logits = normal(*shape, 7, seed=seed)
    targets = torch.randint(7, shape, generator=torch.Generator().manual_seed(seed))
    if pad_id is not None:
        targets = torch.where(normal(*shape, seed=seed + 1) > 0.5, pad_id, targets)
        if (targets == pad_id).all():
            targets.reshape(-1)[0] = 1
    options = {"ignore_index": -1 if pad_id is None else pad_id, "label_smoothing": label_smoothing}
    real = torch.ones(shape, dtype=torch.bool) if pad_id is None else targets != pad_id
    got = cross_entropy(logits, targets, pad_id=pad_id, label_smoothing=label_smoothing)
    got_grad = torch.autograd.grad(got, logits)[0]
    assert (got_grad[~real] == 0).all()
    for wanted in (
        F.cross_entropy(logits.reshape(-1, 7), targets.reshape(-1), **options),
        nll(logits[real], targets[real], label_smoothing=label_smoothing).mean(),
    ):
        close(got, wanted)
        close(got_grad, torch.autograd.grad(wanted, logits)[0])


def test_a_multiple_of_the_loss_has_a_multiple_of_its_gradient():
    logits, targets = normal(5, 7), torch.tensor([0, 6, 3, 2, 1])
    once, thrice = (
        torch.autograd.grad(factor * cross_entropy(logits, targets, pad_id=2), logits)[0] for factor in (1, 3)
    )
    close(thrice, 3 * once)


def test_a_second_derivative_is_refused_and_that_of_nll_is_right():
    logits, targets = normal(2, 3), torch.tensor([0, 2])
    hessian = torch.autograd.functional.hessian
    with pytest.raises(RuntimeError, match=r"a first derivative only.*the mean of nll"):
        hessian(lambda z: cross_entropy(z, targets), logits)
    got = hessian(lambda z: nll(z, targets).mean(), logits)
    close(got, hessian(lambda z: F.cross_entropy(z, targets), logits))


def test_half_precision_logits_get_a_gradient_of_their_own_kind():
    logits, targets = normal(5, 7).detach().bfloat16().requires_grad_(), torch.tensor([0, 6, 3, 2, 1])
    cross_entropy(logits, targets, label_smoothing=0.1).backward()
    assert logits.grad.dtype == torch.bfloat16
    wide = logits.detach().double().requires_grad_()
    wanted = torch.autograd.grad(cross_entropy(wide, targets, label_smoothing=0.1), wide)[0]
    torch.testing.assert_close(logits.grad.double(), wanted, atol=2e-3, rtol=0)


def test_not_knowing_costs_the_logarithm_of_the_vocabulary():
    targets = torch.tensor([3, 0, 12])
    for label_smoothing in (0.0, 0.3):
        got = cross_entropy(torch.zeros(3, 13), targets, label_smoothing=label_smoothing)
        close(got, torch.tensor(math.log(13)))


def test_a_number_added_to_all_logits_changes_nothing():
    logits, targets = normal(5, 7), torch.tensor([0, 6, 3, 2, 1])
    close(cross_entropy(logits + 1000, targets), cross_entropy(logits, targets))


def test_certainty_costs_nothing_and_large_logits_stay_numbers():
    logits = torch.tensor([[1e6, 0.0, 0.0]])
    close(cross_entropy(logits, torch.tensor([0])), torch.tensor(0.0))
    close(cross_entropy(logits, torch.tensor([1])), torch.tensor(1e6))


@pytest.mark.parametrize("label_smoothing", [-0.1, 1.0, 10.0])
def test_smoothing_outside_its_range_is_refused(label_smoothing):
    with pytest.raises(ValueError, match=rf"label_smoothing must lie in \[0, 1\), got {label_smoothing}"):
        cross_entropy(LOGITS, torch.tensor([1, 0]), label_smoothing=label_smoothing)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("shape", [(3,), (2, 1), (1, 2), ()])
def test_shapes_that_do_not_fit_are_refused(shape):
    with pytest.raises(ValueError, match=r"logits must have the targets' shape .*got \(2, 2\)"):
        cross_entropy(LOGITS, torch.zeros(shape, dtype=torch.int64))


def test_padding_alone_is_refused():
    with pytest.raises(ValueError, match="no target counts: the mean over no tokens is not defined"):
        cross_entropy(LOGITS, torch.tensor([1, 1]), pad_id=1)
    nothing = torch.zeros(0, dtype=torch.int64)
    assert nll(LOGITS[:0], nothing).shape == (0,)  # no mean is taken: there is nothing to refuse
    with pytest.raises(ValueError, match="no target counts"):
        cross_entropy(LOGITS[:0], nothing)


@pytest.mark.parametrize(("wrong", "pad_id"), [(2, None), (-1, None), (-99, 0), (7, 0)])
def test_targets_outside_the_vocabulary_are_refused(wrong, pad_id):
    with pytest.raises(
        ValueError, match=r"targets must lie from 0 to 1 \(vocab_size 2\), got .*" + str(wrong)
    ):
        cross_entropy(LOGITS, torch.tensor([1, wrong]), pad_id=pad_id)


def test_nll_beside_an_impossible_token_is_finite():
    logits = torch.tensor([[0.0, float("-inf"), 0.0]])
    for loss in (nll, cross_entropy):
        assert loss(logits, torch.tensor([2])).item() == pytest.approx(math.log(2), abs=1e-6)


def test_nll_refuses_what_cross_entropy_refuses(unchecked_shapes):
    with pytest.raises(ValueError, match=r"logits must have the targets' shape \(3,\)"):
        nll(torch.zeros(2, 5), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(ValueError, match=r"targets must lie from 0 to 4 .* got 5 to 5"):
        nll(torch.zeros(1, 5), torch.tensor([5]))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16], ids=str)
@pytest.mark.parametrize("label_smoothing", [0.0, 0.1])
def test_half_precision_loses_no_digit_of_the_loss(dtype, label_smoothing):
    torch.manual_seed(0)
    logits, targets = torch.randn(7, 300).to(dtype).requires_grad_(), torch.randint(300, (7,))
    exact = logits.detach().double().requires_grad_()
    got = cross_entropy(logits, targets, label_smoothing=label_smoothing)
    wanted = cross_entropy(exact, targets, label_smoothing=label_smoothing)
    assert got.dtype == torch.float32
    assert got.item() == pytest.approx(wanted.item(), abs=1e-5)
    of_each = nll(logits, targets, label_smoothing=label_smoothing)
    assert of_each.mean().item() == pytest.approx(wanted.item(), abs=1e-5)
    got.backward()
    wanted.backward()
    assert logits.grad.dtype == dtype
    torch.testing.assert_close(logits.grad.double(), exact.grad, atol=1e-3, rtol=0.01)
