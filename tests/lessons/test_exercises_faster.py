"""Graders of lesson 18: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import math

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from answer_banks import answer_test

from exformer import load_model
from exformer_lessons.faster.bytes_read import read_per_token
from exformer_lessons.faster.counting import CountedDraft
from exformer_lessons.faster.enumeration import enumerate_outcomes
from exformer_lessons.faster.grader import JOINED, NO_BONUS, grade_blocks, grade_step
from exformer_lessons.faster.mistakes import BLOCKS, STEP
from exformer_lessons.faster.one_pass import draw_pass
from exformer_lessons.faster.recall import linear_attention
from exformer_lessons.faster.rounding import round_weights


def online(q, blocks, *, sum_by=math.exp, total_by=math.exp, divide=True, first=-math.inf):
    m, total, result = first, 0.0, 0.0
    for k, v in blocks:
        s = k @ q
        new = max(m, s.max().item())
        w = (s - new).exp()
        total = total * sum_by(m - new) + w.sum()
        result = result * total_by(m - new) + w @ v
        m = new
    return result / total if divide else result


def by_logs(q, blocks):
    """Merge finished blocks by their log-sum-exp."""
    parts = [((k @ q).logsumexp(0), (k @ q).softmax(0) @ v) for k, v in blocks]
    weights = torch.stack([size for size, _ in parts]).softmax(0)
    return sum(w * part for w, (_, part) in zip(weights, parts, strict=True))


def key_by_key(q, blocks):
    m, total, result = -math.inf, 0.0, 0.0
    for k, v in blocks:
        for key, value in zip(k, v, strict=True):
            s = (key @ q).item()
            new = max(m, s)
            total = total * math.exp(m - new) + math.exp(s - new)
            result = result * math.exp(m - new) + math.exp(s - new) * value
            m = new
    return result / total


def in_numpy(q, blocks):
    q, m, total, result = q.numpy(), -np.inf, 0.0, 0.0
    for k, v in blocks:
        s = k.numpy() @ q
        new = max(m, s.max())
        w = np.exp(s - new)
        total, result, m = total * np.exp(m - new) + w.sum(), result * np.exp(m - new) + w @ v.numpy(), new
    return result / total


def all_maxima_first(q, blocks):
    m = max((k @ q).max() for k, _ in blocks)
    weights = [(k @ q - m).exp() for k, _ in blocks]
    return sum(w @ v for w, (_, v) in zip(weights, blocks, strict=True)) / sum(w.sum() for w in weights)


def with_weights_in_float32(q, blocks):
    m, total, result = -math.inf, 0.0, 0.0
    for k, v in blocks:
        scores = [torch.dot(key, q).item() for key in k]
        new = max([m, *scores])
        w = torch.tensor([math.exp(s - new) for s in scores])
        total, result = total * math.exp(m - new) + w.sum(), result * math.exp(m - new) + w @ v
        m = new
    return result / total


RIGHT_BLOCKS = {
    "online": online,
    "weights in float32": with_weights_in_float32,
    "from the back": lambda q, blocks: online(q, blocks[::-1]),
    "by logs": by_logs,
    "key by key": key_by_key,
    "numpy": in_numpy,
    "two passes": all_maxima_first,
    "one row": lambda q, blocks: online(q, blocks).tolist(),
}


def one(x):
    return 0.0 if x == -math.inf else 1.0


def each(q, blocks):
    return torch.stack([(k @ q).softmax(0) @ v for k, v in blocks])


def plain(q, blocks):
    w = torch.cat([(k @ q).exp() for k, _ in blocks])
    return w @ torch.cat([v for _, v in blocks]) / w.sum()


def first_maximum(q, blocks):
    m = (blocks[0][0] @ q).max()
    weights = [(k @ q - m).exp() for k, _ in blocks]
    return sum(w @ v for w, (_, v) in zip(weights, blocks, strict=True)) / sum(w.sum() for w in weights)


def joined(q, blocks):
    k, v = (torch.cat(parts) for parts in zip(*blocks, strict=True))
    return (k @ q).softmax(0) @ v


WRONG_BLOCKS = {
    "Nothing is rescaled": [
        lambda q, b: online(q, b, sum_by=one, total_by=one),
        lambda q, b: (
            sum((k @ q - (k @ q).max()).exp() @ v for k, v in b)
            / sum((k @ q - (k @ q).max()).exp().sum() for k, v in b)
        ),
    ],
    "rescale the sum but not the total": lambda q, b: online(q, b, total_by=one),
    "rescale the total of the values but not": lambda q, b: online(q, b, sum_by=one),
    "by the wrong factor": lambda q, b: online(
        q,
        b,
        sum_by=lambda x: 0.0 if x == -math.inf else math.exp(-x),
        total_by=lambda x: 0.0 if x == -math.inf else math.exp(-x),
    ),
    "average the blocks": lambda q, b: each(q, b).mean(0),
    "average the blocks'": lambda q, b: (
        sum(len(k) * part for (k, _), part in zip(b, each(q, b), strict=True)) / sum(len(k) for k, _ in b)
    ),
    "add the blocks' results": lambda q, b: each(q, b).sum(0),
    "do not divide by the sum": lambda q, b: online(q, b, divide=False),
    "the last block alone": lambda q, b: each(q, b)[-1],
    "the first block alone": lambda q, b: each(q, b)[0],
    "Your largest score begins at a number": [
        lambda q, b: online(q, b, first=0.0),
        lambda q, b: online(q, b, first=-100.0),
    ],
    "You keep the first block's largest score": first_maximum,
    "divide by the root of d": lambda q, b: online(q / q.numel() ** 0.5, b),
    "overflow or vanish": plain,
    "returns nothing": lambda q, b: None,
    "raised TypeError": lambda q: q,
}


test_attention_in_blocks = answer_test(
    grade_blocks, right=RIGHT_BLOCKS, told={JOINED: joined}, wrong=WRONG_BLOCKS
)


def weights_of(keep):
    return torch.tensor([keep, 1 - keep], dtype=torch.float64)


def step(ids, p, q, sharpen, draw):
    now = sharpen(q(ids))
    x = draw(now)
    if draw(weights_of(min(1.0, (p(ids)[x] / now[x]).item()))) == 1:
        return [draw((p(ids) - now).clamp(min=0))]
    return [x, draw(p([*ids, x]))]


def on_lists(ids, p, q, sharpen, draw):
    target, now = p(ids).tolist(), sharpen(q(ids)).tolist()
    x = draw(now)
    if now[x] <= target[x] or draw([target[x], now[x] - target[x]]) == 0:
        return (x, draw(p([*ids, x]).tolist()))
    return (draw([max(0.0, a - b) for a, b in zip(target, now, strict=True)]),)


def normalized(ids, p, q, sharpen, draw):
    now = sharpen(q(ids))
    rest = F.relu(p(ids) - now)
    x = draw(now)
    if draw(weights_of(torch.minimum(p(ids) / now, torch.ones(3))[x].item())) == 1:
        return [draw(rest / rest.sum())]
    return [x, draw(p([*ids, x]))]


def in_place(ids, p, q, sharpen, draw):
    """Change the distribution that was given: the next call of p must give another."""
    now, rest = sharpen(q(ids)), p(ids)
    x = draw(now)
    keep = min(1.0, (rest[x] / now[x]).item())
    rest.sub_(now).clamp_(min=0)
    return [draw(rest)] if draw(weights_of(keep)) == 1 else [x, draw(p([*ids, x]))]


def without_a_draft(ids, p, q, sharpen, draw):
    return [draw(p(ids))]


def without_sharpening(ids, p, q, sharpen, draw):
    return step(ids, p, q, lambda x: x, draw)


def agreeing(ids, p, q, sharpen, draw):
    """Accept what a sample of the target equals."""
    x, y = draw(sharpen(q(ids))), draw(p(ids))
    return [y, draw(p([*ids, y]))] if x == y else [y]


def after_a_rejection_too(ids, p, q, sharpen, draw):
    x = step(ids, p, q, sharpen, draw)[0]
    return [x, draw(p([*ids, x]))]


def proposed_again(tries):
    def wrong(ids, p, q, sharpen, draw):
        now = sharpen(q(ids))
        for _ in range(tries):
            x = draw(now)
            if draw(weights_of(min(1.0, (p(ids)[x] / now[x]).item()))) == 0:
                return [x, draw(p([*ids, x]))]
        return [x]

    return wrong


RIGHT_STEP = {
    "step": step,
    "lists": on_lists,
    "normalized": normalized,
    "in place": in_place,
    "agreeing": agreeing,
    "array": lambda *case: np.array(step(*case)),
    "tensor": lambda *case: torch.tensor(step(*case)),
}


def test_a_step_without_the_free_token_is_told():
    assert NO_BONUS in grade_step(lambda *case: step(*case)[:1]).says
    assert NO_BONUS not in grade_step(step).says


def changed(*, propose=None, ratio=None, accept=None, replace=None, bonus=True):
    def wrong(ids, p, q, sharpen, draw):
        now = sharpen(q(ids))
        x = propose(now) if propose else draw(now)
        known = q(ids) if ratio == "raw" else now
        keep = accept(p(ids)[x], known[x]) if accept else min(1.0, (p(ids)[x] / known[x]).item())
        if draw(weights_of(float(keep))) == 1:
            left = replace(p(ids), known) if replace else (p(ids) - known).clamp(min=0)
            return [draw(left if left.sum() > 0 else p(ids))]
        return [x, draw(p([*ids, x]) if bonus else p(ids))]

    return wrong


WRONG_STEP = {
    "After a rejection you sample from p": changed(replace=lambda p, q: p),
    "raw probabilities": changed(ratio="raw"),
    "Your draft is greedy": changed(propose=lambda q: int(q.argmax())),
    "Your ratio is turned": changed(accept=lambda p, q: min(1.0, float(q / p))),
    "You accept every proposal": changed(accept=lambda p, q: 1.0),
    "accept with the probability p(x)": changed(accept=lambda p, q: p),
    "residual has the wrong sign": changed(replace=lambda p, q: (q - p).clamp(min=0)),
    "Your residual is |p - q|": changed(replace=lambda p, q: (p - q).abs()),
    "you sample from the draft": changed(replace=lambda p, q: q),
    "you sample the free token from p before it": changed(bonus=False),
    "returns nothing": lambda *case: None,
    "A step returns a list of one or two new tokens, got 1.": lambda *case: 1,
    "A step returns a list of one or two new tokens, got [0, 0, 0].": lambda *case: [0, 0, 0],
    "draft is not used": [
        without_a_draft,
        lambda ids, p, q, sharpen, draw: (lambda x: [x, draw(p([*ids, x]))])(draw(p(ids))),
    ],
    "sample the proposal from q(ids)": without_sharpening,
    "After a rejection you return a second token": after_a_rejection_too,
    "not proposed again": [proposed_again(10**9), proposed_again(50)],
    "raised TypeError": lambda ids: [0],
}


test_speculative_steps = answer_test(grade_step, right=RIGHT_STEP, wrong=WRONG_STEP)


def test_each_hint_is_for_a_mistake_of_its_own():
    assert len(BLOCKS) + len(STEP) >= 20
    for bank, shown in ((BLOCKS, WRONG_BLOCKS), (STEP, WRONG_STEP)):
        assert all(any(name in hint for name in shown) for hint in bank)


def test_outcomes_of_a_program_by_hand():
    weights = torch.tensor([3.0, 1.0])
    assert enumerate_outcomes(lambda draw: (draw(weights), draw(weights))) == {
        (0, 0): 9 / 16,
        (0, 1): 3 / 16,
        (1, 0): 3 / 16,
        (1, 1): 1 / 16,
    }
    with pytest.raises(ValueError, match="draw needs weights of 0 and above"):
        enumerate_outcomes(lambda draw: draw(torch.tensor([0.5, -0.5])))


def test_linear_attention_is_a_state_of_fixed_size():
    q, k, v = torch.randn(3, 1, 11, 5, dtype=torch.float64)
    state, total = torch.zeros(5, 5, dtype=torch.float64), torch.zeros(5, dtype=torch.float64)
    whole = linear_attention(q, k, v)[0]
    for t in range(11):
        a, b = F.elu(q[0, t]) + 1, F.elu(k[0, t]) + 1
        state, total = state + torch.outer(b, v[0, t]), total + b
        torch.testing.assert_close(a @ state / (a @ total), whole[t], atol=1e-10, rtol=0)


def test_rounded_weights_by_hand():
    w = torch.tensor([[7.0, 2.6, 0.7, 0.16], [70.0, 26.0, 7.0, 1.6]])
    assert round_weights(w, bits=4, block="row").tolist() == [[7, 3, 1, 0], [70, 30, 10, 0]]
    assert round_weights(w, bits=4, block="tensor")[0].tolist() == [10, 0, 0, 0]
    assert round_weights(w, bits=4, block="group", group=2)[0, 2:].tolist() == pytest.approx([0.7, 0.2])
    with pytest.raises(ValueError, match="block must be one of tensor, row, group, got 'column'"):
        round_weights(w, bits=4, block="column")


def test_bytes_read_for_a_token_by_hand():
    weights, cache = read_per_token()
    per_layer = 2 * 4096**2 + 2 * 4096 * 1024 + 3 * 4096 * 14336  # 218.1 million, as in exercise 17.4
    assert weights == pytest.approx(2 * (32 * per_layer + 4096 * 128_256) / 1e9)
    assert cache == pytest.approx(2 * 32 * 8 * 128 * 2 * 131_072 / 1e9)
    assert read_per_token(kv_heads=32)[1] == pytest.approx(4 * cache)
    assert read_per_token(bits=4.0) == pytest.approx((weights / 4, cache))
    assert read_per_token(fixed_state=True)[1] == pytest.approx(cache * 128 / (2 * 131_072))
    with pytest.raises(ValueError, match=r"expected numbers above 0, got 8 and 0\.0"):
        read_per_token(bits=0.0)


def test_a_pass_needs_a_rejected_proposal():
    model, tokenizer, _ = load_model("shakespeare-bpe")
    draft = CountedDraft([[201, 954]], vocab_size=1259)
    options = {"draft": draft, "context": "JULIET:\nO"}
    with pytest.raises(ValueError, match="no proposal is rejected"):
        draw_pass(model, tokenizer, proposals=(",",), **options)
    with pytest.raises(ValueError, match="proposals of one token each"):
        draw_pass(model, tokenizer, proposals=("tomorrow and",), **options)
