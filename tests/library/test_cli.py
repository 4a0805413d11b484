"""The command: what comes in and goes out, and one line for each mistake."""

import io
import json
import re
import shlex
import signal
import subprocess
import sys
import time
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch

from exformer.cli import train as commands
from exformer.cli.generate import _command_messages
from exformer.cli.lines import show_controls
from exformer.cli.main import main
from exformer.cli.parser import one_line
from exformer.generation.generate import generate
from exformer.generation.translate import translate
from exformer.hub.pretrained import load_model, save_model
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.recipes.evaluate import prepare
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.characters_and_words import CharTokenizer, WordTokenizer

SIZES = {"d_model": 6, "n_heads": 2, "d_ff": 7, "n_layers": 1, "max_len": 12}
WORDS = WordTokenizer.from_texts(["the red fox sleeps"])
CHARACTERS = CharTokenizer.from_texts(["the red fox sleeps"])


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    """Return what runs the command with words and an input, and gives status, output and errors."""

    def run(*words: object, text: str | bytes = "") -> tuple[int, str, str]:
        data = text if isinstance(text, bytes) else text.encode()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))
        try:
            status = main([str(word) for word in words])
        except SystemExit as end:
            status = int(end.code or 0)
        found = capsys.readouterr()
        return status, found.out, found.err

    return run


@pytest.fixture
def writer(tmp_path: Path) -> Path:
    """A language model of characters that knows nothing."""
    torch.manual_seed(0)
    model = DecoderLM(DecoderLMConfig(CHARACTERS.vocab_size, **SIZES))
    save_model(tmp_path / "writer", model, CHARACTERS, card={})
    return tmp_path / "writer"


@pytest.fixture
def translator(tmp_path: Path) -> tuple[Path, EncoderDecoder]:
    torch.manual_seed(1)
    model = EncoderDecoder(EncoderDecoderConfig(WORDS.vocab_size, WORDS.vocab_size, **SIZES)).eval()
    save_model(tmp_path / "translator", model, (WORDS, WORDS), card={})
    return tmp_path / "translator", model


@pytest.fixture
def named(writer: Path, translator: tuple[Path, EncoderDecoder]):
    """Return what cuts a line into words as a shell does, with the folders of both models for their names."""

    def words(line: str) -> list[str]:
        folders = {"WRITER": str(writer), "TRANSLATOR": str(translator[0])}
        return shlex.split(re.sub("WRITER|TRANSLATOR", lambda name: folders[name[0]], line))

    return words


def test_tokens_there_and_back(talk, tmp_path: Path) -> None:
    book, out = tmp_path / "book.txt", tmp_path / "bpe.json"
    book.write_text("peter piper picked a peck of pickled peppers", encoding="utf-8")
    assert talk("tokenize", "train", book, "--merges", 3, "--out", out) == (0, "", "")
    lines = "picky paper\n\npiù 🙂 peck \t \n  peck\n"
    status, ids, _ = talk("tokenize", "encode", "--tokenizer", out, text=lines)
    assert status == 0
    tokenizer = BPETokenizer.load(out)
    assert ids.splitlines()[0] == " ".join(map(str, tokenizer.encode("picky paper")))
    assert talk("tokenize", "decode", "--tokenizer", out, text=ids) == (0, lines, "")


def test_a_line_without_an_end(talk, translator, monkeypatch) -> None:
    monkeypatch.setattr("exformer.cli.lines._MAX_LINE", 9)
    assert talk("translate", "--model", translator[0], text="red fox\nfox")[0] == 0
    said = "exformer: standard input, line 2: expected fewer than 9 bytes\n"
    assert talk("translate", "--model", translator[0], text="fox\nred   fox\n") == (2, "", said)


def test_byte_order_mark(talk, translator, tmp_path: Path) -> None:
    plain, marked = "the fox\nfox \n", "\ufeffthe fox\nfox \ufeff\n"
    for text in (plain, marked):
        (tmp_path / "book.txt").write_text(text, encoding="utf-8")
        words = ("tokenize", "train", tmp_path / "book.txt", "--merges", 9)
        assert talk(*words, "--out", tmp_path / f"{len(text)}.json")[0] == 0
    tokenizer, other = (tmp_path / f"{len(text)}.json" for text in (plain, marked))
    assert tokenizer.read_bytes() == other.read_bytes()
    encoded = [talk("tokenize", "encode", "--tokenizer", tokenizer, text=text) for text in (plain, marked)]
    assert encoded[0] == encoded[1]
    translated = [talk("translate", "--model", translator[0], text=f"{mark}fox\n") for mark in ("", "\ufeff")]
    assert translated[0] == translated[1]
    assert translated[0][0] == 0


def test_generation_with_a_seed(talk, writer: Path) -> None:
    first, again, other = (
        talk("generate", "--model", writer, "--prompt", "the", "--seed", seed) for seed in (1, 1, 2)
    )
    assert first[0] == 0
    assert first == again != other
    assert first[1].startswith("the")


def test_default_seed_of_generation(talk, writer: Path) -> None:
    asked = ("generate", "--model", writer, "--prompt", "the")
    assert talk(*asked) == talk(*asked) == talk(*asked, "--seed", 0)


def test_options_that_make_sampling_greedy(talk, writer: Path) -> None:
    common = ("generate", "--model", writer, "--prompt", "fox", "--tokens", 5)
    status, text, _ = talk(*common, "--temperature", 0)
    assert status == 0
    for narrow in (("--top-k", 1), ("--top-p", 1e-9), ("--temperature", 1e-6)):
        assert talk(*common, *narrow) == (0, text, "")


def test_space_between_prompt_and_text(talk, tmp_path: Path) -> None:
    model = DecoderLM(DecoderLMConfig(WORDS.vocab_size, **SIZES))
    save_model(tmp_path, model, WORDS, card={})
    options = ("--tokens", 1, "--top-k", 4)
    texts = {
        talk("generate", "--model", tmp_path, "--prompt", "the red", *options, "--seed", n) for n in range(9)
    }
    words = {f"the red {word}\n" for word in ("the", "red", "fox", "sleeps")}
    assert {text for _, text, _ in texts} - {"the red\n"} <= words
    assert len(texts) > 1


def test_translation_line_by_line(talk, translator: tuple[Path, EncoderDecoder]) -> None:
    folder, model = translator
    lines = ["the fox sleeps", "", "fox", "the red fox sleeps"] * 20
    for beam in (1, 2):
        status, out, err = talk("translate", "--model", folder, "--num-beams", beam, text="\n".join(lines))
        wanted = [translate(model, (WORDS, WORDS), line, num_beams=beam) for line in lines]
        assert (status, err) == (0, "")
        assert out.split("\n")[:-1] == wanted
    assert talk("translate", "--model", folder, text="") == (0, "", "")
    windows = talk("translate", "--model", folder, "--num-beams", 2, text="fox\r\n")
    assert windows == (0, wanted[2] + "\n", "")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "exformer: the following arguments are required: COMMAND; see exformer --help"),
        ("fly", "invalid choice: 'fly'"),
        ("generate", "exformer generate: the following arguments are required: --model"),
        ("generate --model nowhere", "exformer: there is no model nowhere"),
        ("generate --model WRITER --temperature -1", "exformer: --temperature must be 0 (greedy)"),
        ("generate --model WRITER --top-p 1.5", "--top-p must lie in (0, 1]"),
        ("generate --model WRITER --top-k 0", "--top-k must"),
        ("generate --model WRITER --min-p 1.5", "--min-p must lie in [0, 1]"),
        ("generate --model WRITER --temperature 0 --top-p 2", "--top-p must lie in (0, 1]"),
        ("generate --model WRITER --temperature 0 --top-p nan", "--top-p must lie in (0, 1]"),
        ("generate --model WRITER --temperature 0 --top-k 0", "--top-k must"),
        (f"generate --model WRITER --seed {2**64}", "--seed must lie from -9,223,372,036,854,775,808 to 18,"),
        (f"generate --model WRITER --seed {-(2**63) - 1}", f"got {-(2**63) - 1}"),
        ("generate --model ''", "argument --model: expected a name, got an empty one"),
        ("bench ''", "expected a name, got an empty one"),
        (f"generate --model WRITER --tokens {'9' * 20}", "--tokens: expected an integer of at most"),
        ("generate --model WRITER --tokens \u0663", "such as 12, got '\u0663'"),
        ("generate --model WRITER --seed 1_0", "argument --seed: expected an integer, such"),
        ("generate --model WRITER --seed +5", "got '+5'"),
        (f"generate --model WRITER --seed {'9' * 5000}", "such as 12, got '999"),
        ("generate --model WRITER --top-p 0_9", "expected a number, such as 0.8, got '0_9'"),
        ("generate --model WRITER --prompt the\udcff", "--prompt: expected a text of whole"),
        ("tokenize train /dev/zero --merges 1 --out x", "/dev/zero is a device"),
        ("tokenize encode --tokenizer /dev/zero", "/dev/zero is a device"),
        ("generate --model WRITER --tokens 0", "exformer: --tokens must be at least 1, got 0"),
        (
            "generate --model WRITER --prompt 'the fox sleeps'",
            "--prompt fills the model's max_len of 12 tokens: --tokens must say how many are to follow",
        ),
        ("generate --model WRITER --prompt Zebra", "got unknown ones: 'Z'"),
        ("generate --model TRANSLATOR", "an encoder-decoder translates, see exformer translate"),
        ("translate --model WRITER", "a language model continues a text, see exformer generate"),
        ("translate --model TRANSLATOR --num-beams 0", "exformer: --num-beams must lie from 1 to 10,000"),
        (
            "translate --model TRANSLATOR --length-penalty -1",
            "exformer: --length-penalty must lie from 0 to 10",
        ),
        ("tokenize encode --tokenizer nowhere", "nowhere can't be read as a tokenizer file"),
        ("tokenize train nowhere --merges 1 --out x", "No such file"),
        ("tokenize decode --tokenizer WRITER/tokenizer.json", "expected ids with spaces"),
    ],
)
@pytest.mark.usefixtures("unchecked_shapes")
def test_messages_of_one_line(talk, named, line: str, message: str) -> None:
    status, out, err = talk(*named(line), text="fox\n")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_closed_streams(talk, translator, monkeypatch, capsys) -> None:
    words = ["translate", "--model", str(translator[0])]
    monkeypatch.setattr(sys, "stdin", None)
    assert main(words) == 2
    assert capsys.readouterr().err == "exformer: the standard input is closed\n"
    monkeypatch.setattr(sys, "stdout", None)
    assert main(words) == 2
    assert capsys.readouterr().err == "exformer: the standard output is closed\n"


def test_closed_standard_error(talk, translator, monkeypatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    status, out, _ = talk("translate", "--model", translator[0], text="fox\n")
    assert (status, out.count("\n")) == (0, 1)
    sys.stderr.close()
    monkeypatch.setattr(sys, "stderr", None)
    assert talk("translate", "--model", "nowhere", text="fox\n")[:2] == (2, "")
    sys.stderr.close()


def test_invalid_utf_8_on_the_standard_input(talk, translator) -> None:
    status, _, err = talk("translate", "--model", translator[0], text=b"fox\nfox\n\xff\n")
    assert (status, err.count("\n")) == (2, 1)
    assert "standard input, line 3: expected text in UTF-8, got the byte 0xff: save the text as UTF-8" in err


def test_the_largest_and_the_smallest_seed(talk, writer: Path) -> None:
    for seed in (2**64 - 1, -(2**63)):
        assert talk("generate", "--model", writer, "--seed", seed)[0] == 0


def judged_by_nobody(monkeypatch) -> None:
    monkeypatch.setattr(commands, "judge", lambda candidate, progress: pytest.fail("scored"))


def candidate(name: str) -> SimpleNamespace:
    return SimpleNamespace(name=name)


def test_models_are_checked_before_scoring(talk, writer: Path, monkeypatch) -> None:
    judged_by_nobody(monkeypatch)

    def prepared(name: str) -> object:
        return candidate(name) if name == "good" else prepare(name)

    monkeypatch.setattr(commands, "prepare", prepared)
    for name, said in (
        ("nowhere", "there is no model nowhere"),
        (writer, f"{writer}: the card's recipe can't be followed"),
    ):
        status, out, err = talk("bench", "good", name)
        assert (status, out, err.startswith(f"exformer: {said}")) == (2, "", True)


WRITES = {
    "the scores": ("bench", "WRITER", "--json"),
    "the tokenizer": ("tokenize", "train", "BOOK", "--merges", "1", "--out"),
}


@pytest.mark.parametrize("what", WRITES)
def test_output_paths_are_checked_first(talk, writer: Path, tmp_path: Path, monkeypatch, what) -> None:
    judged_by_nobody(monkeypatch)
    monkeypatch.setattr(BPETokenizer, "from_texts", lambda *given, **options: pytest.fail("learned"))
    monkeypatch.setattr(commands, "prepare", candidate)
    book = tmp_path / "book.txt"
    book.write_text("a good text")
    names = {"WRITER": writer, "BOOK": book}
    words = [names.get(word, word) for word in WRITES[what]]
    for place, said in (
        (
            tmp_path / "nowhere" / "x",
            f"there is no folder for {tmp_path}/nowhere/x: make it, or choose anoth",
        ),
        (book / "x", f"there is no folder for {book}/x: make it, or choose another path for {what}"),
        (tmp_path, f"{tmp_path} is a folder: expected a file for {what}"),
    ):
        status, _, err = talk(*words, place)
        assert (status, err.startswith(f"exformer: {said}")) == (2, True), err
    monkeypatch.setattr("os.access", lambda place, how: place != tmp_path)
    status, _, err = talk(*words, tmp_path / "x")
    wanted = f"exformer: {tmp_path}/x may not be written: choose another path for {what}\n"
    assert (status, err) == (2, wanted)


def test_output_path_that_is_an_input(talk, tmp_path: Path) -> None:
    book, other, link = tmp_path / "book.txt", tmp_path / "other.txt", tmp_path / "link"
    for file in (book, other):
        file.write_text("a good text")
    link.symlink_to(book)
    (tmp_path / "x").mkdir()
    for out in (book, link, tmp_path / "x" / ".." / "book.txt"):
        status, _, err = talk("tokenize", "train", other, book, "--merges", 1, "--out", out)
        assert (status, err.count("\n")) == (2, 1)
        assert f"--out {out} would replace a text that is read: choose another file" in err
        assert book.read_text() == "a good text"
    assert talk("tokenize", "train", book, "--merges", 1, "--out", other)[0] == 0  # an old one is replaced


def test_scores_of_other_models_stay(talk, writer: Path, translator, tmp_path: Path, monkeypatch) -> None:
    def judged(one, progress):
        return {"model": one.name, "scores": {"loss": len(made)}}

    file, made, two = tmp_path / "found.json", [], str(translator[0])
    monkeypatch.setattr(commands, "prepare", candidate)
    monkeypatch.setattr(commands, "judge", judged)
    monkeypatch.setattr(commands, "shipped_models", lambda: [str(writer)])
    for names, held in (
        ([writer, two], {str(writer): 0, two: 0}),
        ([writer, writer], {two: 0, str(writer): 1}),
        ([], {two: 0, str(writer): 2}),  # all that are shipped
    ):
        assert talk("bench", *names, "--json", file)[0] == 0
        found = json.loads(file.read_text())
        assert {one["model"]: one["scores"]["loss"] for one in found} == held
        assert len(found) == len(held)  # each once
        made.append(names)
    for wrong in ("{", "[1]", '[{"scores": 1}]', '{"a": 1}', "null"):
        file.write_text(wrong)
        for names in ([writer], []):
            status, _, err = talk("bench", *names, "--json", file)
            assert (status, err) == (2, f"exformer: {file} holds no scores: choose another file\n")
            assert file.read_text() == wrong


def test_invalid_utf_8_in_a_file(talk, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("a good text")
    (tmp_path / "bad.txt").write_bytes(b"abc\xff")
    words = ("tokenize", "train", tmp_path / "good.txt", tmp_path / "bad.txt", "--merges", 1)
    status, _, err = talk(*words, "--out", tmp_path / "pairs.json")
    assert (status, err.count("\n")) == (2, 1)
    assert "bad.txt, line 1: expected text in UTF-8, got the byte 0xff: save the text as UTF-8" in err


def test_examples_in_the_help(talk) -> None:
    for words in (["generate"], ["translate"], ["tokenize", "train"], ["tokenize", "encode"]):
        status, out, _ = talk(*words, "--help")
        assert status == 0
        assert f"example: exformer {' '.join(words)} " in " ".join(out.split())


def test_models_in_the_help(talk) -> None:
    for words, can, cannot in (
        ("translate", "multi30k", "shakespeare"),
        ("generate", "shakespeare", "multi30k"),
    ):
        text = "".join(talk(words, "--help")[1].split())
        assert can in text
        assert cannot not in text


@pytest.mark.parametrize("number", [1, 2])
@pytest.mark.parametrize(
    ("line", "good", "bad", "message"),
    [
        ("tokenize encode --tokenizer WRITER/tokenizer.json", "fox", "Zebra", "got unknown ones"),
        ("tokenize decode --tokenizer WRITER/tokenizer.json", "3 4", "3 four", "expected ids with"),
        ("tokenize decode --tokenizer WRITER/tokenizer.json", "3 4", "3 400", "expected ids from 0 to"),
        ("translate --model TRANSLATOR", "fox", "Zebra", "got unknown ones"),
        ("translate --model TRANSLATOR", "fox", "fox " * 12, "is longer than the model's max_len"),
    ],
)
def test_number_of_a_bad_line(talk, named, line, good, bad, message, number) -> None:
    status, _, err = talk(*named(line), text="\n".join([*[good] * (number - 1), bad, good]))
    assert (status, err.count("\n")) == (2, 1)
    assert err.startswith(f"exformer: line {number}")
    assert message in err


def test_messages_about_long_input(talk, writer: Path) -> None:
    ids = ("tokenize", "decode", "--tokenizer", writer / "tokenizer.json")
    for words, text, end in (
        (ids, " ".join(["999999"] * 200_000), "more\n"),
        (("translate", "--model", "x" * 100_000), "", "model.safetensors'\n"),
        (("x" * 100_000,), "", "exformer --help\n"),
    ):
        status, _, err = talk(*words, text=text)
        assert (status, err.count("\n")) == (2, 1)
        assert len(err) < 700
        assert err.endswith(end)


def test_spaces_at_the_end_of_a_line(talk, writer: Path) -> None:
    tokenizer = writer / "tokenizer.json"
    status, ids, _ = talk("tokenize", "encode", "--tokenizer", tokenizer, text="fox  \nthe \r\n")
    assert (status, ids.splitlines()[0]) == (0, " ".join(map(str, CHARACTERS.encode("fox  "))))
    assert talk("tokenize", "decode", "--tokenizer", tokenizer, text=ids) == (0, "fox  \nthe \n", "")


def test_a_text_longer_than_max_len(talk, writer: Path) -> None:
    options = ("generate", "--model", writer, "--prompt", "the", "--tokens", 60, "--top-k", 9, "--seed")
    texts = {talk(*options, seed) for seed in range(3)}
    assert all((status, err) == (0, "") for status, _, err in texts)
    assert max(len(text) for _, text, _ in texts) > 20  # max_len is 12


def test_stop_strings(talk, writer: Path) -> None:
    options = ("generate", "--model", writer, "--tokens", 40, "--top-k", 9, "--seed", 1)
    _, text, _ = talk(*options)
    middle = text[5:7]
    first = text.index(middle)
    assert talk(*options, "--stop", "zz", "--stop", middle) == (0, text[:first] + "\n", "")


@pytest.mark.parametrize(
    ("option", "value"), [("min_p", 0.3), ("repetition_penalty", 1.5), ("top_k", 3), ("top_p", 0.5)]
)
def test_options_equal_arguments_of_generate(talk, writer: Path, option: str, value: float) -> None:
    model, tokenizer, _ = load_model(writer)
    texts = set()
    for seed in range(5):
        wanted = generate(model, tokenizer, "fox", seed=seed, temperature=1.4, **{option: value})
        line = f"--prompt fox --seed {seed} --temperature 1.4 --{option.replace('_', '-')} {value}"
        assert talk("generate", "--model", writer, *line.split()) == (0, f"fox{wanted}\n", "")
        texts.add((wanted, generate(model, tokenizer, "fox", seed=seed, temperature=1.4)))
    assert any(one != other for one, other in texts)


def test_memory_of_translation(talk, translator, monkeypatch) -> None:
    for error in (RuntimeError("DefaultCPUAllocator: can't allocate memory"), RuntimeError("std::bad_alloc")):
        monkeypatch.setattr("exformer.cli.generate.translate", lambda *_, error=error, **__: throw(error))
        status, out, err = talk("translate", "--model", translator[0], "--num-beams", 3000, text="fox\n")
        assert (status, out) == (2, "")
        assert err == "exformer: there is not enough memory: a smaller --num-beams needs less\n"
    monkeypatch.setattr("exformer.cli.generate.translate", lambda *_, **__: throw(MemoryError()))
    says = "exformer: there is not enough memory: a smaller --num-beams needs less\n"
    assert talk("translate", "--model", translator[0], text="fox\n") == (2, "", says)
    monkeypatch.setattr("exformer.cli.generate.translate", lambda *_, **__: throw(RuntimeError("a bug")))
    with pytest.raises(RuntimeError, match="a bug"):
        talk("translate", "--model", translator[0], text="fox\n")


def test_names_of_options_in_messages() -> None:
    for said, shown in (
        ("stop must not be empty: each stop is a text", "--stop must not be empty: each stop is a text"),
        ("stopping needs a text", "stopping needs a text"),
        ("sentence 3: no sentence", "line 3: no sentence"),
        ("give a larger max_new_tokens", "give a larger --tokens"),
    ):
        with pytest.raises(ValueError, match=f"^{shown}$"), _command_messages(remedy="wait"):
            raise ValueError(said)


def test_digits_of_ids(talk, writer: Path) -> None:
    words = ("tokenize", "decode", "--tokenizer", writer / "tokenizer.json")
    right = talk(*words, text="3 4\n")
    for same in ("\ufeff3 4\n", " 3\t 4 \r\n", "03 4\n"):
        assert talk(*words, text=same) == right
    for wrong in ("+3", "1_0", "\u0663", "\uff13", "3\u2028", "3\xa04", "-3", "9" * 5000, "3,4"):
        status, _, err = talk(*words, text=f"3\n{wrong}\n")
        assert status == 2
        assert err.startswith("exformer: line 2: expected ids with spaces between them, got ")
        assert len(err) < 150


@pytest.mark.parametrize("encoding", ["utf-16-le", "utf-16-be", "utf-16"])
def test_utf_16(talk, translator, tmp_path: Path, encoding: str) -> None:
    text = "the red fox\nfox\n".encode(encoding)
    status, out, err = talk("translate", "--model", translator[0], text=text)
    said = "expected text in UTF-8, got UTF-16: save the text as UTF-8\n"
    assert (status, out, err) == (2, "", f"exformer: standard input, line 1: {said}")
    (tmp_path / "book.txt").write_bytes(text)
    words = ("tokenize", "train", tmp_path / "book.txt", "--merges", 1, "--out", tmp_path / "t.json")
    assert talk(*words)[::2] == (2, f"exformer: {tmp_path}/book.txt: {said}")


def test_output_of_names_that_are_not_utf_8() -> None:
    """A name of bytes that are no UTF-8 is printed with escapes, and ends no command."""
    code = (
        "from exformer.cli import doctor, main; doctor.report_environment = lambda _: print('\\udcff'); "
        "main.main(['doctor'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"\\udcff\n", b"")


def test_memory_of_generation(talk, writer: Path, monkeypatch) -> None:
    monkeypatch.setattr("exformer.cli.generate.stream", lambda *_, **__: throw(MemoryError()))
    said = "exformer: there is not enough memory: fewer --tokens need less\n"
    assert talk("generate", "--model", writer, "--tokens", 10**9) == (2, "", said)
    monkeypatch.setattr("exformer.cli.tokenize.load_tokenizer", lambda *_: throw(MemoryError()))
    assert talk("tokenize", "encode", "--tokenizer", "x") == (2, "", "exformer: there is not enough memory\n")


def throw(error: Exception) -> None:
    raise error


@pytest.mark.parametrize(
    "words", [["--help"], ["translate", "--help"], ["tokenize", "encode", "--tokenizer", "T"]]
)
def test_commands_that_load_no_torch(words: list[str], writer: Path) -> None:
    words = [word.replace("T", str(writer / "tokenizer.json")) if word == "T" else word for word in words]
    code = (
        "import sys; from exformer.cli.main import main\ntry: main(sys.argv[1:])\nexcept SystemExit: pass\n"
    )
    code += "sys.exit('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, *words], stdin=subprocess.DEVNULL, capture_output=True)
    assert (done.returncode, done.stderr) == (0, b"")


#: Runs the command, and says when an interrupt has been made quiet for the first time.
SAYING_WHEN = """
import signal, sys
from exformer.__main__ import run
set_handler = signal.signal
def note(number, action):
    before = set_handler(number, action)
    signal.signal = set_handler
    print(flush=True)
    return before
signal.signal = note
sys.exit(run())
"""


def hear_interrupts():
    """Undo what a shell does to commands in the background: they, and the tests then, ignore interrupts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


@pytest.mark.parametrize("seconds", [0.0, 0.05, 0.2, 0.5, 1.0])
def test_interrupt_while_modules_are_loaded(seconds: float) -> None:
    options = ["generate", "--model", "shakespeare-char", "--tokens", "5000"]  # it takes long enough
    running = subprocess.Popen(
        [sys.executable, "-c", SAYING_WHEN, *options],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        preexec_fn=hear_interrupts,
    )
    assert running.stdout.readline() == b"\n"
    time.sleep(seconds)
    running.send_signal(signal.SIGINT)
    _, err = running.communicate(timeout=60)
    assert err == b""
    assert running.returncode in (-signal.SIGINT, 130)


def test_handler_of_interrupts_afterwards(talk) -> None:
    outside = signal.signal(signal.SIGINT, signal.default_int_handler)  # ignored behind a shell's &
    try:
        talk("translate", "--help")
        talk("fly")
        assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    finally:
        signal.signal(signal.SIGINT, outside)


def test_pieces_are_written_at_once(writer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen, begun = io.BytesIO(), []  # what has come out of the process, and when

    def stream(*_: object, **__: object) -> Iterator[str]:
        for piece in ("fox", " sleeps"):
            yield piece
            begun.append(seen.getvalue())

    monkeypatch.setattr("exformer.cli.generate.stream", stream)
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(seen))
    assert main(["generate", "--model", str(writer), "--prompt", "the "]) == 0
    assert begun == [b"the fox", b"the fox sleeps"]


def test_control_characters_of_a_model(talk, writer: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pieces = ["\x1b[2J", "a\tb\r\n", "\x07\x7f\x9b31m"]
    monkeypatch.setattr("exformer.cli.generate.stream", lambda *_, **__: iter(pieces))
    shown = talk("generate", "--model", writer, "--prompt", "\x1b\u200bthe\r ")[1]
    assert shown == "the␍ ␛[2Ja\tb␍\n␇␡\ufffd31m\n"
    monkeypatch.setattr("exformer.cli.generate.translate", lambda *_, **__: ["a\nb\x1b", "c"])
    assert talk("translate", "--model", writer, text="fox\nfox\n")[1] == "a b␛\nc\n"


def test_every_control_character_is_shown_by_a_symbol() -> None:
    controls = [chr(code) for code in range(0x110000) if unicodedata.category(chr(code)) == "Cc"]
    assert len(controls) == 65
    assert [each for each in controls if show_controls(each) == each] == ["\t", "\n"]
    assert show_controls(" ~\xa0é") == " ~\xa0é"


def test_lines_of_odd_text(talk, translator) -> None:
    """Only a line feed ends a line, and what nobody sees changes none."""
    plain = talk("translate", "--model", translator[0], text="the red fox\n\nfox\n")
    odd = "\ufeffthe\u2028red\x85\u200bfo\xadx\r\n\u200b\x00\n\x0cfox\u2029\n"
    assert talk("translate", "--model", translator[0], text=odd) == plain
    assert plain[1].split("\n")[1:] == ["", plain[1].split("\n")[2], ""]


def test_run_as_a_module_with_a_closed_pipe(writer: Path) -> None:
    code = f"{sys.executable} -m exformer generate --model {writer} --seed 1 | true"
    done = subprocess.run(code, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_longest_message() -> None:
    assert one_line("a\n  b") == "a b"
    assert one_line("a" * 600) == "a" * 600
    assert one_line("a" * 400 + "b" + "c" * 200) == "a" * 400 + " … " + "c" * 200
