"""What holds for every model that a configuration can describe: with or without a cache, padded or alone."""

import jaxtyping
import pytest
import torch
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from torch_twins import backward, close, randomize, recorded

from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.models.encoder_lm import EncoderLM, EncoderLMConfig
from exformer.nn.config import POSITIONS
from exformer.nn.feedforward import ACTIVATIONS

pytestmark = pytest.mark.usefixtures("float64", "fast")
VOCAB, HEADS, D_HEAD, LENGTH, PAD = 17, 6, 4, 9, 1
SIZES = {"d_model": HEADS * D_HEAD, "n_heads": HEADS, "d_ff": 7, "n_layers": 2, "max_len": LENGTH}
SRC = torch.tensor([[5, 12, 3, 7, 4], [6, 2, PAD, PAD, PAD], [8, 9, 10, PAD, PAD]])
EVERY_POSITION = pytest.mark.parametrize("positions", POSITIONS)

#: All that a configuration can choose beside the positions.
CHOICES = st.fixed_dictionaries({
    "norm": st.sampled_from(["layer", "rms"]),
    "pre_norm": st.booleans(),
    "n_kv_heads": st.sampled_from([None, *(n for n in range(1, HEADS + 1) if HEADS % n == 0)]),
    "qk_norm": st.booleans(),
    "bias": st.booleans(),
    "activation": st.sampled_from([*ACTIVATIONS, "swiglu"]),
    "n_experts": st.sampled_from([None, 3]),
})  # fmt: skip
#: And for language models.
CAUSAL = st.builds(
    lambda choices, window: choices | {"window": window}, CHOICES, st.sampled_from([None, 1, 2, 4, LENGTH])
)
SEEDS = st.integers(0, 2**20)
few = settings(max_examples=8, phases=[Phase.explicit, Phase.generate])  # to shrink takes minutes
CUTS = st.sets(st.integers(1, LENGTH - 1), max_size=4).map(sorted)
ROWS = st.lists(st.integers(0, 2), min_size=1, max_size=5)


@pytest.fixture(scope="module")
def fast():
    """Leave the check of shapes to the other tests: with it, these take four times as long."""
    jaxtyping.config.update("jaxtyping_disable", True)
    yield
    jaxtyping.config.update("jaxtyping_disable", False)


def ready(model, seed: int):
    randomize(model, seed=seed)
    return model.eval()


def language_model(positions: str, choices: dict, *, seed: int = 0) -> DecoderLM:
    return ready(DecoderLM(DecoderLMConfig(VOCAB, **SIZES, positions=positions, **choices)), seed)


def both_sides(choices: dict) -> dict:
    """Leave out the window, which only a causal model can have."""
    return {name: value for name, value in choices.items() if name != "window"}


def translator(positions: str, choices: dict, *, seed: int = 0) -> EncoderDecoder:
    own = {"positions": positions, "pad_id": PAD, **both_sides(choices)}
    config = EncoderDecoderConfig(VOCAB, VOCAB, **SIZES, **own)
    return ready(EncoderDecoder(config), seed)


def tokens(n_rows: int, seed: int, *, length: int = LENGTH) -> torch.Tensor:
    """Draw tokens; in a target, some of them are padding."""
    return torch.randint(VOCAB, (n_rows, length), generator=torch.Generator().manual_seed(seed))


def chunks(ids: torch.Tensor, cuts: list[int]) -> list[torch.Tensor]:
    ends = [cut for cut in cuts if cut < ids.size(1)]
    return [ids[:, start:end] for start, end in zip([0, *ends], [*ends, ids.size(1)], strict=True)]


@EVERY_POSITION
@few
@given(choices=CAUSAL, cuts=CUTS, seed=SEEDS)
def test_a_text_in_chunks_is_the_text_at_once(positions, choices, cuts, seed):
    model, ids = language_model(positions, choices, seed=seed), tokens(3, seed)
    cache = model.new_cache()
    parts = [model(chunk, cache=cache) for chunk in chunks(ids, cuts)]
    close(torch.cat(parts, dim=1), model(ids))
    assert cache.length == LENGTH


@EVERY_POSITION
@few
@given(choices=CHOICES, cuts=CUTS, seed=SEEDS)
def test_a_translation_in_chunks_is_the_translation_at_once(positions, choices, cuts, seed):
    model, tgt = translator(positions, choices, seed=seed), tokens(3, seed)
    memory, cache = model.encode(SRC), model.new_cache()
    parts = [model.decode(chunk, memory=memory, src=SRC, cache=cache) for chunk in chunks(tgt, cuts)]
    close(torch.cat(parts, dim=1), model(SRC, tgt))


@EVERY_POSITION
@few
@given(choices=CAUSAL, cuts=CUTS, padding=st.lists(st.integers(0, 5), min_size=2, max_size=3), seed=SEEDS)
def test_a_left_padded_row_is_its_text_alone(positions, choices, cuts, padding, seed):
    model, ids = language_model(positions, choices, seed=seed), tokens(len(padding), seed)
    padding = torch.tensor(padding)
    whole, cache = model(ids, padding=padding), model.new_cache()
    first, *others = chunks(ids, [cut for cut in cuts if cut > 5])  # a token of each row in the first chunk
    parts = [model(first, padding=padding, cache=cache)] + [model(chunk, cache=cache) for chunk in others]
    for row, n in enumerate(padding.tolist()):
        alone = model(ids[row : row + 1, n:])[0]
        close(whole[row, n:], alone)
        close(torch.cat(parts, dim=1)[row, n:], alone)


@EVERY_POSITION
@few
@given(choices=CAUSAL, orders=st.lists(ROWS, min_size=1, max_size=3), padded=st.booleans(), seed=SEEDS)
def test_texts_that_change_rows_go_on_as_if_computed_anew(positions, choices, orders, padded, seed):
    model, ids = language_model(positions, choices, seed=seed), tokens(3, seed, length=4)
    padding = torch.tensor([0, 3, 1]) if padded else None
    cache = model.new_cache()
    model(ids, cache=cache, padding=padding)
    for step, order in enumerate(orders):
        rows = torch.tensor(order) % len(ids)
        cache.reorder(rows)
        new = tokens(len(rows), seed + step, length=1)
        ids, padding = torch.cat((ids[rows], new), dim=1), None if padding is None else padding[rows]
        close(model(new, cache=cache), model(ids, padding=padding)[:, -1:])


@EVERY_POSITION
@few
@given(choices=CHOICES, orders=st.lists(ROWS, min_size=1, max_size=3), beam=st.integers(1, 3), seed=SEEDS)
def test_beams_on_one_memory_are_beams_on_a_memory_each(positions, choices, orders, beam, seed):
    """Also when they change rows, within a sentence or beyond it."""
    model, sentences = translator(positions, choices, seed=seed), torch.arange(3).repeat_interleave(beam)
    memory, cache, tgt = model.encode(SRC), model.new_cache(), tokens(3 * beam, seed, length=3)
    close(model.decode(tgt, memory=memory, src=SRC, cache=cache), model(SRC[sentences], tgt))
    for step, order in enumerate([[0] * (3 * beam), *orders]):
        best = torch.tensor(order) if step else torch.arange(3 * beam) // beam * beam  # each sentence's first
        rows = best % len(tgt)
        cache.reorder(rows)
        new = tokens(len(rows), seed + step, length=1)
        sentences, tgt = sentences[rows], torch.cat((tgt[rows], new), dim=1)
        got = model.decode(new, memory=memory, src=SRC, cache=cache)
        close(got, model(SRC[sentences], tgt)[:, -1:])


@EVERY_POSITION
@few
@given(choices=CHOICES, cuts=CUTS)
def test_each_position_is_projected_once_and_the_source_once(positions, choices, cuts):
    model, tgt, seen = translator(positions, choices), tokens(3, 0), []
    for layer in model.decoder:
        for name in ("self_attention", "cross_attention"):
            layer.get_submodule(name).w_k.register_forward_hook(
                lambda module, args, output, name=name: seen.append((name, args[0].size(1)))
            )
    memory, cache = model.encode(SRC), model.new_cache()
    for chunk in chunks(tgt, cuts):
        model.decode(chunk, memory=memory, src=SRC, cache=cache)
    assert seen.count(("cross_attention", SRC.size(1))) == 2  # once in each of two layers
    assert sum(n for name, n in seen if name == "self_attention") == 2 * LENGTH
    assert len(seen) == 2 + 2 * len(chunks(tgt, cuts))


def rows_of_one_or_zero(weights: dict[str, torch.Tensor], n: int) -> None:
    assert len(weights) == n
    for found in weights.values():
        sums = found.sum(-1)
        close(sums, sums.round())
        assert set(sums.round().flatten().tolist()) <= {0.0, 1.0}


@EVERY_POSITION
@few
@given(choices=CAUSAL, seed=SEEDS)
def test_recording_changes_no_output(positions, choices, seed):
    model, ids = language_model(positions, choices, seed=seed), tokens(3, seed)
    padding = torch.tensor([0, 5, 2])
    output, weights = recorded(model, ids, padding=padding)
    close(output, model(ids, padding=padding))
    rows_of_one_or_zero(weights, 2)
    assert all((found.triu(1) == 0).all() for found in weights.values())
    assert all((found[1, :, 5:, :5] == 0).all() for found in weights.values())
    empty = SRC.clone()
    empty[1] = PAD  # a source without a token
    both = translator(positions, choices, seed=seed)
    output, weights = recorded(both, empty, ids)
    close(output, both(empty, ids))
    rows_of_one_or_zero(weights, 6)
    assert all(
        (found[1] == 0).all()
        for name, found in weights.items()
        if not name.endswith("self_attention") or "encoder" in name
    )
    encoder = ready(
        EncoderLM(EncoderLMConfig(VOCAB, **SIZES, positions=positions, pad_id=PAD, **both_sides(choices))),
        seed,
    )
    output, weights = recorded(encoder, ids)
    close(output, encoder(ids))
    rows_of_one_or_zero(weights, 2)


@EVERY_POSITION
@few
@given(choices=CAUSAL, seed=SEEDS)
def test_shared_heads_are_full_heads_with_copied_weights(positions, choices, seed):
    grouped = language_model(positions, choices, seed=seed)
    full = language_model(positions, choices | {"n_kv_heads": None})
    n_kv_heads = choices["n_kv_heads"] or HEADS
    each = HEADS // n_kv_heads

    def shared(name: str) -> bool:
        return ".w_k." in name or ".w_v." in name

    def repeated(p: torch.Tensor) -> torch.Tensor:
        return p.unflatten(0, (n_kv_heads, D_HEAD)).repeat_interleave(each, dim=0).flatten(0, 1)

    full.load_state_dict({
        name: repeated(p) if shared(name) else p for name, p in grouped.state_dict().items()
    })  # fmt: skip
    ids = tokens(2, seed)
    got, wanted = grouped(ids), full(ids)
    close(got, wanted)
    backward(got, ())
    backward(wanted, ())
    for (name, p), theirs in zip(grouped.named_parameters(), full.parameters(), strict=True):
        grad = theirs.grad
        if grad is not None and shared(name):
            grad = grad.unflatten(0, (n_kv_heads, each, D_HEAD)).sum(1).flatten(0, 1)
        close(p.grad, grad)
    first, last = grouped.new_cache(), ids[:, -1:]
    grouped(ids[:, :-1], cache=first)
    close(grouped(last, cache=first), wanted[:, -1:])


@EVERY_POSITION
@few
@given(choices=CAUSAL, at=st.integers(0, LENGTH - 1), seed=SEEDS)
def test_a_changed_token_moves_no_earlier_output(positions, choices, at, seed):
    model, ids = language_model(positions, choices, seed=seed), tokens(2, seed)
    changed = ids.clone()
    changed[:, at] = (changed[:, at] + 1) % VOCAB
    before, after = model(ids), model(changed)
    close(after[:, :at], before[:, :at])
    # What each of the two layers sees lies that far back.
    reached = at + 2 * ((choices["window"] or LENGTH) - 1) + 1
    assert ((after - before)[:, at:reached].abs().amax(-1) > 1e-9).all()
    close(after[:, reached:], before[:, reached:])
    both = translator(positions, choices, seed=seed)
    tgt = ids[:, :5].clamp(min=PAD + 1)
    longer = torch.cat((tgt, ids[:, :2]), dim=1)
    close(both(SRC[:2], longer)[:, :5], both(SRC[:2], tgt))


@EVERY_POSITION
@few
@given(choices=CAUSAL, seed=SEEDS)
def test_a_model_that_becomes_double_has_lost_no_digit(positions, choices, seed):
    torch.set_default_dtype(torch.float32)
    try:
        models = (
            language_model(positions, choices, seed=seed).double(),
            translator(positions, choices).double(),
        )
    finally:
        torch.set_default_dtype(torch.float64)
    fresh = language_model(positions, choices), translator(positions, choices)
    inputs = (tokens(2, seed),), (SRC, tokens(3, seed))
    for converted, built, ids in zip(models, fresh, inputs, strict=True):
        built.load_state_dict(converted.state_dict())
        close(converted(*ids), built(*ids))


# --- what a cache refuses ---


@EVERY_POSITION
def test_a_full_cache_is_refused(positions):
    model, ids = language_model(positions, {}), tokens(2, 0)
    cache = model.new_cache()
    model(ids, cache=cache)
    with pytest.raises(ValueError, match="the text has 10 tokens and max_len is 9: cut it"):
        model(ids[:, :1], cache=cache)
    both = translator(positions, {})
    memory, cache = both.encode(SRC), both.new_cache()
    both.decode(tokens(3, 0), memory=memory, src=SRC, cache=cache)
    with pytest.raises(ValueError, match="the text has 10 tokens and max_len is 9: cut it"):
        both.decode(SRC[:, :1], memory=memory, src=SRC, cache=cache)


@EVERY_POSITION
def test_padding_does_not_fill_a_cache(positions):
    model, ids = language_model(positions, {}), tokens(2, 0)
    cache, padding = model.new_cache(), torch.tensor([2, 3])
    model(ids, cache=cache, padding=padding)
    longer = torch.cat((ids, ids[:, :2]), dim=1)
    close(model(ids[:, :2], cache=cache), model(longer, padding=padding)[:, -2:])
    with pytest.raises(ValueError, match="the text has 10 tokens and max_len is 9"):
        model(ids[:, :1], cache=cache)


def test_a_cache_of_another_batch_is_refused():
    model = language_model("rotary", {})
    cache = model.new_cache()
    model(tokens(3, 0, length=2), cache=cache)
    for n in (1, 2, 4, 6):
        message = f"the cache holds 3 texts, got {n}: make a new cache for another batch"
        with pytest.raises(ValueError, match=message):
            model(tokens(n, 0, length=1), cache=cache)
    both = translator("rotary", {})
    memory, cache = both.encode(SRC), both.new_cache()
    both.decode(tokens(6, 0, length=2), memory=memory, src=SRC, cache=cache)
    for n in (3, 9):
        with pytest.raises(ValueError, match=f"the cache holds 6 texts, got {n}"):
            both.decode(tokens(n, 0, length=1), memory=memory, src=SRC, cache=cache)


@pytest.mark.parametrize("n", [1, 2, 4, 5])
def test_rows_that_share_no_sentence_evenly_are_refused(n):
    both, tgt = translator("none", {}), tokens(n, 0)
    memory = both.encode(SRC)
    for cache in (None, both.new_cache()):
        with pytest.raises(ValueError, match=f"there are 3 source sentences and {n} target sentences"):
            both.decode(tgt, memory=memory, src=SRC, cache=cache)
    with pytest.raises(ValueError, match="there are 3 source sentences and 6 target sentences"):
        both.decode(tokens(6, 0), memory=memory, src=SRC)


def test_a_cache_is_refused_in_training():
    model = language_model("rotary", {}).train()
    with pytest.raises(ValueError, match=r"without dropout: call model\.eval\(\) first"):
        model(tokens(2, 0), cache=model.new_cache())
    both = translator("rotary", {}).train()
    with pytest.raises(ValueError, match=r"without dropout: call model\.eval\(\) first"):
        both.decode(tokens(3, 0), memory=both.encode(SRC), src=SRC, cache=both.new_cache())


@pytest.mark.parametrize("padding", [[0], [0, 0, 0], [-1, 0], [0, 4], [9, 9]])
def test_padding_that_cannot_be_is_refused(padding):
    model, ids = language_model("learned", {}), tokens(2, 0, length=4)
    for cache in (None, model.new_cache()):
        with pytest.raises(ValueError, match="one left-padding length for each of the 2 rows, below 4"):
            model(ids, padding=torch.tensor(padding), cache=cache)


def test_padding_is_told_at_the_first_call():
    model, ids, padding = language_model("rotary", {}), tokens(2, 0), torch.tensor([2, 0])
    cache = model.new_cache()
    model(ids[:, :4], cache=cache)
    with pytest.raises(
        ValueError, match="padding is in front of the text: give it at the first call with a cache"
    ):
        model(ids[:, 4:], cache=cache, padding=padding)


def test_a_refused_call_leaves_the_cache_as_it_was():
    model, ids = language_model("rotary", {}), tokens(2, 0)
    cache = model.new_cache()
    with pytest.raises(ValueError, match="padding must hold one"):
        model(ids, cache=cache, padding=torch.tensor([2, 9]))
    close(model(ids, cache=cache), model(ids))


@EVERY_POSITION
def test_padding_may_be_longer_than_the_model_reads(positions):
    model, n = language_model(positions, {}), SIZES["max_len"]
    ids = tokens(1, 0, length=2 * n + 1)
    close(model(ids, padding=torch.tensor([n + 1]))[:, n + 1 :], model(ids[:, n + 1 :]))
