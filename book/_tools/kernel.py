"""Build the WebAssembly kernel of the live figures: kernel.wat -> the bytes in kernel.js.

``python book/_tools/kernel.py`` writes them, with the assembler of wasmtime.
"""

import base64
import re
from pathlib import Path

from wasmtime import wat2wasm

LIVE = Path(__file__).parents[1] / "live"
LITERAL = re.compile(r'(const WASM = ")([^"]*)(")')


def build() -> str:
    """Return the kernel's bytes in base64, without the names of its variables."""
    return base64.b64encode(
        _unnamed(bytes(wat2wasm((LIVE / "kernel.wat").read_text(encoding="utf-8"))))
    ).decode()


def _unnamed(module: bytes) -> bytes:
    """Return a module without its custom sections: their names are a third of it, for debuggers alone."""
    kept, at = module[:8], 8
    while at < len(module):
        size, length = 0, 1  # the section's, after the byte of its kind: seven bits in each byte
        while True:
            size |= (module[at + length] & 127) << 7 * (length - 1)
            if module[at + length] < 128:
                break
            length += 1
        end = at + length + 1 + size
        kept += module[at:end] if module[at] else b""
        at = end
    return kept


def built() -> str:
    """Return those that kernel.js holds."""
    return LITERAL.search((LIVE / "kernel.js").read_text(encoding="utf-8"))[2]


if __name__ == "__main__":
    path = LIVE / "kernel.js"
    text = path.read_text(encoding="utf-8")
    path.write_text(LITERAL.sub(rf"\g<1>{build()}\g<3>", text), encoding="utf-8")
