"""Generators of texts with equal weights: ours, with and without a cache, GPT-2's and Marian's `generate`."""

from collections.abc import Callable
from copy import deepcopy

import torch
from torch import Tensor, nn

from bench.encoder_decoder import exformer, marian
from bench.equal_work import copy_weights
from bench.gpt import gpt2
from bench.setting import BOS, EOS, PAD, Setting, make_batches
from exformer.generation.beam_search import beam_search
from exformer.generation.next_token import Continuation, next_logits_of
from exformer.generation.sampling import greedy
from exformer.models.decoder_lm import DecoderLM
from exformer.nn.eval_mode import evaluating

#: Generates texts, and returns their ids.
Writer = Callable[[], list[list[int]]]
NO_END = -1  # a token that no model has: texts end where they are cut
BEAM = 4


def spread_out(model: nn.Module) -> None:
    """Enlarge all matrices of an untrained model, so that its scores differ by more than rounding."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2.0)


def gpt2_of(model: DecoderLM) -> nn.Module:
    """Make Hugging Face's GPT-2 with the weights of our model."""
    theirs = gpt2(model.config)
    copy_weights(model, theirs)
    return theirs.eval()


def in_layout_of_linear(gpt2: nn.Module) -> nn.Module:
    """Copy a GPT-2 whose weights then lie in memory as those of `nn.Linear`: row by row of (out, in).

    Its own layers, `Conv1D`, keep them as (in, out). A single text multiplies each matrix by one vector,
    which takes as long as reading the matrix, and some processors read (in, out) faster, up to 1.7 times.
    """
    copied = deepcopy(gpt2)
    for module in copied.modules():
        if type(module).__name__ == "Conv1D":
            module.weight.data = module.weight.data.t().contiguous().t()
    return copied


def greedy_writers(model: DecoderLM, prompts: Tensor, *, n_new: int) -> dict[str, Writer]:
    """Return the generators of greedy texts: ours with a cache, GPT-2's with its cache, ours without one.

    GPT-2 runs twice, as Hugging Face configures it, and with its weights in our layout.

    Args:
        model: A model of ours, pre-norm and tied, with learned positions and gelu, as GPT-2 has it.
        prompts: The beginnings of the texts (batch, position).
        n_new: Number of new tokens of each text.
    """
    peer = gpt2_of(model)
    peer_in_our_layout = in_layout_of_linear(peer)

    def ours(next_logits: Callable[[Tensor], Tensor]) -> list[list[int]]:
        return greedy(next_logits, prompts, eos_id=NO_END, max_new_tokens=n_new)

    def theirs(gpt2: nn.Module) -> list[list[int]]:
        options = {"attention_mask": torch.ones_like(prompts), "do_sample": False, "use_cache": True}
        return gpt2.generate(prompts, max_new_tokens=n_new, **options)[:, prompts.size(1) :].tolist()

    return {
        "exformer": lambda: ours(Continuation(model)),
        "GPT-2": lambda: theirs(peer),
        "GPT-2, our layout": lambda: theirs(peer_in_our_layout),
        "exformer, no cache": lambda: ours(next_logits_of(model)),
    }


def beam_writers(setting: Setting, *, n_new: int) -> dict[str, Writer]:
    """Return the generators of translations by beam search: ours and Marian's, from source sentences to ids.

    Args:
        setting: Sizes.
        n_new: Largest number of tokens of a translation.
    """
    model, peer = exformer(setting).model.eval(), marian(setting, attention="sdpa").model.eval()
    spread_out(model)
    copy_weights(model, peer)
    src = make_batches(setting)[0].src
    prompts = src.new_full((len(src), 1), BOS)

    def ours() -> list[list[int]]:
        with evaluating(model):
            next_logits = Continuation(model, src=src)
            found = beam_search(next_logits, prompts, num_beams=BEAM, eos_id=EOS, max_new_tokens=n_new)
        return [text.ids for text in found]

    def theirs() -> list[list[int]]:
        options = {"num_beams": BEAM, "length_penalty": 1.0, "do_sample": False, "forced_eos_token_id": None}
        found = peer.generate(src, attention_mask=(src != PAD).long(), max_new_tokens=n_new, **options)
        rows = found[:, 1:].tolist()
        return [row[: row.index(EOS)] if EOS in row else row for row in rows]

    return {"exformer": ours, "Marian": theirs}
