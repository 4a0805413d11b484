"""The kinds of model, by what they can do: a class names its kind, so that models of your own can join.

===========================  ===========================================================================
``kind``                     what a batch to learn from holds
===========================  ===========================================================================
``"language model"``         texts: a tensor of ids
``"masked language model"``  texts with masked tokens: a :class:`~exformer.data.masking.MaskedBatch`
``"encoder-decoder"``        sources with targets: a :class:`~exformer.data.translation.Seq2SeqBatch`
===========================  ===========================================================================
"""

from typing import TypeGuard

from torch import nn

from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.models.rnn_encoder_decoder import RecurrentEncoderDecoder


def has_cache(model: nn.Module) -> TypeGuard[DecoderLM | EncoderDecoder]:
    """Return whether a model can keep keys and values between the steps of generation."""
    return hasattr(model, "new_cache")


def can_generate(model: nn.Module) -> TypeGuard[DecoderLM]:
    """Return whether a model continues texts: a language model with ``config``, ``states`` and a cache."""
    return getattr(model, "kind", None) == "language model" and has_cache(model)


def can_translate(model: nn.Module) -> TypeGuard[EncoderDecoder | RecurrentEncoderDecoder]:
    """Return whether a model translates: an encoder-decoder, with or without a cache."""
    return getattr(model, "kind", None) == "encoder-decoder"
