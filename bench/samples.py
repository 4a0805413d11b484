"""Let the shipped models write the samples of the results page.

    python bench/samples.py [--json FILE]

No sample is chosen by hand, but those on which a translator fails: the captions are the first of
`exformer.corpora.captions`, the Shakespeare is of seed 0. Half a minute on one core. Needs the training
captions of Multi30k, in which the words of the failures are counted: fetched once, or read from
`EXFORMER_DATA`.
"""

import re
import sys
from argparse import ArgumentParser
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import torch  # noqa: E402

from bench.report import machine, result_file, write  # noqa: E402
from exformer import (  # noqa: E402
    generate,
    load_model,
    translate,
)
from exformer.corpora.captions import captions  # noqa: E402
from exformer.corpora.real import multi30k  # noqa: E402

N_CAPTIONS, N_LINES = 2, 8
PROMPT = "ROMEO:\n"


@dataclass(frozen=True)
class Failure:
    """A sentence on which a translator fails.

    Args:
        sentence: To translate.
        why: What goes wrong; ``{n}`` stands for how many of the training captions `word` matches.
        word: A regular expression, sought in the captions of the sentence's language.
        model: The translator; the two letters after its first hyphen are the language that it reads.
    """

    sentence: str
    why: str
    word: str
    model: str = "multi30k-en-de"

    @property
    def language(self) -> str:
        """The language of the sentence."""
        return self.model.split("-")[1]


#: Sentences written to find out what a model has not learned that has read only captions of photographs.
FAILURES = (
    Failure(
        "A man is not wearing a hat.",
        "The negation is lost. “Not” occurs in {n}, probably because nobody photographs what is not there.",
        r"\bnot\b",
    ),
    Failure(
        "A bat is hanging in a cave.",
        "A “Schläger” is what hits the ball. “Bat” occurs in {n}, never for the animal.",
        r"\bbat\b",
    ),
    Failure(
        "Seventeen sheep are standing on a hill.",
        "Seven teenagers. “Seventeen” occurs in {n}; the model reads “Se”, “v”, “ent” and “een”.",
        r"\bseventeen\b",
    ),
    Failure(
        "Nobody is sitting on the bench.",
        "An invented word. “Nobody” occurs in {n}; the model reads “N”, “o”, “bo” and “dy”.",
        r"\bnobody\b",
    ),
    Failure(
        "A dog that a boy who wears a cap is chasing runs away.",
        "It confuses who chases whom and who wears the cap. “A dog that a …”, or man, woman, boy or girl in "
        "its place, occurs in {n}.",
        r"\b(?:dog|man|woman|boy|girl) (?:that|who|which) (?:a|an|the)\b",
    ),
    Failure(
        "A man is playing the guitar, a woman is playing the drums, a boy is playing the trumpet, "
        "a girl is playing the violin, and a dog is lying in front of them.",
        "The woman and the trumpet are left out, and the boy plays her drums. So long a sentence, 33 words "
        "or more, occurs in {n}.",
        r"^(?:\S+\s+){32,}\S+$",
    ),
    Failure(
        "The parliament rejected the proposal yesterday.",
        "A parachute jump rubs an invented word. “Parliament”, “rejected” and “yesterday” occur in {n}.",
        r"\b(?:parliament|rejected|yesterday)\b",
    ),
    Failure(
        "Den Mann beißt der Hund.",
        "The dog bites: “den” marks the object, in whatever order. “Den” begins {n}.",
        r"^den\b",
        "multi30k-de-en",
    ),
)


def translations() -> list[dict[str, str]]:
    """Translate the first captions, in both directions."""
    pairs = captions()[:N_CAPTIONS]
    sources, targets = [pair.source for pair in pairs], [pair.target for pair in pairs]
    german = translate(*load_model("multi30k-en-de")[:2], sources, num_beams=5)
    english = translate(*load_model("multi30k-de-en")[:2], targets, num_beams=5)
    names = ("English", "German", "to German", "to English")
    return [
        dict(zip(names, each, strict=True)) for each in zip(sources, targets, german, english, strict=True)
    ]


def failures() -> list[dict[str, str]]:
    """Translate the sentences on which the translators fail."""
    translators = {name: load_model(name)[:2] for name in dict.fromkeys(each.model for each in FAILURES)}
    return [
        {
            "from": each.language,
            "to": "de" if each.language == "en" else "en",
            "sentence": each.sentence,
            "translation": translate(*translators[each.model], each.sentence, num_beams=5),
        }
        for each in FAILURES
    ]


def reasons(captions: dict[str, list[str]]) -> list[str]:
    """Return why a translator fails, with the number of training captions that hold the word, by language."""
    said = []
    for each in FAILURES:
        own = captions[each.language]
        n = sum(re.search(each.word, text, re.IGNORECASE) is not None for text in own)
        said.append(each.why.format(n=f"{n or 'none'} of the captions"))
    return said


def training_captions() -> dict[str, list[str]]:
    """Return the translators' training captions, by language."""
    pairs = multi30k("train", src="en", tgt="de")
    return {"en": [pair.source for pair in pairs], "de": [pair.target for pair in pairs]}


def lines(name: str) -> list[str]:
    """Generate lines of Shakespeare."""
    model, tokenizer, _ = load_model(name)
    text = generate(model, tokenizer, PROMPT, max_new_tokens=500, temperature=0.8, top_p=0.95, seed=0)
    return text.splitlines()[:N_LINES]


def main() -> None:
    """Write all samples."""
    parser = ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--json", type=Path, metavar="FILE", help="bench/results/samples.json if left out")
    args = parser.parse_args()
    file = result_file(parser, args.json, name="samples")
    torch.set_num_threads(1)
    result = {
        "machine": machine(),
        "captions": translations(),
        "failures": [
            found | {"why": why} for found, why in zip(failures(), reasons(training_captions()), strict=True)
        ],
        "shakespeare": {"shakespeare-bpe": lines("shakespeare-bpe")},
    }
    for key, value in result.items():
        if key != "machine":
            print(key, value, sep="\n")
    write(result, file)


if __name__ == "__main__":
    main()
