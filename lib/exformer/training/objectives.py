"""What each kind of model learns: the loss of a model on a batch."""

from functools import partial

from jaxtyping import Float, Int64
from torch import Tensor, nn

from exformer.data.masking import MaskedBatch
from exformer.data.translation import Seq2SeqBatch
from exformer.models.decoder_lm import DecoderLM
from exformer.models.encoder_decoder import EncoderDecoder
from exformer.models.encoder_lm import EncoderLM
from exformer.models.rnn_encoder_decoder import RecurrentEncoderDecoder
from exformer.models.rnn_lm import RecurrentLM
from exformer.training.loop import LossFn
from exformer.training.loss import cross_entropy


def language_model_loss(
    model: nn.Module,
    ids: Int64[Tensor, "batch position"],
    *,
    pad_id: int | None = None,
    label_smoothing: float = 0.0,
) -> Float[Tensor, ""]:
    r"""Compute the loss of each token given those before it; the first one is only read.

    .. math:: L = -\frac1N \sum_{t > 1} \log p(w_t \mid w_{<t})
    """
    return cross_entropy(model(ids[:, :-1]), ids[:, 1:], pad_id=pad_id, label_smoothing=label_smoothing)


def translation_loss(
    model: nn.Module, batch: Seq2SeqBatch, *, pad_id: int, label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    r"""Compute the loss of each target token given the source and the true target before it.

    .. math:: L = -\frac1N \sum_t \log p(y_t \mid y_{<t}, x)

    That is teacher forcing: the model never reads its own words.
    """
    logits = model(batch.src, batch.tgt_in)  # (batch, tgt, vocab_size)
    return cross_entropy(logits, batch.tgt_out, pad_id=pad_id, label_smoothing=label_smoothing)


def masked_lm_loss(
    model: nn.Module, batch: MaskedBatch, *, pad_id: int, label_smoothing: float = 0.0
) -> Float[Tensor, ""]:
    r"""Compute the loss of each chosen token given the text in which it is masked.

    .. math:: L = -\frac1N \sum_{t\ \mathrm{chosen}} \log p(w_t \mid \text{masked text})
    """
    return cross_entropy(model(batch.inputs), batch.targets, pad_id=pad_id, label_smoothing=label_smoothing)


def default_loss(model: nn.Module) -> LossFn:
    """Return the loss that a kind of model is trained with; it takes ``label_smoothing``.

    Raises:
        ValueError: If the model is of no kind of ours.

    >>> from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
    >>> default_loss(DecoderLM(DecoderLMConfig(11))).__name__
    'language_model_loss'
    """
    if isinstance(model, DecoderLM | RecurrentLM):
        return language_model_loss
    if isinstance(model, EncoderDecoder | RecurrentEncoderDecoder):
        return partial(translation_loss, pad_id=model.config.pad_id)
    if isinstance(model, EncoderLM):
        return partial(masked_lm_loss, pad_id=model.config.pad_id)
    raise ValueError(f"there is no usual loss of a {type(model).__name__}: give a loss_fn(model, batch)")
