"""The recurrent encoder-decoder: attention by its formula, padding, one vector, training, translating."""

from dataclasses import asdict
from random import Random

import pytest
import torch
from torch import nn
from torch_twins import close

from exformer.corpora.examples import Pair
from exformer.data.translation import translation_batches
from exformer.generation.translate import translate
from exformer.models.rnn_encoder_decoder import RecurrentConfig, RecurrentEncoderDecoder
from exformer.models.rnn_lm import CELLS
from exformer.nn.loss import cross_entropy
from exformer.nn.record_attention import record_attention
from exformer.tokenizers.characters_and_words import WordTokenizer
from exformer.training.loop import train

SRC_VOCAB, TGT_VOCAB, D_MODEL, SRC, TGT = 13, 11, 7, 5, 3
src = torch.tensor([[4, 5, 6, 7, 2], [12, 3, 2, 0, 0]])
tgt = torch.tensor([[1, 5, 9], [1, 10, 0]])

pytestmark = pytest.mark.usefixtures("float64")
each_cell = pytest.mark.parametrize("cell", CELLS)


def translator(**choices) -> RecurrentEncoderDecoder:
    return RecurrentEncoderDecoder(RecurrentConfig(SRC_VOCAB, TGT_VOCAB, d_model=D_MODEL, **choices)).eval()


def last_state(layers: nn.RNNBase, x: torch.Tensor, start=None) -> torch.Tensor:
    return layers(x, start)[0][:, -1]


@each_cell
@pytest.mark.parametrize("n_layers", [1, 2])
def test_attention_by_its_formula(cell, n_layers) -> None:
    model = translator(cell=cell, n_layers=n_layers)
    for sentence in range(2):
        words = src[sentence][src[sentence] != 0]
        h_e = model.encoder(model.src_embedding(words)[None])[0][0]  # one row a source word
        start = h_e[-1].expand(n_layers, 1, -1).contiguous()
        for i in range(1, TGT + 1):  # y_i is to be predicted; y_0 is the start token
            said = model.tgt_embedding(tgt[sentence : sentence + 1, :i])
            h_d = last_state(model.decoder, said, (start, start) if cell == "lstm" else start)[0]
            e = torch.stack([torch.exp(h_d @ h_j) for h_j in h_e])
            c_i = sum(e_j / e.sum() * h_j for e_j, h_j in zip(e, h_e, strict=True))
            wanted = torch.tanh(model.combine.weight @ torch.cat((c_i, h_d))) @ model.tgt_embedding.weight.T
            close(model(src, tgt)[sentence, i - 1], wanted)
            with record_attention(model) as weights:
                model(src, tgt)
            alpha = weights["attention"][sentence, i - 1]
            close(alpha[: len(words)], e / e.sum())
            assert not alpha[len(words) :].any()


@each_cell
def test_without_attention_one_vector_is_all_that_passes(cell) -> None:
    model = translator(cell=cell, attention=False, n_layers=2)
    memory = model.encode(src)
    wanted = model.decode(tgt, memory=memory, src=src)
    close(model(src, tgt), wanted)
    changed = memory.clone()
    changed[0, :-1], changed[1, :2] = 9.0, 9.0  # all but the last word's state
    assert torch.equal(model.decode(tgt, memory=changed, src=src), wanted)
    changed = memory.clone()
    changed[0, -1] += 0.1
    assert (
        not torch.isclose(model.decode(tgt, memory=changed, src=src)[0], wanted[0], atol=1e-6).all(-1).any()
    )
    with_attention = translator(cell=cell, n_layers=2)
    assert (
        sum(map(torch.numel, with_attention.parameters())) - sum(map(torch.numel, model.parameters()))
        == 2 * D_MODEL**2
    )


@pytest.mark.parametrize("attention", [True, False])
@each_cell
def test_padding_and_neighbours_change_nothing(cell, attention) -> None:
    model = translator(cell=cell, attention=attention)
    alone = model(src[1:, :3], tgt[1:, :2])
    close(model(src, tgt)[1:, :2], alone)
    more = nn.functional.pad(src, (0, 4))
    close(model(more, nn.functional.pad(tgt, (0, 2)))[:, :TGT], model(src, tgt))
    assert not model.encode(src)[1, 3:].any()


@each_cell
@pytest.mark.parametrize("attention", [True, False])
def test_another_padding_token(cell, attention) -> None:
    model = translator(cell=cell, attention=attention, pad_id=3)
    words, said = torch.tensor([[4, 0]]), torch.tensor([[1, 5]])  # 0 is a word like others
    close(model(torch.tensor([[4, 0, 3, 3]]), said), model(words, said))
    assert model.encode(words).all()
    assert not torch.equal(model(words[:, :1], said), model(words, said))


@pytest.mark.parametrize("attention", [True, False])
def test_places_of_dropout_in_a_translator(attention) -> None:
    model, dropped = translator(attention=attention, dropout=0.5).train(), []
    model.dropout.register_forward_hook(lambda _, inputs, output: dropped.append(inputs[0]))
    model(src, tgt)
    embedded = [model.src_embedding(src), model.tgt_embedding(tgt)]
    assert [x.shape for x in dropped] == [(2, SRC, D_MODEL), (2, TGT, D_MODEL), (2, TGT, D_MODEL)]
    for x, wanted in zip(dropped, embedded, strict=False):
        assert torch.equal(x, wanted)


def test_states_are_dropped_between_layers() -> None:
    model = translator(n_layers=2, dropout=0.5)
    assert (model.encoder.dropout, model.decoder.dropout) == (0.5, 0.5)


@each_cell
def test_the_decoder_does_not_see_the_future(cell) -> None:
    model, changed = translator(cell=cell), tgt.clone()
    changed[:, 2] = 4
    assert torch.equal(model(src, changed)[:, :2], model(src, tgt)[:, :2])
    assert not torch.equal(model(src, changed)[:, 2], model(src, tgt)[:, 2])


@each_cell
def test_an_empty_sentence_has_finite_scores_and_gradients(cell) -> None:
    model, empty = translator(cell=cell), src * torch.tensor([[1], [0]])
    with record_attention(model) as weights:
        model(empty, tgt)
    assert not weights["attention"][1].any()
    model(empty, tgt).square().sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters())


def test_it_is_trained_and_translates_as_the_transformer_does() -> None:
    torch.manual_seed(0)
    rng = Random(0)
    strings = [[str(rng.randrange(3)) for _ in range(4)] for _ in range(600)]
    pairs = [Pair(" ".join(words), " ".join(words[::-1])) for words in strings]
    tokenizer = WordTokenizer.from_texts([pair.source for pair in pairs])
    config = RecurrentConfig(tokenizer.vocab_size, tokenizer.vocab_size, d_model=31, max_len=9, dropout=0.0)
    model = RecurrentEncoderDecoder(config)
    batches = translation_batches(
        pairs, src_tokenizer=tokenizer, tgt_tokenizer=tokenizer, batch_size=31, steps=120, seed=0
    )
    train(
        model,
        batches,
        loss_fn=lambda model, batch: cross_entropy(model(batch.src, batch.tgt_in), batch.tgt_out, pad_id=0),
        optimizer=torch.optim.Adam(model.parameters(), lr=0.01),
    )
    sentences = [pair.source for pair in pairs[:50]]
    found = translate(model, (tokenizer, tokenizer), sentences)
    assert sum(a == b.target for a, b in zip(found, pairs, strict=False)) > 45
    assert model.training
    with pytest.raises(ValueError, match=r"longer than the model's max_len \(9\)"):
        translate(model, (tokenizer, tokenizer), "0 1 2 0 1 2 0 1 2")


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"d_model": 0}, "d_model must be at least 1, got 0"),
        ({"max_len": 0}, "max_len must be at least 1, got 0"),
        ({"pad_id": -1}, "pad_id must lie from 0 to "),
        ({"dropout": 1.0}, r"dropout must lie in \[0, 1\), got 1.0"),
        ({"cell": "elman"}, "cell must be one of rnn, lstm, gru, got 'elman'"),
    ],
)
def test_what_cannot_be_built_is_refused(choices, message) -> None:
    with pytest.raises(ValueError, match=message):
        RecurrentEncoderDecoder(RecurrentConfig(SRC_VOCAB, TGT_VOCAB, **choices))


@pytest.mark.usefixtures("unchecked_shapes")
def test_one_sentence_is_a_batch_of_one() -> None:
    one = torch.tensor([3])
    for src, tgt in ((one, one), (one[None], one)):
        with pytest.raises(
            ValueError, match=r"ids must be \(batch, position\), got the shape \(1,\): one text"
        ):
            translator()(src, tgt)
    with pytest.raises(ValueError, match=r"ids must be \(batch, position\), got the shape \(1,\): one text"):
        translator().encode(one)


@each_cell
def test_decoder_states_are_contiguous(cell) -> None:
    model, states = translator(cell=cell, n_layers=2), []
    model.decoder.register_forward_pre_hook(lambda _, inputs: states.append(inputs[1]))
    model(src, tgt)
    for state in states[0] if cell == "lstm" else states:
        assert state.shape == (2, 2, D_MODEL)
        assert state.is_contiguous()


def test_without_attention_nothing_is_recorded() -> None:
    model = translator(attention=False)
    with record_attention(model) as weights:
        model(src, tgt)
    assert weights == {}


@pytest.mark.usefixtures("unchecked_shapes")
def test_refusals() -> None:
    with pytest.raises(ValueError, match="in evaluation mode"), record_attention(translator().train()):
        pass
    for n_src, n_tgt in ((2, 1), (1, 2)):
        message = f"there are {n_src} source sentences and {n_tgt} target sentences"
        with pytest.raises(ValueError, match=message):
            translator()(src[:n_src], tgt[:n_tgt])
    with pytest.raises(ValueError, match="ids must lie from 0 to 12"):
        translator().encode(src + 1)


def test_defaults_of_a_recurrent_translator() -> None:
    sizes = {"src_vocab_size": 5, "tgt_vocab_size": 7, "d_model": 128, "n_layers": 1, "max_len": 128}
    choices = {"cell": "gru", "attention": True, "dropout": 0.1, "pad_id": 0}
    assert asdict(RecurrentConfig(5, 7)) == sizes | choices
