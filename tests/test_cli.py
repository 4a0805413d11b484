"""The command: what comes in and goes out, and one line for each mistake."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from exformer import commands
from exformer.bpe import BPETokenizer
from exformer.cli import main
from exformer.generation import translate
from exformer.models.decoder_lm import DecoderLM, DecoderLMConfig
from exformer.models.encoder_decoder import EncoderDecoder, EncoderDecoderConfig
from exformer.pretrained import save_model
from exformer.tokenizer import CharTokenizer, WordTokenizer

SIZES = {"d_model": 6, "n_heads": 2, "d_ff": 7, "n_layers": 1, "max_len": 12}
WORDS = WordTokenizer.from_texts(["the red fox sleeps"])
CHARACTERS = CharTokenizer.from_texts(["the red fox sleeps"])


@pytest.fixture
def talk(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture):
    """Return what runs the command with words and an input, and gives status, output and errors."""

    def run(*words: object, text: str = "") -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))
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
    save_model(tmp_path / "writer", model, tokenizers={"tokenizer": CHARACTERS}, card={})
    return tmp_path / "writer"


@pytest.fixture
def translator(tmp_path: Path) -> tuple[Path, EncoderDecoder]:
    torch.manual_seed(1)
    model = EncoderDecoder(EncoderDecoderConfig(WORDS.vocab_size, WORDS.vocab_size, **SIZES)).eval()
    tokenizers = {"src_tokenizer": WORDS, "tgt_tokenizer": WORDS}
    save_model(tmp_path / "translator", model, tokenizers=tokenizers, card={})
    return tmp_path / "translator", model


def test_tokens_there_and_back(talk, tmp_path: Path) -> None:
    book, out = tmp_path / "book.txt", tmp_path / "bpe.json"
    book.write_text("peter piper picked a peck of pickled peppers", encoding="utf-8")
    assert talk("tokenize", "train", book, "--merges", 3, "--out", out) == (0, "", "")
    lines = "picky paper\n\npiù 🙂 peck\n"
    status, ids, _ = talk("tokenize", "encode", "--tokenizer", out, text=lines)
    assert status == 0
    tokenizer = BPETokenizer.load(out)
    assert ids.splitlines()[0] == " ".join(map(str, tokenizer.encode("picky paper")))
    assert talk("tokenize", "decode", "--tokenizer", out, text=ids) == (0, lines, "")


def test_generation_repeats_with_its_seed(talk, writer: Path) -> None:
    first, again, other = (
        talk("generate", "--model", writer, "--prompt", "the", "--seed", seed) for seed in (1, 1, 2)
    )
    assert first[0] == 0
    assert first == again != other
    assert first[1].startswith("the")


def test_what_narrows_the_draw_to_one_is_greedy(talk, writer: Path) -> None:
    common = ("generate", "--model", writer, "--prompt", "fox", "--tokens", 5)
    status, text, _ = talk(*common, "--temperature", 0)
    assert status == 0
    for narrow in (("--top-k", 1), ("--top-p", 1e-9), ("--temperature", 1e-6)):
        assert talk(*common, *narrow) == (0, text, "")


def test_words_get_their_space(talk, tmp_path: Path) -> None:
    model = DecoderLM(DecoderLMConfig(WORDS.vocab_size, **SIZES))
    save_model(tmp_path, model, tokenizers={"tokenizer": WORDS}, card={})
    _, text, _ = talk("generate", "--model", tmp_path, "--prompt", "the red", "--tokens", 1, "--seed", 3)
    assert text.startswith("the red ")


def test_a_line_in_a_line_out(talk, translator: tuple[Path, EncoderDecoder]) -> None:
    folder, model = translator
    lines = ["the fox sleeps", "", "fox", "the red fox sleeps"] * 20
    tokenizers = {"src_tokenizer": WORDS, "tgt_tokenizer": WORDS}
    for beam in (1, 2):
        status, out, err = talk("translate", "--model", folder, "--beam", beam, text="\n".join(lines))
        wanted = [line and translate(model, [line], beam=beam, **tokenizers)[0] for line in lines]
        assert (status, err) == (0, "")
        assert out.split("\n")[:-1] == wanted
    assert talk("translate", "--model", folder, text="") == (0, "", "")
    windows = talk("translate", "--model", folder, "--beam", 2, text="fox\r\n")
    assert windows == (0, wanted[2] + "\n", "")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "exformer: the following arguments are required: COMMAND; see exformer --help"),
        (("fly",), "invalid choice: 'fly'"),
        (("generate",), "exformer generate: the following arguments are required: --model"),
        (("generate", "--model", "nowhere"), "exformer: there is no model nowhere"),
        (("generate", "--model", "WRITER", "--temperature", "-1"), "temperature must be a number above 0"),
        (("generate", "--model", "WRITER", "--top-p", "1.5"), "p must lie in (0, 1]"),
        (("generate", "--model", "WRITER", "--top-k", "0"), "k must"),
        (("generate", "--model", "WRITER", "--tokens", "12"), "prompt and new tokens must fit into 12"),
        (("generate", "--model", "WRITER", "--tokens", "0"), "prompt and new tokens must fit into 12"),
        (("generate", "--model", "WRITER", "--prompt", "the fox sleeps"), "the prompt takes 15"),
        (("generate", "--model", "WRITER", "--prompt", "Zebra"), "came unknown ones: 'Z'"),
        (("generate", "--model", "TRANSLATOR"), "holds a model of kind EncoderDecoder"),
        (("translate", "--model", "WRITER"), "holds a model of kind DecoderLM"),
        (("translate", "--model", "TRANSLATOR", "--beam", "0"), "beam"),
        (("tokenize", "encode", "--tokenizer", "nowhere"), "nowhere is not a tokenizer file"),
        (("tokenize", "train", "nowhere", "--merges", "1", "--out", "x"), "No such file"),
        (("tokenize", "decode", "--tokenizer", "WRITER/tokenizer.json"), "expected ids with spaces"),
    ],
)
def test_mistakes_are_one_line(
    talk, writer: Path, translator: tuple[Path, EncoderDecoder], words: tuple[str, ...], message: str
) -> None:
    named = {"WRITER": str(writer), "TRANSLATOR": str(translator[0])}
    given = [word.replace("WRITER", named["WRITER"]) if "WRITER" in word else word for word in words]
    given = [named.get(word, word) for word in given]
    status, out, err = talk(*given, text="fox\n")
    assert (status, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err


def test_what_is_closed(talk, translator, monkeypatch, capsys) -> None:
    words = ["translate", "--model", str(translator[0])]
    monkeypatch.setattr(sys, "stdin", None)
    assert main(words) == 2
    assert capsys.readouterr().err == "exformer: the standard input is closed\n"
    monkeypatch.setattr(sys, "stdout", None)
    assert main(words) == 2
    assert capsys.readouterr().err == "exformer: the standard output is closed\n"


def test_scoring_begins_when_all_can_be_scored(talk, writer: Path, tmp_path: Path, monkeypatch) -> None:
    monkeypatch.setattr(commands, "judge", None)
    status, _, err = talk("bench", writer, "nowhere")
    assert (status, err.startswith("exformer: there is no model nowhere")) == (2, True)
    status, _, err = talk("bench", writer, "--json", tmp_path / "nowhere" / "found.json")
    assert (status, err) == (2, f"exformer: there is no folder for {tmp_path}/nowhere/found.json\n")


def test_scores_of_other_models_stay(talk, writer: Path, translator, tmp_path: Path, monkeypatch) -> None:
    def judged(name, progress):
        return {"model": str(name), "scores": {"loss": len(made)}}

    file, made, two = tmp_path / "found.json", [], str(translator[0])
    monkeypatch.setattr(commands, "judge", judged)
    monkeypatch.setattr(commands, "shipped_models", lambda: [str(writer)])
    for names, held in (
        ([writer, two], {str(writer): 0, two: 0}),
        ([writer], {two: 0, str(writer): 1}),
        ([], {str(writer): 2}),  # all that are shipped, and nothing else
    ):
        assert talk("bench", *names, "--json", file)[0] == 0
        assert {one["model"]: one["scores"]["loss"] for one in json.loads(file.read_text())} == held
        made.append(names)
    for wrong in ("{", "[1]", '[{"scores": 1}]', '{"a": 1}', "null"):
        file.write_text(wrong)
        status, _, err = talk("bench", writer, "--json", file)
        assert (status, err) == (2, f"exformer: {file} holds no scores: choose another file\n")
        assert file.read_text() == wrong


def test_a_file_that_is_no_text_is_named(talk, tmp_path: Path) -> None:
    (tmp_path / "good.txt").write_text("a good text")
    (tmp_path / "bad.txt").write_bytes(b"abc\xff")
    words = ("tokenize", "train", tmp_path / "good.txt", tmp_path / "bad.txt", "--merges", 1)
    status, _, err = talk(*words, "--out", tmp_path / "pairs.json")
    assert (status, err.count("\n")) == (2, 1)
    assert "bad.txt is not text in UTF-8: 'utf-8' codec can't decode byte 0xff" in err


def test_every_command_shows_an_example(talk) -> None:
    for words in (["generate"], ["translate"], ["tokenize", "train"], ["tokenize", "encode"]):
        status, out, _ = talk(*words, "--help")
        assert status == 0
        assert f"example: exformer {' '.join(words)} " in " ".join(out.split())


def test_it_runs_as_a_module_and_minds_a_closed_pipe(writer: Path) -> None:
    code = f"{sys.executable} -m exformer generate --model {writer} --seed 1 | true"
    done = subprocess.run(code, shell=True, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
