"""Graders: the import of a GPT-2, a check of an import by prompts of one to three tokens."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Any

import torch
from torch import Tensor, nn

from exformer import DecoderLM, DecoderLMConfig
from exformer.hub.hugging_face.names import GPT2
from exformer.hub.hugging_face.tensors import to_theirs
from exformer_lessons.exercises.grading import Verdict, grade, takes_functions
from exformer_lessons.exercises.results import UnfitError
from exformer_lessons.pretrained_weights import mistakes as known
from exformer_lessons.pretrained_weights.imports import WRONG

_N = 4  # tokens of the models that are checked


def _random(model: nn.Module, seed: int) -> nn.Module:
    rng = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for name, p in model.named_parameters():
            centre = 1.0 if "norm" in name and name.endswith("weight") else 0.0
            p.copy_(centre + 0.4 * torch.randn(p.shape, generator=rng, dtype=p.dtype))
    return model.double().eval()


def _gpt2(vocab_size: int, max_len: int, d_model: int, d_ff: int) -> DecoderLM:
    sizes = {"d_model": d_model, "d_ff": d_ff, "max_len": max_len, "n_heads": 3, "n_layers": 1}
    return DecoderLM(
        DecoderLMConfig(vocab_size, activation="gelu_tanh", scale_embedding=False, **sizes)  # type: ignore[arg-type]
    )


def _gpt2_cases() -> list[tuple[dict[str, Tensor]]]:
    cases = []
    for seed, sizes in enumerate(((7, 5, 12, 20), (11, 6, 6, 18))):
        model = _random(_gpt2(*sizes), seed)
        cases.append((to_theirs(model.state_dict(), GPT2, d_head=sizes[2] // 3),))
    return cases


@torch.no_grad()
def _logits(given: Any, tensors: dict[str, Tensor]) -> Tensor:
    """Load a state dict into our model, and return its logits."""
    if not isinstance(given, Mapping):
        raise UnfitError(f"Return a dictionary from our names to tensors, not {type(given).__name__}.")
    (vocab_size, d_model), max_len = (
        tensors["transformer.wte.weight"].shape,
        len(tensors["transformer.wpe.weight"]),
    )
    model = (
        _gpt2(vocab_size, max_len, d_model, tensors["transformer.h.0.mlp.c_fc.bias"].numel()).double().eval()
    )
    if strange := [name for name, tensor in given.items() if not isinstance(tensor, Tensor)]:
        kind = type(given[strange[0]]).__name__
        raise UnfitError(f"The values must be tensors, {strange[0]} is {kind}: torch.from_numpy makes one.")
    shapes = {name: tuple(p.shape) for name, p in model.state_dict().items()}
    state = {name: tensor for name, tensor in given.items() if name != "output.weight"}  # tied
    if missing := shapes.keys() - state.keys():
        raise UnfitError(f"Your result lacks {min(missing)}.")
    if more := state.keys() - shapes.keys():
        raise UnfitError(f"Our model has no {min(more)}.")
    for name, shape in shapes.items():
        found = tuple(getattr(state[name], "shape", ()))
        if found != shape:
            raise UnfitError(f"{name} should have the shape {shape}, yours has {found}.")
    model.load_state_dict(state)
    rng = torch.Generator().manual_seed(0)
    return model(torch.randint(vocab_size, (4, max_len), generator=rng))


@takes_functions
def grade_gpt2(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``my_import(tensors)``.

    Args:
        answer: Takes the tensors of a GPT-2 with one layer by the names in its file; returns ours by our
            names. The logits of the model that has them are compared.
    """
    return grade(
        answer,
        right=known.gpt2,
        mistakes=known.GPT2,
        cases=_gpt2_cases(),
        praise="With your tensors our model has the logits of GPT-2, for all prompts that were tried.",
        frame=_logits,
    )


class _Stored:
    """Logits of all prompts of one to three tokens."""

    def __init__(self, model: nn.Module) -> None:
        self.by_length = {}
        with torch.no_grad():
            for length in (1, 2, 3):
                ids = torch.cartesian_prod(*[torch.arange(_N)] * length).reshape(-1, length)
                self.by_length[length] = model(ids).double()

    def __call__(self, ids: Any) -> Tensor:
        tokens = [int(each) for each in (ids.flatten() if isinstance(ids, Tensor) else ids)]
        if len(tokens) not in self.by_length or not all(0 <= each < _N for each in tokens):
            raise ValueError(f"logits are stored for one to three ids below {_N}, got {tokens}")
        at = sum(each * _N**n for n, each in enumerate(reversed(tokens)))
        return self.by_length[len(tokens)][at].clone()

    def __deepcopy__(self, memo: object) -> "_Stored":
        return self


@cache
def _checks() -> dict[str, tuple[_Stored, _Stored, int]]:
    """Return pairs of models by what was planted; the second is right."""
    config = DecoderLMConfig(_N, d_model=8, n_heads=2, d_ff=16, n_layers=2, max_len=8, positions="rotary",
                             tie_output=False, scale_embedding=False)  # fmt: skip
    right = _random(DecoderLM(config), 19)
    theirs, found = _Stored(right), {}

    def changed(config: Any, state: dict[str, Tensor]) -> _Stored:
        model = DecoderLM(config).double().eval()
        model.load_state_dict(state)
        return _Stored(model)

    state = {name: p.detach() for name, p in right.state_dict().items()}
    for name in ("ids off by one", "output tied", "w_o not transposed", "biases dropped", "q and k exchanged",
                 "rotary halves", "rotary base"):  # fmt: skip
        found[name] = changed(*WRONG[name](config, state))
    table = state["embedding.weight"].clone()
    found["ids off by two"] = changed(config, state | {"embedding.weight": table.roll(2, 0)})
    found["rows exchanged"] = changed(config, state | {"embedding.weight": table.flip(0)})  # by no shift
    table[2] = 0
    found["one row of the embedding at 0"] = changed(config, state | {"embedding.weight": table})
    found["window of 2"] = changed(replace(config, window=2), state)
    found["right"] = theirs
    single = DecoderLM(config).eval()
    single.load_state_dict({name: p.float() for name, p in state.items()})
    found["right, in float32"] = _Stored(single)
    return {name: (ours, theirs, _N) for name, ours in found.items()}


@takes_functions
def grade_check(answer: Callable[..., object]) -> Verdict:
    """Grade a reader's ``check_import(ours, theirs, n)``.

    Args:
        answer: Takes two functions from a list of one to three ids to logits, and the number of tokens;
            returns "same", "ids", "one token", "attention" or "farther".
    """
    cases = _checks()

    def word(given: Any, *case: Any) -> int:
        text = str(given).strip().lower()
        if not isinstance(given, str) or text not in known.KINDS:
            raise UnfitError(f"Return one of {', '.join(known.KINDS)}, not {given!r}.")
        return known.KINDS.index(text)

    verdict = grade(
        answer,
        right=known.check,
        mistakes=known.CHECK,
        cases=[*cases.values()],
        praise=f"All {len(cases)} imports, each by the shortest prompt that shows it.",
        tolerance=0.01,
        frame=word,
    )
    if verdict or verdict.says in known.CHECK or not verdict.says.startswith("The text should be"):
        return verdict
    for name, case in cases.items():
        if (got := word(answer(*case))) != (wanted := word(known.check(*case))):
            return Verdict(
                False,
                f"Planted: {name}. The word is {known.KINDS[wanted]!r}, yours {known.KINDS[got]!r}.",
            )
    return verdict
