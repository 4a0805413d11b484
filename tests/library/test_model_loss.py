"""The loss of each model: what counts, what a batch must be, and models of one's own in the Trainer."""

import pytest
import torch
from torch import nn
from torch.testing import assert_close

from exformer.data.masking import MaskedBatch
from exformer.data.padding import pad, pad_left
from exformer.data.translation import Seq2SeqBatch
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.models.kinds import can_generate, can_translate
from exformer.models.rnn_encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from exformer.models.rnn_lm import RecurrentLM
from exformer.nn.loss import nll
from exformer.training.config import TrainingConfig
from exformer.training.distributed import ModelWithLoss
from exformer.training.loop import default_loss, set_seed
from exformer.training.trainer import Trainer

SIZES = {"d_model": 8, "n_heads": 2, "d_ff": 12, "n_layers": 1, "max_len": 11, "dropout": 0.0}
SHORT, LONG = [5, 6, 7], [5, 8, 9, 10, 3, 4, 12]
PADDED = pad([SHORT, LONG], pad_id=0)


def decoder(**choices: object) -> DecoderLM:
    set_seed(0)
    return DecoderLM(DecoderLMConfig(13, **SIZES, **choices))


def recurrent(**choices: object) -> RecurrentLM:
    set_seed(0)
    return RecurrentLM(13, d_model=8, **choices)


def all_models() -> dict[str, nn.Module]:
    return {
        "DecoderLM": decoder(),
        "RecurrentLM": recurrent(),
        "EncoderLM": EncoderLM(EncoderLMConfig(13, **SIZES)),
        "EncoderDecoder": EncoderDecoder(EncoderDecoderConfig(13, 17, **SIZES)),
        "RecurrentEncoderDecoder": RecurrentEncoderDecoder(RecurrentConfig(13, 17, d_model=8)),
    }


class Squares(nn.Module):
    """A model of one's own, with a batch of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.scale = nn.Parameter(torch.zeros(()))

    def loss(self, batch: tuple[torch.Tensor, torch.Tensor]) -> torch.Tensor:
        x, y = batch
        return (self.scale * x - y).square().mean()


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("make", [decoder, recurrent])
def test_padded_texts_are_a_mean_over_tokens(make) -> None:
    model = make()
    parts = [nll(model(torch.tensor([each[:-1]])), torch.tensor([each[1:]])) for each in (SHORT, LONG)]
    assert_close(model.loss(PADDED), torch.cat(parts, dim=1).mean(), rtol=0.0, atol=1e-12)


@pytest.mark.parametrize("make", [decoder, recurrent])
def test_a_language_model_learns_no_padding(make) -> None:
    model = make()
    Trainer(model, [PADDED] * 200, config=TrainingConfig(steps=200, lr=0.01, warmup=5)).fit()
    p = model.eval()(torch.tensor([SHORT])).softmax(dim=-1)[0]
    assert p[:, 0].max() < 0.1
    assert p[1, 7] > 0.4


@pytest.mark.parametrize("make", [decoder, recurrent])
def test_padding_before_a_token(make) -> None:
    message = (
        r"the batch has the padding token \(0\) before other tokens in row 1: pad the rows at their end, or, "
        "if it is a token like others, build the model with pad_id=None"
    )
    for batch in (pad_left([LONG, SHORT], pad_id=0), torch.tensor([[3, 0], [0, 3]])):
        with pytest.raises(ValueError, match=message):
            make().loss(batch)


def test_padding_before_a_token_is_read_with_the_losses(monkeypatch) -> None:
    """As on a GPU: the training loop doesn't wait for the device to look at each batch."""
    monkeypatch.setattr("exformer.models.check_inputs._is_slow_to_read", lambda x: True)
    model, wrong = decoder(), pad_left([LONG, SHORT], pad_id=0)
    config = TrainingConfig(steps=3, warmup=1)
    with pytest.raises(ValueError, match=r"one of the last batches has the padding token \(0\) before other"):
        Trainer(model, [PADDED, wrong, PADDED], config=config).fit()
    assert len(Trainer(decoder(), [PADDED] * 3, config=config).fit()) == 3
    with pytest.raises(ValueError, match=r"the batch has the padding token \(0\) before .* in row 1"):
        model.loss(wrong)  # by hand it is read at once


@pytest.mark.usefixtures("float64")
@pytest.mark.parametrize("make", [decoder, recurrent])
def test_without_padding_every_token_counts(make) -> None:
    model, ids = make(pad_id=None), torch.tensor([[0, 4, 0, 0], [5, 0, 0, 0]])
    assert_close(model.loss(ids), nll(model(ids[:, :-1]), ids[:, 1:]).mean(), rtol=0.0, atol=1e-12)
    with pytest.raises(ValueError, match="no target counts"):
        make().loss(torch.tensor([[5, 0, 0]]))


@pytest.mark.usefixtures("float64")
def test_label_smoothing_of_each_model() -> None:
    ids = torch.tensor([[3, 4, 5, 6]])
    batches = {
        "DecoderLM": ids,
        "RecurrentLM": ids,
        "EncoderLM": MaskedBatch(ids, ids),
        "EncoderDecoder": Seq2SeqBatch(ids, ids, ids),
        "RecurrentEncoderDecoder": Seq2SeqBatch(ids, ids, ids),
    }
    for name, model in all_models().items():
        model.eval()
        plain, smooth = (model.loss(batches[name], label_smoothing=share).item() for share in (0.0, 0.5))
        uniform = 2 * smooth - plain  # half of the target is spread over the vocabulary
        assert abs(smooth - plain) > 1e-6, name
        assert model.loss(batches[name], label_smoothing=0.25).item() == pytest.approx(
            0.75 * plain + 0.25 * uniform
        )


@pytest.mark.usefixtures("unchecked_shapes")
def test_a_batch_of_another_type() -> None:
    x = torch.ones(2, 3, dtype=torch.int64)
    expected = {
        "DecoderLM": ("Tensor", "TextWindows cuts a text, pad joins several"),
        "RecurrentLM": ("Tensor", "TextWindows cuts a text, pad joins several"),
        "EncoderLM": ("MaskedBatch", "mask_tokens makes them"),
        "EncoderDecoder": ("Seq2SeqBatch", "translation_batches makes them"),
        "RecurrentEncoderDecoder": ("Seq2SeqBatch", "translation_batches makes them"),
    }
    for name, model in all_models().items():
        kind, made_by = expected[name]
        message = f"{name} learns from batches of type {kind}, got tuple: {made_by}; for other batches, write"
        with pytest.raises(ValueError, match=message):
            Trainer(model, [(x, x)]).fit()


def test_a_model_of_ones_own_with_a_loss() -> None:
    model, batch = Squares(), (torch.tensor([1.0, 2.0]), torch.tensor([3.0, 6.0]))
    losses = Trainer(model, [batch], config=TrainingConfig(steps=60, lr=0.2, warmup=1)).fit()
    assert losses[0] == 22.5
    assert model.scale.item() == pytest.approx(3.0, abs=0.2)


def test_a_wrapper_of_the_compiler_computes_the_loss() -> None:
    class Compiled(nn.Module):  # what matters of torch.compile's wrapper
        def __init__(self) -> None:
            super().__init__()
            self._orig_mod, self.calls = decoder(), 0

        def __getattr__(self, name: str) -> object:
            own = self.__dict__["_modules"]
            return own[name] if name in own else getattr(own["_orig_mod"], name)

        def forward(self, *inputs: torch.Tensor) -> torch.Tensor:
            self.calls += 1
            return self._orig_mod(*inputs)

    compiled = Compiled()
    assert default_loss(compiled)(compiled, PADDED).item() == decoder().loss(PADDED).item()
    assert compiled.calls == 1


def test_what_data_parallelism_wraps_gives_the_loss() -> None:
    model = decoder()
    whole = ModelWithLoss(model, loss_fn=DecoderLM.loss)
    assert whole(PADDED).item() == model.loss(PADDED).item()
    assert list(whole.parameters()) == list(model.parameters())


def test_what_each_kind_can_do() -> None:
    models = all_models()
    assert [name for name in models if can_generate(models[name])] == ["DecoderLM"]
    assert [name for name in models if can_translate(models[name])] == [
        "EncoderDecoder",
        "RecurrentEncoderDecoder",
    ]
