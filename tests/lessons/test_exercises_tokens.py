"""Graders: right answers in many spellings pass, each wrong one gets its own mistake's hint."""

import re
from itertools import pairwise

import numpy as np
import torch
from answer_banks import answer_test

from exformer.tokenizers.bpe_merges import apply_merges
from exformer_lessons.tokens.grader import (
    grade_decode,
    grade_encode,
)


def walk(word, pair, new, *, step=2, rest=True, most=None):
    merged, place = [], 0
    while place < len(word) - (not rest):
        if tuple(word[place : place + 2]) == pair and most != 0:
            merged.append(new)
            place += step
            most = None if most is None else most - 1
        else:
            merged.append(word[place])
            place += 1
    return tuple(merged)


def all_of(merge, order=list):
    def cut(word, merges):
        for pair, new in order(merges.items()):
            word = merge(word, pair, new)
        return word

    return cut


def by_text(word, pair, new):
    return list(map(ord, "".join(map(chr, word)).replace("".join(map(chr, pair)), chr(new))))


def with_a_stack(word, pair, new):
    merged = []
    for symbol in word:
        if merged and (merged[-1], symbol) == pair:
            merged[-1] = new
        else:
            merged.append(symbol)
    return merged


def in_place(word, pair, new):
    word, place = list(word), 0
    while place + 1 < len(word):
        if (word[place], word[place + 1]) == pair:
            word[place : place + 2] = [new]
        place += 1
    return word


def lowest_rank_first(word, merges):
    ranks = list(merges)
    while fitting := [pair for pair in pairwise(word) if pair in merges]:
        pair = min(fitting, key=ranks.index)
        word = walk(word, pair, merges[pair])
    return word


CUTS = {
    "walk": all_of(walk),
    "text": all_of(by_text),
    "stack": all_of(with_a_stack),
    "in place": all_of(in_place),
    "lowest rank first": lowest_rank_first,
    "list": lambda *case: list(all_of(walk)(*case)),
    "numpy": lambda *case: np.array(all_of(walk)(*case)),
    "tensor": lambda *case: torch.tensor(all_of(walk)(*case)),
    "library": lambda word, merges: list(
        map(
            ord,
            apply_merges(
                "".join(map(chr, word)), {chr(a) + chr(b): chr(new) for (a, b), new in merges.items()}
            ),
        )
    ),
}


def overlapping(word, pair, new):
    hits = [two == pair for two in pairwise(word)]
    kept = []
    for place, symbol in enumerate(word):
        if place < len(hits) and hits[place]:
            kept.append(new)
        elif not (place and hits[place - 1]):
            kept.append(symbol)
    return tuple(kept)


def either_order(word, pair, new):
    merged = []
    for symbol in word:
        if merged and sorted((merged[-1], symbol)) == sorted(pair):
            merged[-1] = new
        else:
            merged.append(symbol)
    return tuple(merged)


def first_in_the_word(word, merges):
    place = 0
    while place < len(word) - 1:
        pair = word[place : place + 2]
        if pair in merges:
            word, place = (*word[:place], merges[pair], *word[place + 2 :]), 0
        else:
            place += 1
    return word


def in_one_pass(word, merges):
    found, symbols = [], list(word)
    while symbols:
        if tuple(symbols[:2]) in merges:
            found.append(merges[symbols.pop(0), symbols.pop(0)])
        else:
            found.append(symbols.pop(0))
    return found


def soon_a_list(word, merges):
    for pair, new in merges.items():
        merged, place = [], 0
        while place < len(word):
            found = word[place : place + 2] == pair
            merged.append(new if found else word[place])
            place += 2 if found else 1
        word = merged
    return word


def longest(word, merges):
    held = {symbol: (symbol,) for symbol in word}
    for (first, second), new in merges.items():
        held[new] = held.get(first, (first,)) + held.get(second, (second,))
    found = []
    while word:
        best = max((s for s in held if word[: len(held[s])] == held[s]), key=lambda s: len(held[s]))
        found.append(best)
        word = word[len(held[best]) :]
    return found


def the_first_that_fits(word, merges):
    changed = (walk(word, pair, new) for pair, new in merges.items())
    return next((cut for cut in changed if cut != word), word)


WRONG_CUTS = {
    "a list is never equal to a tuple": all_of(
        lambda w, p, n: [n if list(w)[i : i + 2] == p else w[i] for i in range(len(w))]
    ),
    "the merge that was learned first comes first": first_in_the_word,
    "learned last: begin with the first": all_of(walk, order=lambda merges: reversed(list(merges))),
    "the longest token that fits": longest,
    "through the word once": in_one_pass,
    "stop after the first merge": the_first_that_fits,
    "go on; a list is never equal": soon_a_list,
    "make each merge once": all_of(lambda w, p, n: walk(w, p, n, most=1)),
    "from the right": all_of(lambda w, p, n: walk(w[::-1], p[::-1], n)[::-1]),
    "leave the second token": all_of(lambda w, p, n: walk(w, p, n, step=1)),
    "in either order": all_of(either_order),
    "lose the last token": all_of(lambda w, p, n: walk(w, p, n, rest=False)),
    "a token for two pairs": all_of(overlapping),
    "nothing in its place": all_of(lambda w, p, n: tuple(x for x in walk(w, p, n) if x != n)),
    "returns nothing": lambda *case: None,
    "raised IndexError": lambda word, merges: [word[0]],
    "must return numbers, got str": lambda word, merges: "aaa",
    "should have 2 numbers, yours has 1": lambda word, merges: [99],
    "the numbers are not": lambda word, merges: [1 + symbol for symbol in all_of(walk)(word, merges)],
    "must return numbers, got set": lambda word, merges: set(word),
}


def numbers_as_text(word, merges):
    text = " ".join(map(str, word))
    for (first, second), new in merges.items():
        text = text.replace(f"{first} {second}", str(new))
    return [int(symbol) for symbol in text.split()]


test_cuts = answer_test(grade_encode, right=CUTS, wrong=WRONG_CUTS, refused=[numbers_as_text])


def byte_by_byte(tokens, ids):
    data = bytearray()
    for i in ids:
        data += tokens[i]
    return str(bytes(data), "utf-8", errors="replace")


def incremental(tokens, ids):
    import codecs

    reader = codecs.getincrementaldecoder("utf-8")("replace")
    return "".join(reader.decode(tokens[i]) for i in ids) + reader.decode(b"", final=True)


def whole_or_each(tokens, ids):
    try:
        return b"".join([tokens[i] for i in ids]).decode()
    except UnicodeDecodeError:
        return "".join([tokens[i].decode(errors="replace") for i in ids])


DECODES = {"bytearray": byte_by_byte, "incremental": incremental}


WRONG_DECODES = {
    "by itself: a character may": lambda t, ids: "".join(t[i].decode(errors="replace") for i in ids),
    "by itself and drop": lambda t, ids: "".join(t[i].decode(errors="ignore") for i in ids),
    "You drop what is no UTF-8": lambda t, ids: b"".join(t[i] for i in ids).decode(errors="ignore"),
    "as Latin-1 does": lambda t, ids: "".join(chr(byte) for i in ids for byte in t[i]),
    "as \\x..": lambda t, ids: b"".join(t[i] for i in ids).decode(errors="backslashreplace"),
    "a space between": lambda t, ids: b" ".join(t[i] for i in ids).decode(errors="replace"),
    "raised UnicodeDecodeError": lambda t, ids: b"".join(t[i] for i in ids).decode(),
    "You return bytes": lambda t, ids: b"".join(t[i] for i in ids),
    "returns nothing": lambda t, ids: None,
    "Return a text, yours is a list": lambda t, ids: ["a"],
    "The text should be 'perché!', yours is 'perché a'": lambda t, ids: "perché a",
    "yours is '\N{REPLACEMENT CHARACTER}\N{REPLACEMENT CHARACTER}'": lambda t, ids: byte_by_byte(
        t, ids
    ).strip(),
    "yours is ' \N{REPLACEMENT CHARACTER} '": lambda t, ids: re.sub(
        "\ufffd+", "\ufffd", byte_by_byte(t, ids)
    ),
    "Where a text is broken": whole_or_each,
}


test_decodes = answer_test(grade_decode, right=DECODES, wrong=WRONG_DECODES)
