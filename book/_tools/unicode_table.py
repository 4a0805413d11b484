"""Write the table of letters and numbers that the tokenizer cuts texts by.

    python book/_tools/unicode_table.py

The table has the Unicode version of the Python that runs this. The ids of texts in new scripts change with
it, so write it anew only together with all tokenizers that were trained on it. The committed one is Python
3.11's.
"""

import textwrap
import unicodedata
from itertools import groupby
from pathlib import Path

TABLE = Path(__file__).resolve().parents[2] / "lib/exformer/tokenizers/unicode_table.py"
KINDS = {"LETTERS": ("L", "letters: categories Lu, Ll, Lt, Lm, Lo"), "NUMBERS": ("N", "numbers: Nd, Nl, No")}


def runs(kind: str) -> list[str]:
    """Return the runs of codes whose category begins so, each as "first-last" or "only", in hexadecimal."""
    codes = [code for code in range(0x110000) if unicodedata.category(chr(code))[0] == kind]
    grouped = [
        [code for _, code in run] for _, run in groupby(enumerate(codes), lambda pair: pair[1] - pair[0])
    ]
    return [f"{run[0]:X}-{run[-1]:X}" if len(run) > 1 else f"{run[0]:X}" for run in grouped]


def table() -> str:
    """Return the text of the module."""
    version = unicodedata.unidata_version
    lines = [f'"""Letters and numbers of Unicode {version}; made by book/_tools/unicode_table.py."""']
    for name, (kind, meaning) in KINDS.items():
        rows = textwrap.wrap(" ".join(runs(kind)), 108, break_on_hyphens=False)
        lines += ["", f"#: First and last code of each run of {meaning}.", f'{name} = """', *rows, '"""']
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
