"""generate() against the parts that it is made of; stream() against generate()."""

import math
import re
from copy import copy
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch_twins import close, random_model

from exformer.generation import next_token
from exformer.generation import prompts as prompts_module
from exformer.generation.beam_search import beam_search
from exformer.generation.generate import generate, plain_generate, stream
from exformer.generation.next_token import Continuation, next_logits_of
from exformer.generation.sampling import Sampling, draw, greedy, keep_top_p, sample
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer

pytestmark = pytest.mark.usefixtures("float64")
CHARACTERS = CharTokenizer.from_texts(["the red fox sleeps"])
WORDS = WordTokenizer.from_texts(["the red fox sleeps"])


def build(tokenizer=CHARACTERS, seed: int = 0, **options) -> DecoderLM:
    sizes = {"d_model": 12, "n_heads": 2, "d_ff": 7, "n_layers": 2, "max_len": 17, "positions": "rotary"}
    return random_model(DecoderLM, DecoderLMConfig(tokenizer.vocab_size, **{**sizes, **options}), seed=seed)


def first(tokenizer, prompt: str) -> torch.Tensor:
    return torch.tensor([[tokenizer.bos_id, *tokenizer.encode(prompt)]])


@settings(max_examples=8)
@given(seed=st.integers(0, 2**20), prompt=st.sampled_from(["", "the", "fox sle"]))
def test_generate_is_the_loop_of_its_parts(seed, prompt):
    model = build(seed=seed)
    ids, end = first(CHARACTERS, prompt), {"eos_id": CHARACTERS.eos_id, "max_new_tokens": 9}
    wanted = greedy(next_logits_of(model), ids, **end)[0]
    assert generate(model, CHARACTERS, prompt, max_new_tokens=9, temperature=0.0) == CHARACTERS.decode(wanted)
    wanted = sample(
        next_logits_of(model),
        ids,
        **end,
        generator=torch.Generator().manual_seed(seed),
        logits_processor=lambda logits: keep_top_p(logits / 0.7, 0.8),
    )[0]
    found = generate(model, CHARACTERS, prompt, max_new_tokens=9, temperature=0.7, top_p=0.8, seed=seed)
    assert found == CHARACTERS.decode(wanted)
    [best] = beam_search(next_logits_of(model), ids, **end, num_beams=3, length_penalty=0.5)
    found = generate(model, CHARACTERS, prompt, max_new_tokens=9, num_beams=3, length_penalty=0.5)
    assert found == CHARACTERS.decode(best.ids)


def test_every_number_does_its_part():
    model = build(seed=3, max_len=30)
    every = {"temperature": 1.7, "top_k": 6, "top_p": 0.7, "min_p": 0.4, "repetition_penalty": 1.8}

    def by_hand(seed: int, **numbers: float) -> str:
        ids, new = first(CHARACTERS, "the "), []
        for u in torch.rand(12, generator=torch.Generator().manual_seed(seed), dtype=torch.float64):
            token = draw(Sampling(**numbers).transform(model(ids).detach()[:, -1], ids), u[None])
            if token.item() == CHARACTERS.eos_id:
                break
            new.append(token.item())
            ids = torch.cat((ids, token[None]), dim=1)
        return CHARACTERS.decode(new)

    found = []
    for left_out in (None, *every):
        numbers = {name: value for name, value in every.items() if name != left_out}
        found.append(
            [generate(model, CHARACTERS, "the ", max_new_tokens=12, seed=n, **numbers) for n in range(6)]
        )
        assert found[-1] == [by_hand(n, **numbers) for n in range(6)]
    assert all(texts != found[0] for texts in found[1:])


@pytest.mark.parametrize("most", [30, None])  # far beyond max_len, 17; as many as fit
def test_a_text_does_not_depend_on_what_else_is_generated(most):
    model = build(seed=1)
    numbers = {"max_new_tokens": most, "temperature": 1.3, "seed": 11}
    together = generate(model, CHARACTERS, ["the", "fox", "red fox", "the"], **numbers)
    assert together[0] == generate(model, CHARACTERS, "the", **numbers)
    others = generate(model, CHARACTERS, ["sleeps", "fox", "e", "the"], **numbers)
    assert others[1::2] == together[1::2]
    assert together[3] != together[0]  # the same prompt again is another sample
    assert generate(model, CHARACTERS, iter(["the", "fox", "red fox", "the"]), **numbers) == together
    assert generate(model, CHARACTERS, []) == []


def test_fewer_texts_at_once_with_a_wide_beam(monkeypatch):
    model, rows = build(seed=1), []
    model.layers[0].register_forward_pre_hook(lambda _, inputs: rows.append(len(inputs[0])))
    monkeypatch.setattr(next_token, "_CACHED_POSITIONS", 3 * 2 * model.config.max_len)
    generate(model, CHARACTERS, ["the"] * 5, num_beams=2, max_new_tokens=1)
    assert rows == [3 * 2, 2 * 2]
    generate(model, CHARACTERS, ["the"] * 2, num_beams=7, max_new_tokens=1)  # one always is
    assert rows[2:] == [7, 7]


def test_global_generator_without_a_seed():
    model = build(seed=1)
    torch.manual_seed(7)
    found = generate(model, CHARACTERS, "the")
    assert found != generate(model, CHARACTERS, "the")
    assert found == generate(model, CHARACTERS, "the", seed=7)
    torch.manual_seed(7)
    before = torch.get_rng_state()
    for numbers in ({"seed": 3}, {"temperature": 0.0}, {"num_beams": 2}):
        generate(model, CHARACTERS, "the", max_new_tokens=3, **numbers)
    assert torch.equal(torch.get_rng_state(), before)


@settings(max_examples=10)
@given(seed=st.integers(0, 2**20), stop=st.lists(st.sampled_from(["e", "le", " f", "x "]), max_size=2))
def test_the_stream_is_the_text(seed, stop):
    model = build(seed=seed)
    numbers = {"max_new_tokens": 25, "top_k": 8, "seed": seed, "stop": stop}
    text = generate(model, CHARACTERS, "the ", **numbers)
    pieces = list(stream(model, CHARACTERS, "the ", **numbers))
    assert "".join(pieces) == text
    assert "" not in pieces
    full = generate(model, CHARACTERS, "the ", **{**numbers, "stop": ()})
    ends = [full.index(each) for each in stop if each in full]
    assert text == full[: min(ends, default=len(full))]


def test_a_stream_of_bytes_has_whole_characters_only():
    tokenizer = BPETokenizer([])
    model = build(tokenizer, seed=4)
    with torch.no_grad():  # nothing but the bytes of é, alternating or not
        table = torch.full((tokenizer.vocab_size,), -50.0)
        table[tokenizer.encode("é")] = 50.0
        model.embedding.weight.zero_()
    model.logits = lambda states: table.expand(len(states), -1)
    pieces = list(stream(model, tokenizer, max_new_tokens=40, seed=2))
    assert "".join(pieces) == generate(model, tokenizer, max_new_tokens=40, seed=2)
    assert "é" in pieces


def test_training_mode_is_restored_between_pieces():
    model = build(dropout=0.5).train()
    wanted = generate(model.eval(), CHARACTERS, "the", max_new_tokens=5, seed=1)
    model.train()
    assert generate(model, CHARACTERS, "the", max_new_tokens=5, seed=1) == wanted
    pieces = stream(model, CHARACTERS, "the", max_new_tokens=5, seed=1)
    text = ""
    for piece in pieces:
        text += piece
        assert all(module.training for module in model.modules())
        assert torch.is_grad_enabled()  # between two pieces too
    assert text == wanted


def test_text_beyond_max_len_keeps_half_its_context():
    model = build(seed=2)
    continued, ids = Continuation(model), first(CHARACTERS, "the")
    start = 0
    for _ in range(60):
        if ids.size(1) - start > 17:
            start = ids.size(1) - 8
        close(continued(ids), model(ids[:, start:])[:, -1].detach())
        ids = torch.cat((ids, torch.randint(3, CHARACTERS.vocab_size, (1, 1))), dim=1)
    assert start > 40
    long = "the red fox sleeps" * 3
    assert len(generate(model, CHARACTERS, long, max_new_tokens=20, top_k=5, seed=0)) > 0


def test_default_length_fills_max_len():
    model = build(seed=2)
    model.logits = lambda states: torch.eye(CHARACTERS.vocab_size)[torch.full((len(states),), 5)]
    assert len(generate(model, CHARACTERS, "the", temperature=0.0)) == 17 - 1 - 3
    with pytest.raises(ValueError, match="prompt 2 fills the model's max_len of 17 tokens: max_new_tokens"):
        generate(model, CHARACTERS, ["the", "e" * 16])


@pytest.mark.parametrize("begin", [0, CHARACTERS.encode("x")[0]])
def test_begin_token_of_the_model(begin):
    model = build(seed=5)
    begun = DecoderLM(replace(model.config, begin_id=begin)).eval()
    begun.load_state_dict(model.state_dict())
    wanted = sample(
        next_logits_of(model),
        torch.tensor([[begin, *CHARACTERS.encode("the")]]),
        eos_id=2,
        max_new_tokens=9,
        generator=torch.Generator().manual_seed(1),
    )[0]
    found = generate(begun, CHARACTERS, "the", max_new_tokens=9, seed=1)
    assert found == CHARACTERS.decode(wanted)
    assert found != generate(model, CHARACTERS, "the", max_new_tokens=9, seed=1)


def test_space_before_the_first_new_word():
    model = build(WORDS, seed=1)
    text = generate(model, WORDS, "the red", max_new_tokens=4, seed=0, top_k=3)
    assert text.startswith(" ")
    assert not generate(model, WORDS, max_new_tokens=4, seed=0, top_k=3).startswith(" ")


@pytest.mark.parametrize(
    ("numbers", "message"),
    [
        ({"temperature": -1.0}, "temperature must be 0 .greedy. or a number above, got -1.0"),
        ({"temperature": math.nan}, "temperature must be 0"),
        ({"temperature": math.inf}, "temperature must be 0"),
        ({"temperature": 0.0, "top_k": 0}, "top_k must be at least 1, got 0"),
        ({"temperature": 0.0, "top_p": 0.0}, r"top_p must lie in \(0, 1\], got 0.0"),
        ({"min_p": 1.5}, r"min_p must lie in \[0, 1\], got 1.5"),
        ({"repetition_penalty": 0.0}, "repetition_penalty must lie from 0.01 to 100, got 0.0"),
        ({"max_new_tokens": 0}, "max_new_tokens must be at least 1, got 0"),
        ({"seed": 2**64}, "seed must lie from -9,223,372,036,854,775,808 to 18,446,744,073,709,551,615, got"),
        ({"stop": ["a", ""]}, "stop must be strings of a character or more, got ''"),
        ({"stop": ""}, "stop must be strings"),
    ],
)
def test_out_of_range_settings_are_refused_first(numbers, message):
    model = build()
    for continue_text in (generate, stream):  # the stream at the call, not at its first piece
        with pytest.raises(ValueError, match=message):
            continue_text(model, CHARACTERS, "the", **numbers)


def test_messages_about_model_and_prompt():
    with pytest.raises(ValueError, match=r"prompt 2: expected .* unknown ones: 'Z'"):
        generate(build(), CHARACTERS, ["the", "Zebra"])
    with pytest.raises(ValueError, match="the tokenizer has 7 tokens, the model was made for 15: give the"):
        generate(build(), WORDS, "the")
    translator = EncoderDecoder(EncoderDecoderConfig(5, 5, d_model=4, n_heads=2, d_ff=4))
    with pytest.raises(ValueError, match=r"expected a DecoderLM .* got EncoderDecoder: .* translate\(\)"):
        generate(translator, CHARACTERS, "the")
    for numbers in ({"temperature": 0.5}, {"temperature": 0.0}, {"top_k": 3}, {"repetition_penalty": 1.1}):
        with pytest.raises(ValueError, match=r"beam search \(num_beams=2\) can't be combined with sampling"):
            generate(build(), CHARACTERS, "the", num_beams=2, **numbers)
    with pytest.raises(ValueError, match="num_beams must lie from 1 to 10,000, got 0"):
        generate(build(), CHARACTERS, "the", num_beams=0)


def test_one_token_and_any_seed_that_pytorch_takes():
    for seed in (2**40, 2**64 - 1, -(2**63)):
        assert len(generate(build(), CHARACTERS, "the", max_new_tokens=1, seed=seed)) <= 1


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused():
    smaller = build(WordTokenizer.from_texts(["a"]))
    with pytest.raises(ValueError, match="give the tokenizer that it was trained with"):
        generate(smaller, CHARACTERS, "the")


@settings(max_examples=12)
@given(
    seed=st.integers(0, 2**20),
    prompt=st.sampled_from(["", "the", "fox sle"]),
    temperature=st.sampled_from([0.0, 0.7, 1.5]),
    penalty=st.sampled_from([None, 1.6]),
    options=st.sampled_from([{"positions": "learned"}, {"begin_id": 4}, {"window": 5}, {"max_len": 1}]),
)
def test_plain_generate_is_generate(seed, prompt, temperature, penalty, options):
    model = build(seed=seed, **options)
    sampling = Sampling(temperature=temperature, top_k=9, repetition_penalty=penalty)
    options = {"max_new_tokens": 40, "sampling": sampling, "seed": seed}  # far beyond max_len, 17
    assert plain_generate(model, CHARACTERS, prompt, **options) == generate(
        model, CHARACTERS, prompt, **options
    )


def test_a_text_ends_at_each_of_several_end_tokens():
    # With more end tokens, the text of a seed is the same up to the first of them.
    model, tokenizer = build(seed=3), copy(CHARACTERS)
    prompts, options = ["the", "fox", "re"], {"max_new_tokens": 14, "seed": 2, "temperature": 4.0}
    wholes = generate(model, CHARACTERS, prompts, **options)
    tokenizer.eos_ids = [CHARACTERS.eos_id, *CHARACTERS.encode("el")]
    wanted = [re.split("[el]", whole)[0] for whole in wholes]
    assert all(0 < len(text) < 14 for text in wanted), wholes
    assert generate(model, tokenizer, prompts, **options) == wanted
    assert "".join(stream(model, tokenizer, prompts[0], **options)) == wanted[0]
    sampling = {"max_new_tokens": 14, "seed": 2, "sampling": Sampling(temperature=4.0)}
    assert plain_generate(model, tokenizer, prompts[0], **sampling) == wanted[0]
    drafted = {"draft": build(seed=4), **options}
    wholes = generate(model, CHARACTERS, prompts, **drafted)
    assert generate(model, tokenizer, prompts, **drafted) == [re.split("[el]", text)[0] for text in wholes]
    search = {"max_new_tokens": 9, "num_beams": 3, "length_penalty": 0.5}
    [best] = beam_search(next_logits_of(model), first(tokenizer, "the"), eos_id=tokenizer.eos_ids, **search)
    assert generate(model, tokenizer, "the", **search) == tokenizer.decode(best.ids)


def test_settings_by_name_replace_those_of_the_object():
    model, options = build(seed=3), {"max_new_tokens": 12, "seed": 2}
    wanted = generate(model, CHARACTERS, "the", temperature=1.7, top_k=4, **options)
    assert generate(model, CHARACTERS, "the", top_k=4, **options) != wanted
    hot = Sampling(temperature=1.7, top_k=9)
    assert generate(model, CHARACTERS, "the", sampling=hot, top_k=4, **options) == wanted
    assert generate(model, CHARACTERS, "the", sampling=hot, **options) != wanted
    assert "".join(stream(model, CHARACTERS, "the", sampling=hot, top_k=4, **options)) == wanted
    with pytest.raises(ValueError, match="unknown settings: beams; those of sampling are temperature, "):
        generate(model, CHARACTERS, "the", beams=0.5)


def test_random_numbers_come_in_blocks(monkeypatch):
    model, prompts = build(seed=1), ["the", "the", "fox"]
    wanted = generate(model, CHARACTERS, prompts, max_new_tokens=23, seed=5)
    torch.manual_seed(5)
    assert generate(model, CHARACTERS, prompts, max_new_tokens=23) == wanted
    state = torch.get_rng_state()
    monkeypatch.setattr(prompts_module, "_BLOCK", 4)
    assert generate(model, CHARACTERS, prompts, max_new_tokens=23, seed=5) == wanted
    torch.manual_seed(5)
    assert generate(model, CHARACTERS, prompts, max_new_tokens=23) == wanted
    assert torch.equal(torch.get_rng_state(), state)


def test_a_huge_limit_takes_no_memory():
    model = build(seed=1)
    options = {"seed": 5, "stop": "e", "temperature": 9.0}
    short = generate(model, CHARACTERS, "the", max_new_tokens=400, **options)
    assert len(short) < 400
    assert generate(model, CHARACTERS, "the", max_new_tokens=10**9, **options) == short
    with pytest.raises(ValueError, match="max_new_tokens must be at most 1,000,000,000, got 10000000000"):
        generate(model, CHARACTERS, "the", max_new_tokens=10**10)


def test_compiled_model_generates():
    model = build(seed=2)
    compiled = torch.compile(model, backend="eager")
    options = {"max_new_tokens": 9, "seed": 1, "temperature": 2.0}
    text = generate(model, CHARACTERS, "the", **options)
    assert generate(compiled, CHARACTERS, "the", **options) == text
    assert "".join(stream(compiled, CHARACTERS, "the", **options)) == text


@pytest.mark.usefixtures("unchecked_shapes")
def test_wrong_types_are_named():
    model = build()
    for continue_text in (generate, stream):
        with pytest.raises(ValueError, match=r"got the name 'gpt': load it with load_model\('gpt'\)"):
            continue_text("gpt", CHARACTERS, "the")
        with pytest.raises(ValueError, match=r"expected a model, an nn\.Module, got dict"):
            continue_text({}, CHARACTERS, "the")
        with pytest.raises(ValueError, match="expected the model's tokenizer, got NoneType"):
            continue_text(model, None, "the")
        with pytest.raises(ValueError, match=r"sampling must be a Sampling, such as .*, got 0\.8"):
            continue_text(model, CHARACTERS, "the", sampling=0.8)
        with pytest.raises(ValueError, match="max_new_tokens must be an integer, got True"):
            continue_text(model, CHARACTERS, "the", max_new_tokens=True)
        for prompt in (None, 5, b"the", [3, 4]):
            with pytest.raises(ValueError, match=r"prompt 1 must be a string|expected a prompt, a string"):
                continue_text(model, CHARACTERS, prompt)
        for stop in (None, [5], b"a", 7):
            with pytest.raises(ValueError, match="stop must be strings of a character or more, got "):
                continue_text(model, CHARACTERS, "the", stop=stop)
