"""Let every shipped model write 1,000 greedy texts in both browsers, and hold each to the library's.

    python tests/book/live/many_texts.py [--texts N] [NAME ...]

Captions are Multi30k's, beginnings are Shakespeare's, from the texts that the models were not trained on.
Where a text differs it is shown with the library's; for a difference of rounding two tokens would have to be
equally probable to the fifth digit.
"""

import argparse
import contextlib
import random
import sys
import tempfile
import time
from pathlib import Path

import engine
from browsers import Chromium, Firefox, firefox_path
from playwright.sync_api import sync_playwright

from exformer import generate, translate
from exformer.corpora.real import multi30k, tiny_shakespeare

ROOT = Path(__file__).parents[3]
sys.path.insert(0, str(ROOT / "book" / "_tools"))
GREEDY = {"max_new_tokens": 24, "temperature": 0.0}
AT_ONCE = 50  # texts, so that a page has time to breathe


def asked(name, n):
    """Return n texts that a model is to translate or to continue."""
    if name.startswith("multi30k"):
        src, tgt = name.split("-")[1:]
        return [pair.source for part in ("test", "val") for pair in multi30k(part, src=src, tgt=tgt)][:n]
    rng = random.Random(0)
    _, tokenizer = engine.shipped(name)
    if name in engine.TRANSLATORS:
        words = tokenizer[0].vocabulary.tokens[3:]
        return [" ".join(rng.choices(words, k=rng.randrange(2, 14))) for _ in range(n)]
    ids = tokenizer.encode(tiny_shakespeare()[1])
    starts = [rng.randrange(len(ids) - 100) for _ in range(n)]
    lengths = [rng.choice((3, 10, 30, 50, 80)) for _ in range(n)]
    return [tokenizer.decode(ids[start : start + k]) for start, k in zip(starts, lengths, strict=True)]


def by_library(name, texts):
    """Return what the library writes."""
    if name in engine.TRANSLATORS:
        return translate(*engine.shipped(name), texts)
    return generate(*engine.shipped(name), texts, **GREEDY)


def by_page(page, name, texts):
    """Return what a page writes."""
    found = []
    for start in range(0, len(texts), AT_ONCE):
        some = texts[start : start + AT_ONCE]
        if name in engine.TRANSLATORS:
            found += page.run(engine.TRANSLATE, name, some)
        else:
            found += page.run(engine.GENERATE, name, [[text, engine.as_options(GREEDY)] for text in some])
    return found


def main():
    """Print how many texts of each model and browser are equal; exit with 1 if one is not."""
    from chromium import browser_path

    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", default=engine.SHIPPED, metavar="NAME")
    parser.add_argument("--texts", type=int, default=1000)
    given = parser.parse_args()
    unequal = 0
    with tempfile.TemporaryDirectory() as folder, contextlib.ExitStack() as stack:
        playwright = stack.enter_context(sync_playwright())
        chromium = playwright.chromium.launch(executable_path=browser_path(), args=["--no-sandbox"])
        firefox = stack.enter_context(contextlib.closing(Firefox(firefox_path())))
        address = engine.write_page(Path(folder))
        pages = {each.name: each.page().open(address) for each in (Chromium(chromium), firefox)}
        for name in given.names:
            texts = asked(name, given.texts)
            expected = by_library(name, texts)
            for browser, page in pages.items():
                start = time.monotonic()
                found = by_page(page, name, texts)
                wrong = [row for row in zip(texts, expected, found, strict=True) if row[1] != row[2]]
                unequal += len(wrong)
                seconds = time.monotonic() - start
                print(
                    f"{name:24}{browser:10}{len(texts) - len(wrong):6} of {len(texts)} equal{seconds:8.1f} s"
                )
                for text, theirs, mine in wrong[:5]:
                    print(f"    {text!r}\n        library {theirs!r}\n        page    {mine!r}")
    return 1 if unequal else 0


if __name__ == "__main__":
    sys.exit(main())
