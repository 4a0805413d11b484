"""Keys, and files that only their owners read: the age format, https://age-encryption.org/v1.

The standard program ``age`` reads and writes the same files and keys. The format hides who can read a file,
and it does not show who wrote it.
"""

import os
from collections.abc import Iterable
from pathlib import Path

import pyrage

_PRIVATE = "AGE-SECRET-KEY-1"


def make_key(path: Path) -> str:
    """Write a new private key to a file that only its owner can read; return the public key.

    Raises:
        ValueError: If the file exists, or would be in a repository.
    """
    refuse_repository(path)
    key = pyrage.x25519.Identity.generate()
    try:
        number = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    except FileExistsError:
        raise ValueError(f"expected a new file, got {path}, which exists: keep it, or name another") from None
    with os.fdopen(number, "w", encoding="ascii") as file:
        file.write(f"# public key: {key.to_public()}\n{key}\n")
    return str(key.to_public())


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
