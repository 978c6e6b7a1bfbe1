"""Collects findings: one per kind, instruction and counterpart, with the first thread that showed it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Final

from warpproof.machine.addresses import Addresses, AddressSpaces
from warpproof.machine.batch import Batch, Lanes
from warpproof.machine.findings import Event, Finding
from warpproof.machine.hazards import prior_pc, prior_thread
from warpproof.machine.program import Program

_LIMIT: Final = 64  # of each kind


class Recorder:
    """The findings of a run, over all its batches."""

    __slots__ = ("_batch", "_count", "_ctas", "_found", "_program", "_spaces")

    def __init__(self, program: Program, ctas: Sequence[tuple[int, int, int]]) -> None:
        self._program, self._ctas = program, ctas
        self._found: dict[tuple[str, int | None, int | None], Finding] = {}
        self._count: Counter[str] = Counter()
        self._batch: Batch | None = None
        self._spaces: AddressSpaces | None = None

    def begin(self, batch: Batch, spaces: AddressSpaces) -> None:
        """Findings from now on are about this batch."""
        self._batch, self._spaces = batch, spaces

    def findings(self) -> tuple[Finding, ...]:
        """What was found, in order of discovery."""
        return tuple(self._found.values())

    def event(self, kind: str, message: str, lanes: Lanes, pc: int) -> None:
        """A finding about threads at an instruction."""
        key = (kind, pc, None)
        if self._new(key):
            self._found[key] = Finding(kind, message, self._at(int(lanes[0]), pc), len(lanes))

    def access(self, kind: str, message: str, lanes: Lanes, pc: int, space: str, addresses: Addresses, size: int,
               prior: int | None = None) -> None:
        """A finding about memory accesses of `size` bytes, one address a lane; `prior` is a tagged earlier access."""
        other_pc = None if prior is None else prior_pc(prior)
        key = (kind, pc, other_pc)
        if not self._new(key):
            return
        assert self._spaces is not None
        address = int(addresses[0])
        buffer, offset = self._spaces.describe(space, address)
        where = f" at {buffer}{offset:+d}" if buffer is not None and offset is not None else ""
        self._found[key] = Finding(kind, message + where, self._at(int(lanes[0]), pc), len(lanes), space, address, size,
                                   buffer, offset, None if prior is None else self._earlier(prior))

    def limit(self, message: str) -> None:
        """The run was stopped by its step limit."""
        self._found["step-limit", None, None] = Finding(
            "step-limit", message, Event(self._ctas[0], (0, 0, 0), None, None, None))

    def _new(self, key: tuple[str, int | None, int | None]) -> bool:
        if key in self._found or self._count[key[0]] >= _LIMIT:
            return False
        self._count[key[0]] += 1
        return True

    def _at(self, lane: int, pc: int | None) -> Event:
        assert self._batch is not None
        cta, thread = divmod(lane, self._batch.padded)
        return self._made(self._batch.ctas[cta], thread, pc)

    def _earlier(self, tag: int) -> Event:
        cta, thread = prior_thread(tag)
        return self._made(self._ctas[cta], thread, prior_pc(tag))

    def _made(self, cta: tuple[int, int, int], thread: int, pc: int | None) -> Event:
        assert self._batch is not None
        instruction = None if pc is None else self._program.code[pc][1]
        span = None if instruction is None else instruction.span
        source = None if instruction is None else instruction.source
        return Event(cta, self._batch.thread_coordinates(thread), pc, span, source)
