"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

from itertools import product
from types import MappingProxyType

import numpy as np
import torch
from answer_banks import OVERWRITES, answer_test

from exformer.hub.hugging_face.names import GPT2
from exformer.hub.hugging_face.tensors import to_ours
from exformer_lessons.pretrained_weights.grader import _gpt2_cases, grade_check, grade_gpt2

PARTS = {
    "ln_1": "layers.0.norm_attention",
    "attn.c_proj": "layers.0.self_attention.w_o",
    "ln_2": "layers.0.norm_feed_forward",
    "mlp.c_fc": "layers.0.feed_forward.w_1",
    "mlp.c_proj": "layers.0.feed_forward.w_2",
}


def by_hand(tensors, *, turn=lambda name, t: t.T, order="qkv", cut=None, parts=MappingProxyType(PARTS)):
    """Import a GPT-2, with one thing done in another way."""
    found = {name.removeprefix("transformer."): t for name, t in tensors.items()}
    ours = {"embedding.weight": found["wte.weight"], "positions.weight": found["wpe.weight"]}
    ours |= {f"norm.{leaf}": found[f"ln_f.{leaf}"] for leaf in ("weight", "bias")}
    for theirs, mine in parts.items():
        for leaf in ("weight", "bias"):
            t = found[f"h.0.{theirs}.{leaf}"]
            ours[f"{mine}.{leaf}"] = turn(theirs, t) if t.dim() == 2 else t
    w, b = found["h.0.attn.c_attn.weight"], found["h.0.attn.c_attn.bias"]
    for name, weight, bias in zip(order, cut(w) if cut else w.T.chunk(3), b.chunk(3), strict=True):
        ours |= {
            f"layers.0.self_attention.w_{name}.{leaf}": t for leaf, t in (("weight", weight), ("bias", bias))
        }
    return ours


def by_split(tensors):
    d = tensors["transformer.wte.weight"].size(1)
    return by_hand(tensors, cut=lambda w: [part.t() for part in w.split(d, dim=1)])


def by_rows(tensors):
    d = tensors["transformer.wte.weight"].size(1)
    return by_hand(tensors, cut=lambda w: [w.mT[i * d : (i + 1) * d].contiguous() for i in range(3)])


def by_einsum(tensors):
    return by_hand(tensors, turn=lambda _, t: torch.einsum("io->oi", t))


def by_the_library(tensors):
    state = by_hand(tensors)
    shapes = {name: t.shape for name, t in state.items()}
    return to_ours(tensors, shapes, GPT2, d_head=1)


def with_the_tied_output(tensors):
    return by_hand(tensors) | {"output.weight": tensors["transformer.wte.weight"]}


def edited(change):
    return lambda tensors: (lambda state: state | change(state))(by_hand(tensors))


A = "layers.0.self_attention."
WRONG_IMPORTS = {
    "You do not transpose attn.c_proj": lambda t: by_hand(
        t, turn=lambda n, w: w if n == "attn.c_proj" else w.T
    ),
    "its parts are still (in, out)": lambda t: by_hand(t, cut=lambda w: w.chunk(3, dim=1)),
    "You transpose no square matrix": lambda t: by_hand(
        t, turn=lambda n, w: w if n == "attn.c_proj" else w.T, cut=lambda w: w.chunk(3, dim=1)
    ),
    "You cut c_attn in another order": lambda t: by_hand(t, order="kqv"),
    "in another order than its matrix": edited(
        lambda s: {f"{A}w_q.bias": s[f"{A}w_v.bias"], f"{A}w_v.bias": s[f"{A}w_q.bias"]}
    ),
    "You cut c_attn head by head": lambda t: by_hand(
        t, cut=lambda w: [w.T.unflatten(0, (3, 3, -1))[:, i].flatten(0, 1) for i in range(3)]
    ),
    "You reshape c_attn to three squares": lambda t: by_hand(t, cut=lambda w: w.reshape(3, len(w), len(w))),
    "You reshape the network's matrices": lambda t: by_hand(
        t, turn=lambda n, w: w.reshape(w.shape[::-1]) if "mlp" in n else w.T
    ),
    "You exchange the two norms": lambda t: by_hand(
        t, parts=PARTS | {"ln_1": PARTS["ln_2"], "ln_2": PARTS["ln_1"]}
    ),
    "You exchange the last norm": edited(
        lambda s: {
            "norm.weight": s["layers.0.norm_attention.weight"],
            "norm.bias": s["layers.0.norm_attention.bias"],
        }
    ),
    "You leave biases at 0": edited(lambda s: {n: 0 * t for n, t in s.items() if n.endswith("bias")}),
    "You leave the table of positions at 0": edited(
        lambda s: {"positions.weight": 0 * s["positions.weight"]}
    ),
    "Your result lacks norm.bias": lambda t: {n: v for n, v in by_hand(t).items() if n != "norm.bias"},
    "Our model has no lm_head.weight": edited(lambda s: {"lm_head.weight": s["embedding.weight"]}),
    "should have the shape": lambda t: by_hand(t, turn=lambda n, w: w),
    "to the right shape": lambda t: by_hand(t, turn=lambda n, w: w.reshape(w.shape[::-1])),
    "The values must be tensors": lambda t: {n: v.numpy() for n, v in by_hand(t).items()},
    "Return a dictionary": lambda t: list(by_hand(t).values()),
    "returns nothing": lambda t: None,
    "raised KeyError": lambda t: t["wte"],
}


def empties_the_file(tensors):
    state = by_hand(tensors)
    tensors.clear()
    return state


def only_empties_the_file(tensors):
    tensors.clear()


test_imports = answer_test(
    grade_gpt2,
    right=[by_hand, by_split, by_rows, by_einsum, by_the_library, with_the_tied_output],
    told={OVERWRITES: empties_the_file},
    wrong=WRONG_IMPORTS,
    refused={
        "nearly right": edited(lambda s: {"embedding.weight": 1.001 * s["embedding.weight"]}),
        "only empties the file": only_empties_the_file,
    },
)


def test_answers_leave_the_hidden_cases_whole():
    grade_gpt2(empties_the_file)
    assert len(_gpt2_cases()[0][0]) == 16


def check(
    ours,
    theirs,
    n,
    *,
    near=lambda a, b: (a - b).abs().max() < 1e-5,
    lengths=(1, 2, 3),
    row=-1,
    one=None,
    shift=lambda fits, n: any(all(fits(i, k) for i in range(n)) for k in range(1, n)),
):
    """Name the kind of the difference, with one thing done in another way."""

    def differ(length):
        prompts = [[one]] if length == 1 and one is not None else map(list, product(range(n), repeat=length))
        return any(not near(ours(ids)[row], theirs(ids)[row]) for ids in prompts)

    if 1 in lengths and differ(1):
        same = shift(lambda i, k: near(ours([(i + k) % n])[row], theirs([i])[row]), n)
        return "ids" if same else "one token"
    if 2 in lengths and differ(2):
        return "attention"
    return "farther" if 3 in lengths and differ(3) else "same"


def in_numpy(ours, theirs, n):
    return check(ours, theirs, n, near=lambda a, b: np.allclose(a.numpy(), b.numpy(), atol=1e-5))


def whole_tables(ours, theirs, n):
    return check(ours, theirs, n, near=lambda a, b: torch.allclose(a, b, atol=3e-5), row=slice(None))


def by_norms(ours, theirs, n):
    return check(ours, theirs, n, near=lambda a, b: (a - b).norm() < 1e-4)


def by_probabilities(ours, theirs, n):
    return check(
        ours, theirs, n, near=lambda a, b: (a.log_softmax(-1) - b.log_softmax(-1)).abs().max() < 1e-5
    )


def of_tensors(ours, theirs, n):
    return check(lambda ids: ours(torch.tensor(ids)), lambda ids: theirs(torch.tensor([ids])), n)


def in_capitals(ours, theirs, n):
    return check(ours, theirs, n).upper()


def repeated(ours, theirs, n):
    found = check(ours, theirs, n, lengths=(1,))
    pairs = any((ours([i, i])[-1] - theirs([i, i])[-1]).abs().max() > 1e-5 for i in range(n))
    return found if found != "same" else "attention" if pairs else check(ours, theirs, n, lengths=(3,))


WRONG_CHECKS = {
    "equality to the last digit": lambda o, t, n: check(o, t, n, near=torch.equal),
    "You allow too much": lambda o, t, n: check(o, t, n, near=lambda a, b: torch.allclose(a, b, atol=0.3)),
    "and no maximum": lambda o, t, n: check(o, t, n, near=lambda a, b: a.argmax() == b.argmax()),
    "You compare shapes": lambda o, t, n: check(o, t, n, near=lambda a, b: a.shape == b.shape),
    "You try one token only": lambda o, t, n: check(o, t, n, one=0),
    "a repeated token hides": repeated,
    "Try every pair": lambda o, t, n: check(o, t, n, lengths=(1, 3)),
    "You compare the first position": lambda o, t, n: check(o, t, n, row=0),
    "You stop at two tokens": lambda o, t, n: check(o, t, n, lengths=(1, 2)),
    "You call attention what two": lambda o, t, n: check(o, t, n).replace("farther", "attention"),
    "You do not look for shifted ids": lambda o, t, n: check(o, t, n).replace("ids", "one token"),
    "You try one or two shifts": lambda o, t, n: check(
        o, t, n, shift=lambda fits, n: all(fits(i, 1) for i in range(n))
    ),
    "one or two shifts": lambda o, t, n: check(
        o, t, n, shift=lambda fits, n: any(all(fits(i, k) for i in range(n)) for k in (1, n - 1))
    ),
    "Not every id has been compared": lambda o, t, n: check(
        o, t, n, shift=lambda fits, n: any(fits(0, k) for k in range(1, n))
    ),
    "compared with the same shift": lambda o, t, n: check(
        o, t, n, shift=lambda fits, n: all(any(fits(i, k) for k in range(1, n)) for i in range(n))
    ),
    "one k must fit all of them": lambda o, t, n: check(
        o, t, n, shift=lambda fits, n: any(all(fits(i, k) for i in range(n - k)) for k in range(1, n))
    ),
    "You say the same word": lambda o, t, n: "attention",
    "Planted: right. The word is 'same', yours 'farther'.": lambda o, t, n: check(o, t, n).replace(
        "same", "farther"
    ),
    "Return one of same": lambda o, t, n: "rotary",
    "logits are stored for one to three ids": lambda o, t, n: o([0, 1, 2, 3]),
    "returns nothing": lambda o, t, n: None,
}


test_checks = answer_test(
    grade_check,
    right=[check, in_numpy, whole_tables, by_norms, by_probabilities, of_tensors, in_capitals],
    wrong=WRONG_CHECKS,
)
