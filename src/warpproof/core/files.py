"""Reading files that a user names, whatever they turn out to be."""

from __future__ import annotations

import errno
import stat
from pathlib import Path


def read_regular(path: Path, limit: int) -> bytes:
    """The bytes of a regular file of at most `limit` bytes; OSError with a reason for anything else.

    Devices and pipes are refused, since they may have no end or block.
    """
    try:
        if not stat.S_ISREG(path.stat().st_mode):  # before opening it: to open a pipe may block
            raise OSError(errno.EINVAL, "not a regular file")
        with path.open("rb") as stream:
            data = stream.read(limit + 1)
    except ValueError as error:  # a NUL in the name
        raise OSError(errno.EINVAL, str(error)) from None
    if len(data) > limit:
        raise OSError(errno.EFBIG, f"larger than {limit >> 20} MiB" if limit >> 20 else f"larger than {limit} bytes")
    return data
