"""Several launches in order against one reference: each launch begins with what the ones before it left.

The end of a launch orders all its accesses before those of the next (CUDA programming guide, streams). What it leaves
in a buffer is the reference's value where that is shown, else a function read off its own writes and then shown.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from warpproof.core import Claim, Status, Unsupported
from warpproof.equivalence.contents import Contents, Write
from warpproof.equivalence.outputs import OutputChecker
from warpproof.equivalence.proof import Left, Outcome, Proof, ReferenceArray
from warpproof.machine import Access, Trace
from warpproof.ptx import Kernel
from warpproof.reference import Launch, depends_on_inputs, roundings, trace
from warpproof.terms import BoolVector, Poly, Real


@dataclass(frozen=True, slots=True)
class AsReference:
    """The reference's value of an output."""

    name: str

    def at(self, proof: Proof, index: tuple[Poly, ...]) -> Real:
        """The element in the proof's own tracing of the reference."""
        return proof.traced[self.name].at(index)


@dataclass(frozen=True, slots=True)
class AsWritten:
    """What a launch was shown to leave; `before` is what updated elements held."""

    contents: Contents
    before: Left | None

    def at(self, proof: Proof, index: tuple[Poly, ...]) -> Real:
        """The element as a term of the proof's arena."""
        start = proof.arena.zero
        if self.contents.op:
            start = self.before.at(proof, index) if self.before is not None else proof.entry(self.contents.name)(index)
        return self.contents.at(proof.arena, index, start)


@dataclass(frozen=True, slots=True)
class Unknown:
    """Contents that no function describes; reading them ends the proof."""

    name: str
    why: str

    def at(self, proof: Proof, index: tuple[Poly, ...]) -> Real:
        """Raises `Unsupported` with the reason."""
        raise Unsupported(f"what an earlier launch leaves in {self.name}", self.why)


class Stage(Proof):
    """The proof of one launch of several; afterwards `leaves` is what it left, `finals` what was claimed of outputs."""

    def __init__(self, kernel: Kernel, launch: Launch, deadline: float, left: Mapping[str, Left]) -> None:
        super().__init__(kernel, launch, deadline, left=left)
        self.leaves: dict[str, Left] = {}
        self.finals: dict[str, list[Claim]] = {}

    def _outputs(self, checker: OutputChecker, trace: Trace, outputs: Mapping[str, ReferenceArray]) -> list[Claim]:
        claims: list[Claim] = []
        for name in self.symbolic.buffers:
            writes = [a for a in trace.accesses if a.buffer == name and a.kind in ("store", "atomic")]
            if any(a.kind == "sync" for a in trace.accesses if a.buffer == name):
                self.leaves[name] = Unknown(name, "its threads synchronise through it")
                if name in outputs:
                    self.finals[name] = self.compared(
                        checker, self.output(name, outputs[name].at, outputs[name].index_symbols), trace, writes)
                continue
            if not writes:
                continue
            if name in outputs:
                array, before = outputs[name], (len(checker.rewriters), len(checker.compared))
                self.finals[name] = self.compared(
                    checker, self.output(name, array.at, array.index_symbols), trace, writes)
                if _shown(self.finals[name]):
                    self.leaves[name] = AsReference(name)
                    continue
                _forget(checker, before)
            claims += self._read_off(checker, name, writes)
        return claims

    def _read_off(self, checker: OutputChecker, name: str, writes: list[Access]) -> list[Claim]:
        """Guess from the writes what they leave, and show it; else the contents are unknown."""
        before = len(checker.rewriters), len(checker.compared)
        try:
            contents = self._contents(checker, name, writes)
            left = AsWritten(contents, self.left.get(name))
            buffer = self.symbolic.buffers[name]

            def symbols() -> tuple[Poly, ...]:
                atoms = (self.arena.fresh("index", f"o{k}", 0, None) for k in range(len(buffer.shape)))
                return tuple(self.arena.variable(a) for a in atoms)

            claims = self.compared(
                checker, self.output(name, lambda index: left.at(self, index), symbols), Trace(), writes)
        except Unsupported as stuck:
            _forget(checker, before)
            self.leaves[name] = Unknown(name, str(stuck))
            return []
        if _shown(claims):
            self.leaves[name] = left
            return claims
        _forget(checker, before)
        why = next(c.hint or c.text for c in claims if c.status is not Status.SHOWN)
        self.leaves[name] = Unknown(name, why)
        return []

    def _contents(self, checker: OutputChecker, name: str, writes: list[Access]) -> Contents:
        ops = {a.op for a in writes}
        if len(ops) > 1:
            raise Unsupported("intermediate buffer", f"{name} is written in several ways by one launch")
        output = self.output(name, lambda index: self.arena.zero, tuple)
        made = [Write(a, checker.coordinates_of(a, output), checker.value_of(a, output), self._mask(a)) for a in writes]
        grid = {next(iter(b.terms))[0]: extent for b, extent in zip(self.blocks, self.symbolic.grid, strict=True)}
        return Contents(self.arena, name, ops.pop(), made, grid, self.symbolic.block)

    def _mask(self, a: Access) -> BoolVector:
        found = self.facts.mask(a.path)
        return np.ones(self.arena.lanes, np.bool_) if found is None else found


class Pipeline:
    """The proof of all launches; `meaningful` is False when the reference does not depend on its inputs."""

    def __init__(self, kernels: Sequence[Kernel], launch: Launch, reference: Callable[..., Mapping[str, Any]],
                 deadline: float) -> None:
        self.kernels, self.launch, self.reference, self.deadline = tuple(kernels), launch, reference, deadline
        self.meaningful = True

    def attempt(self) -> Outcome:
        """Claims on every property of every launch."""
        stages = self.launch.stages()
        if len(stages) == 1:
            proof = Proof(self.kernels[0], stages[0], self.deadline)
            return proof.attempt(self._trace(proof))
        whole = Outcome()
        whole.ledger.use(
            "launch-order", "each launch begins when the one before it has ended, and sees all that it wrote",
            "CUDA programming guide, streams: kernels of one stream run in order")
        left: dict[str, Left] = {}
        finals: dict[str, list[Claim]] = {}
        for kernel, stage in zip(self.kernels, stages, strict=True):
            step = Stage(kernel, stage, self.deadline, left)
            _join(whole, step.attempt(self._trace(step)))
            left = {**left, **step.leaves}
            finals.update(step.finals)
        for p in self.launch.outputs:
            missing = Claim("equivalence", f"every element of {p.name} is stored", Status.OPEN,
                            hint=f"no launch writes {p.name}")
            whole.claims += finals.get(p.name, [missing])
        return whole

    def _trace(self, proof: Proof) -> Mapping[str, ReferenceArray]:
        def note(number: float, held: float) -> None:
            proof.outcome.ledger.use(
                "f32-constants",
                "a constant of the reference that is no f32 stands for the nearest f32, which the kernel holds",
                "the reference", f"{number!r} is held as {held!r}",
            )

        doubles = any(p.dtype == "f64" for p in self.launch.params)  # there f32 constants are a fault
        held = None if doubles else roundings(self.kernels, note)
        found = trace(self.reference, proof.symbolic, proof.arena, held)
        self.meaningful = depends_on_inputs(found)
        proof.traced = found
        return found


def _forget(checker: OutputChecker, before: tuple[int, int]) -> None:
    """Drop what a comparison that came to nothing has left for the later stages."""
    del checker.rewriters[before[0] :], checker.compared[before[1] :]


def _shown(claims: list[Claim]) -> bool:
    return bool(claims) and all(c.status is Status.SHOWN for c in claims)


def _join(whole: Outcome, part: Outcome) -> None:
    whole.claims += part.claims
    for assumption, places in part.ledger.items():
        for place in places or ("",):
            whole.ledger.use(assumption.name, assumption.text, assumption.source, place)
    for name, figure in part.figures.items():
        whole.figures[name] = whole.figures.get(name, 0) + figure
