"""Sliding-window attention: which keys are seen, a cache that stays small, and texts beyond max_len."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch_twins import close, randomize

from exformer.generation.generate import generate, stream
from exformer.generation.next_token import Continuation
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLMConfig
from exformer.nn.attention import attend
from exformer.nn.cache import KVCache
from exformer.nn.config import TransformerConfig
from exformer.nn.layers import EncoderLayer
from exformer.nn.masks import causal_mask
from exformer.nn.positions.absolute import added_positions
from exformer.tokenizers.characters_and_words import CharTokenizer

pytestmark = pytest.mark.usefixtures("float64")
SIZES = {"d_model": 12, "n_heads": 2, "n_kv_heads": 1, "d_ff": 7, "n_layers": 2, "max_len": 11}
RELATIVE = pytest.mark.parametrize("positions", ["rotary", "alibi", "none"])


def build(positions: str = "rotary", *, window: int | None = 4, vocab_size: int = 13) -> DecoderLM:
    torch.manual_seed(36)
    model = DecoderLM(DecoderLMConfig(vocab_size, **SIZES, positions=positions, window=window))
    randomize(model, seed=5)
    return model.eval()


def text(length: int) -> torch.Tensor:
    return torch.randint(1, 13, (2, length), generator=torch.Generator().manual_seed(2))


def test_mask_by_hand() -> None:
    assert causal_mask(4, window=1).equal(torch.eye(4, dtype=torch.bool))
    assert causal_mask(2, 5, window=3).int().tolist() == [[0, 1, 1, 1, 0], [0, 0, 1, 1, 1]]
    assert causal_mask(3, window=3).equal(causal_mask(3))


def test_cache_by_hand() -> None:
    cache, seen = KVCache(window=3), []
    for new in ([1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0], [8.0], [9.0, 10.0], [11.0]):
        rows = torch.tensor([new, [-x for x in new]])[:, None, :, None]
        k, v = cache.append(rows, 2 * rows)
        assert torch.equal(v, 2 * k)
        assert torch.equal(k[1], -k[0])
        seen.append(k[0].flatten().tolist())
    assert seen == [[1, 2, 3, 4, 5, 6, 7], [6, 7, 8], [7, 8, 9, 10], [9, 10, 11]]
    assert (cache.length, cache.n_kept) == (11, 2)
    cache.reorder(torch.tensor([1, 1, 0]))
    k, _ = cache.append(*[torch.zeros(3, 1, 1, 1)] * 2)
    assert k[:, 0, :, 0].tolist() == [[-10, -11, 0], [-10, -11, 0], [10, 11, 0]]


@given(window=st.integers(1, 6), lengths=st.lists(st.integers(1, 20), min_size=1, max_size=9))
def test_room_of_a_cache(window, lengths) -> None:
    cache, everything = KVCache(window=window), torch.zeros(1, 1, 0, 1)
    for length in lengths:
        new = torch.arange(cache.length, cache.length + length, dtype=torch.float64)[None, None, :, None]
        everything = torch.cat((everything, new), dim=2)
        k, _ = cache.append(new, new)
        assert torch.equal(k, everything[:, :, -(length + min(window - 1, cache.length - length)) :])
        assert cache.n_kept == min(cache.length, window - 1)
        assert cache._k.size(2) <= max(2 * window, 2 * 1)
    assert cache.length == everything.size(2)


@RELATIVE
def test_a_text_beyond_max_len(positions) -> None:
    model, ids = build(positions), text(60)
    whole, cache = model(ids), model.new_cache()
    parts = [model(ids[:, start : start + 1], cache=cache) for start in range(60)]
    close(torch.cat(parts, dim=1), whole)
    assert cache.length == 60
    assert all(layer.n_kept == 3 and layer._k.size(2) <= 8 for layer in cache.layers)
    reach = 2 * 3 + 1  # two layers look back three positions each
    close(model(ids[:, -reach:])[:, -1], whole[:, -1])


@pytest.mark.parametrize("positions", ["sinusoidal", "learned"])
def test_absolute_positions_end_at_max_len(positions) -> None:
    with pytest.raises(ValueError, match="the text has 12 tokens and max_len is 11"):
        build(positions)(text(12))
    with pytest.raises(ValueError, match=f"{positions} positions need a max_len"):
        added_positions(positions, 12, max_len=None)


@RELATIVE
def test_generation_beyond_max_len_reads_nothing_anew(positions) -> None:
    model, ids = build(positions), text(5)
    score = Continuation(model)
    for _ in range(40):
        logits = score(ids)
        close(logits, model(ids)[:, -1])
        ids = torch.cat((ids, logits.argmax(dim=-1, keepdim=True)), dim=1)


def test_left_padding_beyond_the_window() -> None:
    model, ids = build(), text(9)
    padded = torch.cat((torch.zeros(2, 7, dtype=torch.int64), ids), dim=1)
    score, alone = Continuation(model, pad_id=0), Continuation(model)
    for end in range(1, 10):
        close(score(padded[:, : 7 + end]), alone(ids[:, :end]))


def test_generate_stream_and_beams_agree_with_the_plain_model() -> None:
    tokenizer = CharTokenizer.from_texts(["abcdefghij"])
    model = build(vocab_size=tokenizer.vocab_size)
    ids = [tokenizer.bos_id, *tokenizer.encode("abc")]
    for _ in range(30):
        ids.append(model(torch.tensor([ids]))[0, -1].argmax().item())
    wanted = tokenizer.decode(ids[4:])
    options = {"max_new_tokens": 30, "temperature": 0.0}
    assert generate(model, tokenizer, "abc", **options) == wanted
    assert "".join(stream(model, tokenizer, "abc", **options)) == wanted
    beams = generate(model, tokenizer, ["abc", "jihgf"], max_new_tokens=30, num_beams=3)
    assert [len(each) > 0 for each in beams] == [True, True]
    assert beams[0] == generate(model, tokenizer, "abc", max_new_tokens=30, num_beams=3)


def test_both_sides_and_a_window() -> None:
    for make, name in (
        (lambda: EncoderLMConfig(13, window=4), "EncoderLMConfig"),
        (lambda: EncoderDecoderConfig(13, 13, window=4), "EncoderDecoderConfig"),
    ):
        message = (
            rf"a window \(4\) is for causal attention: build a DecoderLM .* or leave it out of the {name}"
        )
        with pytest.raises(ValueError, match=message):
            make()
    layer, x = EncoderLayer(TransformerConfig(d_model=12, n_heads=2, window=4)), torch.zeros(1, 7, 12)
    assert layer(x, causal=True).shape == x.shape
    with pytest.raises(ValueError, match="a window of 4 positions is for causal attention: build an encoder"):
        layer(x)


@pytest.mark.usefixtures("unchecked_shapes")
@pytest.mark.parametrize("wrong", [0, -1, 2.5])
def test_a_window_of_a_wrong_size(wrong) -> None:
    for make in (lambda: DecoderLMConfig(13, window=wrong), lambda: causal_mask(3, window=wrong)):
        with pytest.raises(ValueError, match=rf"window must be .*, got {wrong}"):
            make()


@pytest.mark.parametrize("n_queries", [1, 3])
def test_a_window_and_more_keys_than_it_holds(n_queries) -> None:
    q, kv = torch.randn(2, 4, n_queries, 5), torch.randn(2, 2, 9, 5)
    got = attend(q, kv, kv, causal=True, window=4)
    close(got, attend(q, kv, kv, mask=causal_mask(n_queries, 9, window=4)[None]))
