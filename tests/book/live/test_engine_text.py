"""Text in the browser is the library's: token ids, random numbers, sampling, generation, beams."""

import random
import unicodedata
from functools import cache

import engine
import pytest
import regex
import torch
from engine import LANGUAGE_MODELS, TRANSLATORS

from exformer import BPETokenizer, WordTokenizer, beam_search, generate, translate
from exformer.corpora.captions import captions
from exformer.generation.sampling import Sampling, draw, penalize_repetition
from exformer.tokenizers.text_normalization import normalize_line, normalize_text
from exformer.tokenizers.unicode_table import LETTERS, NUMBERS

# The library's shapes have tests of their own, and what is expected here takes a third of the time without.
pytestmark = pytest.mark.usefixtures("unchecked_shapes")

# --- Token ids

ODD = [
    *(chr(code) for code in (*range(0x21), 0x7F, 0x85, 0xA0, 0x1680, *range(0x2000, 0x2010), 0x2028, 0x2029)),
    *"\u202f\u205f\u2060\u3000\ufeff\ufffd\ufffe\uffff\U0010ffff",  # spaces, and what only looks like one
    *"äöüÄÖÜßẞéñçàõåøæœıİſŉǆĳﬁﬀ",
    *["ä", "é", "̈", "Å", "ñ"],
    *["😀🎉❤️", "👩\u200d👩\u200d👧\u200d👦", "🇩🇪", "🏳️\u200d🌈", "👍🏽", "☕️", "1️⃣"],
    *"½²³¹Ⅷⅷ①㉚٣९𝟘𝍠〇零一漢字かなカナ한글العربيةעבריתไทยहिन्दी",
    *["'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "’s", "''", "'x", "'", "'ſ", "'K"],
    *[
        "<s>",
        "</s>",
        "<pad>",
        "<",
        ">",
        "\\",
        '"',
        "'",
        "`",
        "$",
        "_",
        "__",
        "…",
        "–",
        "—",
        "„",
        "“",
        "«",
        "»",
        "€",
        "£",
    ],
]


@cache
def strings():
    """Return 5,000 texts: captions with odd characters, edges of the table, new letters, any at all."""
    rng = random.Random(0)
    words = [word for pair in captions() for word in f"{pair.source} {pair.target}".split()]
    ends = [int(end, 16) for run in f"{LETTERS} {NUMBERS}".split() for end in run.split("-")]
    edges = [chr(code) for end in ends for code in (end - 1, end, end + 1) if not 0xD800 <= code < 0xE000]
    # What this Python, or the browser, may take for a letter, and the tokenizer's table does not.
    firsts = (0x870, 0x1C80, 0xA7C0, 0x10D40, 0x11F00, 0x16D40, 0x1E5D0, 0x2EBF0, 0x31350)
    new = [chr(code) for first in firsts for code in range(first, first + 60)]
    anything = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    marks = {each for each in regex.findall(r"\p{M}", "".join(anything)) if _is_new(each)}
    edges, new, anything = ([each for each in kind if each not in marks] for kind in (edges, new, anything))
    kinds = [ODD, edges, new, anything, words, [" ", "  ", "\n", "\t", " \n"], list("abcXYZ0189.,!?-")]
    texts = ["", " ", *ODD, *(pair.target for pair in captions())]
    while len(texts) < 5000:
        usual = rng.random() < 0.5  # words with a space between them, and something odd now and then
        parts = [
            rng.choice(words) + " " * (rng.random() < 0.9)
            if usual and rng.random() < 0.8
            else rng.choice(kind)
            for kind in rng.choices(kinds, k=rng.randrange(1, 12))
        ]
        texts.append("".join(parts))
    return texts[:5000]


def _is_new(mark):
    """Tell whether what the browser takes for a combining mark is not yet one for this Python."""
    return not unicodedata.category(mark).startswith("M")


def test_odd_strings() -> None:
    """They hold what the tokenizers could stumble over."""
    seen = set("".join(strings()))
    assert {"\x85", "\ufeff", "\x1c", "😀", "\u0308", "ẞ"} <= seen
    assert len({unicodedata.category(each) for each in seen}) >= 29
    assert len(strings()) == len([*strings()]) == 5000


@cache
def byte_pair_ids(name):
    """Return the ids that the library gives the strings, by each of a model's tokenizers."""
    _, tokenizer = engine.shipped(name)
    pair = tokenizer if isinstance(tokenizer, tuple) else (tokenizer,)
    return [[each.encode(text) for text in strings()] for each in pair]


@pytest.mark.parametrize("name", ["multi30k-de-en", "multi30k-en-de", "shakespeare-bpe"])
def test_byte_pairs(engine_page, name: str) -> None:
    """The ids of 5,000 texts are the library's, and decoded they are the normalized texts."""
    found, wrong = engine_page.run(
        """async (name, texts, normal) => {
            const { tokenizer } = await exformer.load(name);
            const both = [tokenizer].flat();
            const ids = both.map((each) => texts.map((text) => each.encode(text)));
            const lost = (each, i) => normal.filter((text, n) => each.decode(ids[i][n]) !== text);
            return [ids, both.flatMap(lost)];
        }""",
        name,
        strings(),
        [normalize_text(text) for text in strings()],
    )
    assert not wrong
    for mine, theirs in zip(found, byte_pair_ids(name), strict=True):
        assert [text for text, a, b in zip(strings(), mine, theirs, strict=True) if a != b] == []


def test_decode_of_any_ids_in_the_browser(engine_page) -> None:
    """What is no UTF-8 becomes as many U+FFFD as in the library."""
    tokenizer = BPETokenizer([])
    rng = random.Random(1)
    starts = [tokenizer.encode_bytes(bytes([byte]))[0] for byte in (0xE2, 0xF0, 0x9F, 0x98, 0xC3, 0xED, 0xA0)]
    rows = [rng.choices([*range(259), *starts * 40], k=rng.randrange(1, 9)) for _ in range(500)]
    found = engine_page.run(
        """async (rows) => {
            const { tokenizer } = await exformer.load("0 DecoderLM");
            return rows.map((ids) => tokenizer.decode(ids));
        }""",
        rows,
    )
    assert found == [tokenizer.decode(ids) for ids in rows]


def test_normal_texts(engine_page) -> None:
    """Texts and lines are normalized as by the library: 5,000 odd ones and every character three times."""
    characters = [chr(code) for code in range(0x110000) if not 0xD800 <= code < 0xE000]
    known = [each for each in characters if unicodedata.category(each) not in ("Cn", "Co")]
    blocks = [known[i : i + 200] for i in range(0, len(known), 200)]
    texts = [*strings(), *("".join(f"a{c}b {c} \u0915{c}\u0915\n" for c in block) for block in blocks)]
    found = engine_page.run(
        "(texts) => texts.map((text) => [exformer.normalizeText(text), exformer.normalizeLine(text)])", texts
    )
    expected = [[normalize_text(text), normalize_line(text)] for text in texts]
    assert [text for text, a, b in zip(texts, found, expected, strict=True) if a != b] == []


@pytest.mark.parametrize("kind", ["character", "word"])
def test_characters_and_words(engine_page, kind: str) -> None:
    """Ids, or a refusal, are the library's."""
    if kind == "character":
        tokenizer = engine.shipped("shakespeare-char")[1]
        known = "abcXYZ ,.\n'!-&3$"
    else:
        tokenizer = WordTokenizer.from_texts([pair.target for pair in captions()])
        known = [f"{word}{space}" for word in ["Ein", "Mann", "ein", "Hund"] for space in SPACES]
    rng = random.Random(2)
    texts = ["".join(rng.choices(known, k=rng.randrange(9))) for _ in range(400)] + strings()[:400]
    found = engine_page.run(
        """(kind, symbols, texts) => {
            const tokenizer = exformer.makeTokenizer({ kind, symbols });
            return texts.map((text) => {
                try {
                    const ids = tokenizer.encode(text);
                    return [ids, tokenizer.decode(ids)];
                } catch { return null; }
            });
        }""",
        kind,
        tokenizer.vocabulary.tokens[3:],
        texts,
    )
    expected = [_ids_and_text(tokenizer, text) for text in texts]
    assert found == expected
    assert sum(each is not None for each in expected) > 300


SPACES = [
    " ",
    "  ",
    "\n",
    "\t\r",
    "\x85",
    "\xa0",
    "\x1c",
    "\x1f",
    "\u2003",
    "\u2028",
    "\u3000",
    "\u1680",
    "\ufeff",
    "\u200b",
]


def _ids_and_text(tokenizer, text):
    try:
        ids = tokenizer.encode(text)
    except ValueError:
        return None
    return [ids, tokenizer.decode(ids)]


def test_lone_surrogate(engine_page) -> None:
    """Half a surrogate pair is refused in words, as in the library."""
    said = engine_page.run(
        """async () => {
            const { tokenizer } = await exformer.load("shakespeare-bpe");
            try { return tokenizer.encode("a \\ud83d b"); } catch ({ message }) { return message; }
        }"""
    )
    assert "half a character" in said


# --- Random numbers and what is drawn with them

SEEDS = [0, 1, 12, 2**31, 2**32 - 1, 2**32, 2**32 + 5, 2**53 + 1, 2**63 + 9, 2**64 - 1, -1, -(2**63)]


def test_random_numbers(engine_page) -> None:
    """A seed gives the numbers of PyTorch's generator, over more than one refill of its state."""
    found = engine_page.run(
        """(seeds) => seeds.map((seed) => {
            const rng = exformer.generator(seed);
            return Array.from({ length: 700 }, () => rng.uniform());
        })""",
        [str(seed) for seed in SEEDS],
    )
    for seed, numbers in zip(SEEDS, found, strict=True):
        rng = torch.Generator().manual_seed(seed)
        assert numbers == torch.rand(700, generator=rng, dtype=torch.float64).tolist(), seed


CHANGES = [
    {"temperature": 0.7}, {"temperature": 3.3}, {"top_k": 1}, {"top_k": 7},
    {"top_p": 0.9}, {"top_p": 0.5}, {"top_p": 0.75}, {"top_p": 0.05}, {"top_p": 1.0},
    {"min_p": 0.1}, {"min_p": 0.37}, {"min_p": 1.0}, {"min_p": 0.0},
    {"temperature": 1.3, "top_k": 20, "top_p": 0.8, "min_p": 0.03},
]  # fmt: skip


@cache
def rows():
    """Return logits: random, with ties, with tokens that cannot come, and with round probabilities."""
    rng = torch.Generator().manual_seed(3)
    wild = 3 * torch.randn(8, 50, generator=rng)
    ties = torch.randint(-3, 3, (8, 50), generator=rng).float()
    cut = wild.masked_fill(torch.rand(8, 50, generator=rng) < 0.5, -torch.inf)
    halves = torch.tensor([0.5, 0.25, 0.125, 0.0625, 0.0625]).log().repeat(4, 1)
    alike = [torch.zeros(n) for n in (4, 8, 10)]  # sums that reach top-p to the last bit
    most = 5 * torch.randn(30, 1, generator=rng)
    edges = (
        most + torch.tensor([1.0, 0.1, 0.37, 0.5, 0.9]).log()
    )  # as probable as min-p asks for, or just not
    return [*wild, *ties, *cut, *halves, *alike, *edges]


def test_changes_of_the_distribution(engine_page) -> None:
    """Temperature, top-k, top-p, min-p: the same tokens are left, with the same logits to the last bit."""
    asked = [
        [engine.pack(row), engine.as_options(each)]
        for each in CHANGES
        for row in rows()
        if each.get("top_k", 0) <= len(row)
    ]
    found = engine_page.run(
        "(asked) => asked.map(([row, options]) => pack(exformer.transformLogits(unpack(row), options)))",
        asked,
    )
    expected = [
        Sampling(**each).transform(row)
        for each in CHANGES
        for row in rows()
        if each.get("top_k", 0) <= len(row)
    ]
    for text, wanted, (_, options) in zip(found, expected, asked, strict=True):
        assert torch.equal(engine.numbers(text), wanted), options


def test_penalty_and_draw(engine_page) -> None:
    """A penalty changes the same logits by the same amount; a random number draws the same token."""
    ids = [0, 3, 3, 1]
    penalties = [1.2, 0.7, 1.3, 2.0]
    uniform = [0.0, 0.2, 0.5, 0.75, 0.875, 0.999999, 1 - 2**-53]
    found = engine_page.run(
        """(rows, ids, penalties, uniform) => rows.map(unpack).map((row) => [
            penalties.map((penalty) => pack(exformer.penalizeRepetition(row, ids, penalty))),
            uniform.map((u) => exformer.draw(row, u)),
            exformer.best(row),
        ])""",
        [engine.pack(row) for row in rows()],
        ids,
        penalties,
        uniform,
    )
    for (penalized, drawn, best), row in zip(found, rows(), strict=True):
        for text, penalty in zip(penalized, penalties, strict=True):
            wanted = penalize_repetition(row[None], torch.tensor([ids]), penalty)[0]
            assert torch.equal(engine.numbers(text), wanted)
        assert (
            drawn == draw(row.expand(len(uniform), -1), torch.tensor(uniform, dtype=torch.float64)).tolist()
        )
        assert best == row.max(dim=-1).indices.item()


# --- Texts


@cache
def translations(name, beam=1):
    """Return the library's translations of fifty sentences."""
    return translate(*engine.shipped(name), engine.sentences(name)[: 50 if beam == 1 else 12], num_beams=beam)


def test_empty_sentences(engine_page) -> None:
    """An empty sentence has an empty translation, and no text is longer than the model can."""
    found = engine_page.run(engine.TRANSLATE, "multi30k-de-en", ["", " \n"])
    assert found == translate(*engine.shipped("multi30k-de-en"), ["", " \n"])
    said = engine_page.run(
        """async () => {
            const { model, tokenizer } = await exformer.load("multi30k-de-en");
            const steps = exformer.translate(model, tokenizer, "a ".repeat(5000));
            try { steps.next(); } catch ({ message }) { return message; }
        }"""
    )
    assert "max_len is 128: shorten it" in said


@pytest.mark.parametrize("name", TRANSLATORS)
def test_greedy_translations(engine_page, name: str) -> None:
    """Fifty sentences are translated as by the library."""
    assert engine_page.run(engine.TRANSLATE, name, engine.sentences(name)) == translations(name)


@cache
def continuations(name, options):
    """Return how the library continues prompts."""
    return generate(*engine.shipped(name), engine.prompts(name), **dict(options))


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_greedy_texts(engine_page, name: str) -> None:
    """Fifty prompts are continued as by the library, beyond the model's longest text, too."""
    options = {"max_new_tokens": 24, "temperature": 0.0}
    found = engine_page.run(
        engine.GENERATE, name, [[text, engine.as_options(options)] for text in engine.prompts(name)]
    )
    assert found == continuations(name, tuple(options.items()))


SAMPLERS = [
    {}, {"temperature": 0.7}, {"top_k": 5}, {"top_p": 0.9}, {"min_p": 0.1}, {"repetition_penalty": 1.3},
    {"temperature": 0.8, "top_k": 40, "top_p": 0.95, "min_p": 0.02, "repetition_penalty": 1.1},
]  # fmt: skip


@pytest.mark.parametrize("name", LANGUAGE_MODELS)
def test_seeded_samples(engine_page, name: str) -> None:
    """The same seed gives the same text as in the library, whatever is done to the distribution."""
    prompts = enumerate(["", "ROMEO:", "My lord, "])
    more = [(prompt, {"max_new_tokens": 24, "seed": seed}) for seed, prompt in prompts]
    asked = [(prompt, sampler | each) for prompt, each in more for sampler in SAMPLERS]
    found = engine_page.run(
        engine.GENERATE, name, [[prompt, engine.as_options(options)] for prompt, options in asked]
    )
    assert found == sampled(name, tuple((prompt, tuple(options.items())) for prompt, options in asked))


@cache
def sampled(name, asked):
    """Return the library's samples."""
    return [generate(*engine.shipped(name), prompt, **dict(options)) for prompt, options in asked]


@pytest.mark.parametrize("name", TRANSLATORS)
def test_beam(engine_page, name: str) -> None:
    """A beam of 4 finds the library's translations."""
    found = engine_page.run(
        """async (name, texts) => {
            const { model, tokenizer: [source, target] } = await exformer.load(name);
            return texts.map((text) => {
                const memory = model.encode([...source.encode(text), source.endId]);
                const next = exformer.nextOf(model, [target.beginId], memory);
                const options = { beam: 4, maxNewTokens: model.config.max_len, endId: target.endId };
                return target.decode(exformer.beamSearch(next, options).ids);
            });
        }""",
        name,
        engine.sentences(name)[:12],
    )
    assert found == translations(name, beam=4)


@cache
def chains():
    """Return made-up languages: the logits of the next token after each token."""
    rng = torch.Generator().manual_seed(4)
    return [2 * torch.randn(9, 9, generator=rng) for _ in range(60)]


def test_beam_in_small_languages(engine_page) -> None:
    """Whatever beam, length and exponent: text, log-probability and end are the library's."""
    asked = [[n % 6 + 1, n % 7 + 1, (0.0, 0.5, 1.0, 2.0)[n % 4]] for n in range(len(chains()))]
    found = engine_page.run(
        """(chains, asked) => chains.map((chain, n) => {
            const [beam, maxNewTokens, alpha] = asked[n];
            const table = new exformer.Matrix(9, 9, unpack(chain));
            const next = (ids) => ({ logits: table.row(ids.length ? ids[ids.length - 1] : 1), from: null });
            const found = exformer.beamSearch(next, { beam, maxNewTokens, endId: 0, alpha });
            return [found.ids, found.logProbability, !!found.best.ended, found.tree.length];
        })""",
        [engine.pack(chain) for chain in chains()],
        asked,
    )
    for (ids, log_probability, ended, nodes), chain, (beam, longest, alpha) in zip(
        found, chains(), asked, strict=True
    ):
        [best] = beam_search(
            lambda ids, chain=chain: chain[ids[:, -1]], torch.tensor([[1]]),
            eos_id=0, max_new_tokens=longest, num_beams=beam, length_penalty=alpha,
        )  # fmt: skip
        assert (ids, ended) == (best.ids, best.ended)
        assert log_probability == pytest.approx(best.log_probability, abs=1e-5)
        assert nodes <= 1 + beam * longest
