"""Who writes texts: ours, without a cache too, GPT-2's and Marian's `generate`, all of equal weights."""

from collections.abc import Callable

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

#: Writes texts, and returns their ids.
Writer = Callable[[], list[list[int]]]
NO_END = -1  # a symbol that no model has: texts end where they are cut
BEAM = 4


def spread_out(model: nn.Module) -> None:
    """Make all matrices of an untrained model larger, so that its scores lie further apart than rounding."""
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.dim() > 1:
                parameter.mul_(2.0)


def gpt2_of(model: DecoderLM) -> nn.Module:
    """Make Hugging Face's GPT-2 with the weights of our model."""
    theirs = gpt2(model.config)
    copy_weights(model, theirs)
    return theirs.eval()


def greedy_writers(model: DecoderLM, prompts: Tensor, *, n_new: int) -> dict[str, Writer]:
    """Give the writers of greedy texts: ours with a cache, GPT-2's with its cache, ours without one.

    Args:
        model: A model of ours, pre-norm and tied, with learned positions and gelu, as GPT-2 has it.
        prompts: How the texts begin (batch, time).
        n_new: How many symbols each text gets.
    """
    peer = gpt2_of(model)

    def ours(next_logits: Callable[[Tensor], Tensor]) -> list[list[int]]:
        return greedy(next_logits, prompts, eos_id=NO_END, max_new_tokens=n_new)

    def gpt2() -> list[list[int]]:
        options = {"attention_mask": torch.ones_like(prompts), "do_sample": False, "use_cache": True}
        return peer.generate(prompts, max_new_tokens=n_new, **options)[:, prompts.size(1) :].tolist()

    return {
        "exformer": lambda: ours(Continuation(model)),
        "GPT-2": gpt2,
        "exformer, no cache": lambda: ours(next_logits_of(model)),
    }


def beam_writers(setting: Setting, *, n_new: int) -> dict[str, Writer]:
    """Give the writers of translations by a beam: ours and Marian's, both from source sentences to ids.

    Args:
        setting: Sizes.
        n_new: How many symbols a translation has at most.
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
