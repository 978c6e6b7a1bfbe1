"""Progress on stderr, on a terminal only: what the prover is doing, and for how long."""

from __future__ import annotations

import threading
import time
from types import TracebackType
from typing import Self, TextIO


class Progress:
    """One line that is rewritten while the prover works; nothing at all if the stream is no terminal."""

    def __init__(self, stream: TextIO, timeout_s: float) -> None:
        self._stream, self._timeout_s = stream, timeout_s
        self._stage, self._started = "starting", time.monotonic()
        self._done = threading.Event()
        self._thread = threading.Thread(target=self._draw, daemon=True) if stream.isatty() else None

    def __enter__(self) -> Self:
        if self._thread is not None:
            self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self._done.set()
        if self._thread is not None:
            self._thread.join()
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def show(self, stage: str) -> None:
        """The prover has begun `stage`."""
        self._stage = "".join(c if c.isprintable() else "?" for c in stage[:60])

    def _draw(self) -> None:
        while not self._done.wait(0.2):
            elapsed = time.monotonic() - self._started
            self._stream.write(f"\r\x1b[K{self._stage} … {elapsed:.0f} s of at most {self._timeout_s:.0f} s")
            self._stream.flush()
