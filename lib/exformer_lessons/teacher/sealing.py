"""Keys, and files that only their owners read: the age format, https://age-encryption.org/v1.

The standard program ``age`` reads and writes the same files and keys. The format hides who can read a file,
and it does not show who wrote it.
"""

import hashlib
import os
from collections.abc import Iterable
from pathlib import Path

import pyrage

_PRIVATE = "AGE-SECRET-KEY-1"
#: The digits of Bech32, https://github.com/bitcoin/bips/blob/master/bip-0173.mediawiki, and its generator.
_DIGITS = "qpzry9x8gf2tvdw0s3jn54khce6mua7l"
_GENERATOR = 0x3B6A57B2, 0x26508E6D, 0x1EA119FA, 0x3D4233DD, 0x2A1462B3
#: A shorter file could be guessed.
_LEAST_BYTES = 256


def make_key(path: Path, source: Path | None = None) -> str:
    """Write a private key to a file that only its owner can read; return the public key.

    Args:
        path: A new file.
        source: A file of which the key is computed, so that it can be made again; None takes random numbers.
            Whoever has this file, byte for byte, has the key.

    Raises:
        ValueError: If the file exists, if one of the two would be in a repository, or if the source is short.
    """
    refuse_repository(path)
    key = pyrage.x25519.Identity.generate() if source is None else derive_key(source)
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ValueError(f"expected a new file, got {path}, which exists: keep it, or name another") from None
    with os.fdopen(number, "w", encoding="ascii") as file:
        file.write(f"# public key: {key.to_public()}\n{key}\n")
    return str(key.to_public())


def derive_key(source: Path) -> pyrage.x25519.Identity:
    """Compute a private key of what is in a file: the same bytes give the same key.

    Raises:
        ValueError: If the file is in a repository, or short enough to be guessed.
    """
    refuse_repository(source)
    secret = source.read_bytes()
    if len(secret) < _LEAST_BYTES:
        raise ValueError(f"expected {_LEAST_BYTES} bytes or more that nobody can guess, got {source}")
    number = hashlib.scrypt(secret, salt=b"exformer-teacher keygen", n=2**14, r=8, p=1, dklen=32)
    return pyrage.x25519.Identity.from_str(_bech32(_PRIVATE[:-1].lower(), number).upper())


def _bech32(prefix: str, data: bytes) -> str:
    """Return bytes in Bech32, the form of age's keys: five bits a digit, then a checksum of six digits."""
    bits = int.from_bytes(data, "big") << (-8 * len(data) % 5)
    n_digits = -(-8 * len(data) // 5)
    digits = [bits >> 5 * place & 31 for place in reversed(range(n_digits))]
    head = [*(ord(each) >> 5 for each in prefix), 0, *(ord(each) & 31 for each in prefix)]
    checksum = 1
    for digit in [*head, *digits, 0, 0, 0, 0, 0, 0]:
        top, checksum = checksum >> 25, (checksum & 0x1FFFFFF) << 5 ^ digit
        for place, part in enumerate(_GENERATOR):
            checksum ^= part * (top >> place & 1)
    digits += [(checksum ^ 1) >> 5 * place & 31 for place in reversed(range(6))]
    return f"{prefix}1" + "".join(_DIGITS[each] for each in digits)


def read_key(path: Path) -> pyrage.x25519.Identity:
    """Read a private key.

    Raises:
        ValueError: If the file has none.
    """
    lines = path.read_text(encoding="utf-8").split()
    found = [line for line in lines if line.startswith(_PRIVATE)]
    if len(found) != 1:
        raise ValueError(f"expected one private key, as keygen writes it, got {len(found)} in {path}")
    return pyrage.x25519.Identity.from_str(found[0])


def read_recipients(path: Path) -> list[str]:
    """Return the public keys in a file, one a line; lines that begin with # are comments."""
    lines = map(str.strip, path.read_text(encoding="utf-8").splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def seal(text: str, recipients: Iterable[str]) -> bytes:
    """Encrypt a text to public keys.

    Raises:
        ValueError: If a key is none.
    """
    keys = []
    for each in recipients:
        try:
            keys.append(pyrage.x25519.Recipient.from_str(each))
        except pyrage.RecipientError:
            raise ValueError(f"expected a public key, age1…, got {each!r}") from None
    return pyrage.encrypt(text.encode(), keys)


def unseal(sealed: bytes, key: pyrage.x25519.Identity, name: str) -> str:
    """Decrypt a text.

    Raises:
        ValueError: If the key does not open it.
    """
    try:
        return pyrage.decrypt(sealed, [key]).decode()
    except pyrage.DecryptError:
        raise ValueError(
            f"{name}: the file is damaged, or sealed for other keys than {key.to_public()}: a maintainer "
            "adds this public key to recipients.txt and runs rekey"
        ) from None


def refuse_repository(path: Path) -> None:
    """Check that a path is in no git repository.

    Raises:
        ValueError: If it is.
    """
    for folder in path.resolve().parents:
        if (folder / ".git").exists():
            raise ValueError(f"expected a path outside any repository, got {path}, which is in {folder}")
