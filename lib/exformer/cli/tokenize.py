"""``exformer tokenize``: learn byte pairs from files; lines to ids and back. It needs no PyTorch."""

import argparse
import re
import sys
from pathlib import Path

from exformer.cli.lines import naming_line, read_lines
from exformer.storage.files import check_writable
from exformer.storage.text_files import decode_text, read_data
from exformer.tokenizers.bpe import BPETokenizer
from exformer.tokenizers.loading import load_tokenizer


def learn_merges(args: argparse.Namespace) -> None:
    """Learn byte pairs from files."""
    check_writable(args.out, what="the tokenizer")  # learning takes minutes
    out, texts = Path(args.out), []
    for name in args.files:
        if out.is_file() and out.samefile(name):
            raise ValueError(f"--out {out} would replace a text that is read: choose another file")
        texts.append(decode_text(read_data(name), name=name))
    title = "learning byte pairs" if sys.stderr.isatty() else ""
    tokenizer = BPETokenizer.from_texts(texts, n_merges=args.merges, progress=title)
    tokenizer.save(out)


def encode_lines(args: argparse.Namespace) -> None:
    """Write the ids of each line."""
    tokenizer = load_tokenizer(args.tokenizer)
    for number, line in enumerate(read_lines(), start=1):
        with naming_line(number):
            print(*tokenizer.encode(line))


def decode_lines(args: argparse.Namespace) -> None:
    """Write the text of each line of ids."""
    tokenizer = load_tokenizer(args.tokenizer)
    for number, line in enumerate(read_lines(), start=1):
        with naming_line(number):
            print(tokenizer.decode(_ids(line)))


def _ids(line: str) -> list[int]:
    words = line.replace("\t", " ").split(" ")
    for word in words:
        if not re.fullmatch("[0-9]{0,18}", word):
            more = "…" if len(word) > 40 else ""
            raise ValueError(f"expected ids with spaces between them, got {word[:40]!r}{more}")
    return [int(word) for word in words if word]
