"""Train the readers of the lesson on positions anew and write the numbers that its live figure computes with.

They are the evidence's: the code of its last part is executed up to the rotary reader. Of each reader the
first head is kept, for two tokens: the digit 3, which has the query, and the digit 7, which has the key.
"""

import json
from pathlib import Path

from exformer_lessons.execution import execute
from exformer_lessons.notebook import fingerprint, load

ROOT = Path(__file__).parents[2]
TO = ROOT / "lib/exformer_lessons/positional_encoding/live.json"
SCRIPT = ROOT / "book/live/position-heads.js"
NAMES = {"readers", "rotary"}
QUERY_TOKEN, KEY_TOKEN, D_HEAD = 3, 7, 8


def lesson():
    """Return the part of the evidence on positions that trains the lesson's readers."""
    return load(ROOT / "notebooks/evidence/positional_encoding.ipynb").section_of("B02")


def code_hash(source):
    """Return a hash of the cells that train the readers: other ones ask for other numbers."""
    return fingerprint([cell.tree for cell in source.up_to(NAMES)])


def trained(source):
    """Execute the part up to its rotary reader; return the readers by the name of their code."""
    names = execute(source.up_to(NAMES), source.path.parent).names
    return names["readers"] | {"rotary": names["rotary"]}


def numbers(reader, name):
    """Return the first head's query and key, or what makes them of tokens and codes."""
    import torch

    norm, attention = reader.layer.norm_attention, reader.layer.self_attention
    tokens = reader.embedding(torch.tensor([QUERY_TOKEN, KEY_TOKEN]))
    found = {}
    for role, x, matrix in (("q", tokens[0], attention.w_q), ("k", tokens[1], attention.w_k)):
        if name == "sinusoidal":
            parts = {"x": x, "w": matrix.weight[:D_HEAD], "b": matrix.bias[:D_HEAD]}
            found |= {f"{part}_{role}": value for part, value in parts.items()}
        else:
            found[role] = matrix(norm(x))[:D_HEAD]
    if name == "sinusoidal":
        found |= {"weight": norm.weight, "bias": norm.bias}
    return {part: _rounded(value.detach()) for part, value in found.items()}


def _rounded(x):
    return [_rounded(row) for row in x] if x.dim() > 1 else [float(f"{each:.4g}") for each in x.tolist()]


def main():
    """Train and write: for the still picture and for the live figure."""
    source = lesson()
    readers = trained(source)
    kept = {name: numbers(readers[name], name) for name in ("no code", "sinusoidal", "rotary")}
    TO.write_text(json.dumps({"code": code_hash(source)} | kept, indent=None) + "\n", encoding="utf-8")
    SCRIPT.write_text(script(kept), encoding="utf-8")


def script(kept):
    """Return the script that gives the live figure these numbers."""
    rows = ",\n".join(f"  {json.dumps(name)}: {json.dumps(each)}" for name, each in kept.items())
    return (
        "// needs: frame\n"
        "// Written by book/_tools/position_heads.py: the first head of three readers of lesson 05.\n"
        f'"use strict";\nexformer.positionHeads = {{\n{rows},\n}};\n'
    )


if __name__ == "__main__":
    main()
