"""Assemble the WebAssembly kernel of the live figures: kernel.wat -> the bytes in matrix.js.

``python book/_tools/kernel.py`` writes them, with the assembler of wasmtime.
"""

import base64
import re
from pathlib import Path

from wasmtime import wat2wasm

LIVE = Path(__file__).parents[1] / "live"
LITERAL = re.compile(r'(?<=const WASM = ")[^"]*')


def assemble() -> str:
    """Return the bytes of kernel.wat in base64."""
    return base64.b64encode(wat2wasm((LIVE / "kernel.wat").read_text(encoding="utf-8"))).decode()


if __name__ == "__main__":
    path = LIVE / "matrix.js"
    path.write_text(LITERAL.sub(assemble(), path.read_text(encoding="utf-8")), encoding="utf-8")
