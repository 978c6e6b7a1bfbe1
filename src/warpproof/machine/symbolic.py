"""The symbolic machine: concrete lanes, symbolic blocks, sizes and loop counters; one generic CTA for the whole grid.

It walks the flow graph once. A branch on a lane condition splits the mask, one on a symbol runs both sides under
guards and joins registers by choice at the immediate post-dominator; loops are closed by `loops.LoopSolver`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Protocol

from warpproof.core import Ledger, Unsupported
from warpproof.domains import Effect, Float, Int, Reals, ScalarType, Undef
from warpproof.machine import peeled
from warpproof.machine.answers import Answers
from warpproof.machine.calls import Calls
from warpproof.machine.crossing import Crossing
from warpproof.machine.flow import Graph, control_flow
from warpproof.machine.gauge import joined_pair
from warpproof.machine.loops import LoopSolver
from warpproof.machine.operands import Decoded, decode, step
from warpproof.machine.path import Path
from warpproof.machine.roles import EXIT, Roles
from warpproof.machine.setup import Setup
from warpproof.machine.shared import SharedMemory
from warpproof.machine.spacing import Spacing
from warpproof.machine.streams import Streams
from warpproof.machine.trace import Obligation, Trace
from warpproof.ptx import Instruction, Kernel
from warpproof.semantics import Bound, bind
from warpproof.terms import Arena, Pred, Real


class Oracle(Protocol):
    """The launch facts and what follows from them."""

    def implied(self, path: Pred, claim: Pred, *, hard: bool = False) -> bool:
        """True when the claim follows from the path and the facts; `hard` takes more time."""
        ...

    def learn(self, fact: Pred) -> None:
        """A further fact (the range of a loaded integer)."""
        ...



class SymbolicMachine:
    """Runs one kernel symbolically; `run` returns the trace."""

    def __init__(self, kernel: Kernel, arena: Arena, setup: Setup, ledger: Ledger, oracle: Oracle,
                 deadline: float = float("inf")) -> None:
        self.kernel, self.arena, self.setup, self.ledger = kernel, arena, setup, ledger
        self.oracle, self.deadline = oracle, deadline
        self.dom = Reals(arena, self)
        self.path = Path(arena)
        self.trace = Trace()
        self.registers: dict[str, Any] = {}
        self.current = 0
        self.instruction: Instruction | None = None  # under way, in a called function too
        self.spacing = Spacing(kernel, setup.shared_bytes)
        unit = _shared_unit(kernel)
        self.shared = SharedMemory(self.spacing.inside(unit), unit, self.dom)
        self.frames = 0  # called functions being executed
        self._entry = kernel
        self.calls = Calls(self)
        self.answers = Answers(self)
        self.crossing = Crossing(self)
        self.loops = LoopSolver(self)
        self.roles = Roles(self)
        self.streams = Streams(self)
        self.graph: Graph = control_flow(kernel)
        self.decoded: dict[int, tuple[Bound, Decoded | None]] = {}
        self.fragments: dict[object, Real] = {}  # elements of matrices, by what they are taken from
        self._held: dict[tuple[int, int], bool] = {}
        self._predicate: Pred | None = None
        self._written: list[tuple[str, Any]] = []  # by the predicated instruction under way
        self.depth = 0  # enclosing forks and loops
        self.without: frozenset[int] = frozenset()  # instructions that are left out
        self._stays = ExitStack()  # the lanes that guarded exits leave over, to the end of the run

    # ------------------------------------------------------------------ context of the domain
    def require(self, kind: str, claim: Pred) -> None:
        """Record an obligation unless the path gives it syntactically."""
        path = self.path.condition()
        if claim.op == "true" or self.arena.implies(path, claim):
            return
        entry = Obligation(kind, path, tuple(self.path.loops), self.current, claim=claim)
        self.trace.obligations.append(entry)

    def require_real(self, kind: str, node: Real) -> None:
        """Record a condition on a real."""
        path = self.path.condition()
        if node.op == "const":
            value = node.data
            if value if kind == "nonzero" else value > 0 if kind == "positive" else value >= 0:
                return
        self.trace.obligations.append(Obligation(kind, path, tuple(self.path.loops), self.current, node=node))

    def holds(self, claim: Pred) -> bool:
        """True when the claim follows from the path and the launch facts."""
        path = self.path.condition()
        if self.arena.implies(path, claim):
            return True
        key = (path.id, claim.id)
        if key not in self._held:
            self._held[key] = self.oracle.implied(path, claim)
        return self._held[key]

    def learn(self, fact: Pred) -> None:
        """Tell the oracle a fact."""
        if fact.op != "true":
            self.oracle.learn(fact)

    def assume(self, name: str, text: str, source: str) -> None:
        """Record an assumption with the current place."""
        self.ledger.use(name, text, source, self.where())

    def where(self, index: int | None = None) -> str:
        """The place of an instruction, for messages."""
        ins = self._entry.code[self.current if index is None else index]
        source = f" ({ins.source[0]}:{ins.source[1]})" if ins.source else ""
        return f"PTX line {ins.span.line} `{ins.opcode}`{source}"

    # ------------------------------------------------------------------ registers
    def read(self, name: str) -> Any:
        """A register or special register."""
        if name in self.registers:
            return self.registers[name]
        special = self.answers.special(name)
        if special is not None:
            return special
        kind = self.kernel.registers.get(name)
        if kind is None:
            raise Unsupported(name, "special register without a meaning here")
        if kind.kind == "pred":
            raise Unsupported(name, "a predicate is read before it is written")
        return Undef(kind.width, f"{name} read before it is written")

    def write(self, name: str, value: Any) -> None:
        """Set a register; a predicated instruction keeps the old value where its guard is false.

        That choice is made once the guard is no longer in force, so that it decides nothing.
        """
        if self._predicate is not None:
            self._written.append((name, value))
        else:
            self.registers[name] = value

    def _kept(self, p: Pred, name: str, value: Any) -> Any:
        """`value` where p holds, elsewhere what the register holds."""
        old = self.registers.get(name)
        if not isinstance(value, Pred):
            return self.dom.merge(p, value, Undef(value.width, name) if old is None else old)
        if old is None:
            raise Unsupported(name, "a predicate defined by a predicated instruction only")
        return self.arena.disj((self.arena.conj((p, value)), self.arena.conj((self.arena.negate(p), old))))

    def address(self, symbol: str) -> Any:
        """The address of a variable in its own state space."""
        return self.answers.symbol_address(symbol)

    # ------------------------------------------------------------------ execution
    def run(self) -> Trace:
        """Execute the kernel to its end."""
        with self._stays:
            self.walk(0, EXIT)
        self.crossing.locks.finish()
        for a in self.trace.accesses:
            if a.kind in ("store", "atomic", "sync") and a.buffer in self.answers.cached:
                raise Unsupported("ld.global.nc", f"{a.buffer} may be written, and the non-coherent cache may be old "
                                  f"({self.answers.cached[a.buffer]})")
        return self.trace

    def walk(self, block: int, stop: int, skip: int | None = None) -> None:
        """Execute from `block` until control reaches `stop`; `skip` is a loop header entered as part of its loop."""
        while block != stop:
            if block == EXIT:
                return
            if block in self.graph.loops and block != skip:
                block = self.loops.run(block)
                continue
            skip = None
            header = peeled.loop_behind(self.crossing, block)
            block = self.block(block) if header is None else peeled.wait(self.crossing, block, header)

    def block(self, number: int, *, terminator: bool = True, start: int | None = None) -> Any:
        """Execute a block (from `start`); its successor, or without `terminator` the predicate of its final branch.

        Where the side of a branch that is under way has to wait: the block and the next instruction.
        """
        block = self.graph.blocks[number]
        for index in range(block.start if start is None else start, block.stop):
            ins = self.kernel.code[index]
            self._tick(index)
            if index in self.without and not self.frames:
                continue
            bound, decoded = self._decode(index, ins)
            if bound.control == "call":
                if self.guard_of(ins).op != "true":
                    raise Unsupported(bound.form, "a predicated call", ins.span)
                self.calls.call(ins)
                continue
            if bound.control in ("bra", "ret", "exit", "trap", "brx"):
                return self._control(number, ins, bound, terminator)
            if bound.control == "nop":
                continue
            if decoded is None:
                raise Unsupported(bound.form, "no operand access", ins.span)
            self._step(ins, decoded)
            if self.roles.waiting():
                return number, index + 1
        return self._follow(number, 0)

    def _follow(self, number: int, which: int) -> int:
        """A successor of a block, or the exit."""
        successors = self.graph.successors[number]
        return successors[which] if successors else EXIT

    def _tick(self, index: int) -> None:
        if not self.frames:
            self.current = index
            self.trace.executed.add(index)
        self.trace.steps += 1
        if self.trace.steps > self.setup.step_limit:
            raise Unsupported("symbolic execution", f"more than {self.setup.step_limit} steps")
        if not self.trace.steps & 63 and time.monotonic() > self.deadline:
            raise Unsupported("symbolic execution", "out of time")

    def _decode(self, index: int, ins: Instruction) -> tuple[Bound, Decoded | None]:
        found = self.decoded.get(index)
        if found is None:
            bound = bind(ins)
            found = self.decoded[index] = (bound, None if bound.control else decode(ins, bound, self._width))
        return found

    def _width(self, name: str) -> int:
        kind = self.kernel.registers.get(name)
        if kind is None:
            return self.answers.special_width(name)
        return 1 if kind.kind == "pred" else kind.width

    def guard_of(self, ins: Instruction) -> Pred:
        """The predicate under which an instruction executes."""
        if ins.guard is None:
            return self.arena.true
        p = self.read(ins.guard.register)
        return self.arena.negate(p) if ins.guard.negated else p

    def _step(self, ins: Instruction, decoded: Decoded) -> None:
        self.instruction = ins
        guard = self.guard_of(ins)
        if guard.op == "true":
            self._answer(step(decoded, self.dom, self))
            return
        with self.path.under(guard):
            if not self.path.mask.any() or guard.op == "false":
                return
            self._predicate, self._written = guard, []
            try:
                self._answer(step(decoded, self.dom, self))
            finally:
                self._predicate = None
        for name, value in self._written:
            self.registers[name] = self._kept(guard, name, value)

    def _answer(self, steps: Any) -> None:
        try:
            effect: Effect = next(steps)
            while True:
                effect = steps.send(self.answers.answer(effect))
        except StopIteration:
            return

    # ------------------------------------------------------------------ control
    def _control(self, number: int, ins: Instruction, bound: Bound, terminator: bool) -> Any:
        if bound.control == "brx":
            raise Unsupported(bound.form, "not executed symbolically", ins.span)
        guard = self.guard_of(ins)
        if bound.control == "trap":
            self.require("trap not reached", self.arena.negate(guard))
            return self._follow(number, 0)
        if bound.control in ("ret", "exit"):
            return self._leave(number, guard, ins)
        if not terminator:
            return guard
        successors = self.graph.successors[number]
        if ins.guard is None or len(successors) == 1:
            return successors[0]
        return self.branch(number, guard, successors[0], successors[1])

    def _leave(self, number: int, guard: Pred, ins: Instruction) -> int:
        """Lanes leave the kernel; behind a guarded exit only the others go on, to the end."""
        if guard.op == "true":
            return EXIT
        if self.depth:
            raise Unsupported(ins.opcode, "a predicated exit inside a branch or loop", ins.span)
        self._stays.enter_context(self.path.under(self.arena.negate(guard)))
        return self._follow(number, 0)

    def branch(self, number: int, guard: Pred, taken: int, other: int) -> int:
        """Run both sides as far as needed; the block where they meet."""
        path = self.path.condition()
        if guard.op == "true" or self.arena.implies(path, guard):
            return taken
        negated = self.arena.negate(guard)
        if guard.op == "false" or self.arena.implies(path, negated):
            return other
        lanes = self.arena.mask_of(guard)
        if lanes is not None:
            active = lanes[self.path.mask]
            if active.all():
                return taken
            if not active.any():
                return other
        meet = self.graph.ipdom[number]
        join = EXIT if meet is None else meet
        if self.roles.split(guard):
            first, second = self.roles.run(((guard, taken), (negated, other)), join)
            self.registers = self.join(guard, first, second)
            return join
        self.fork(guard, negated, lambda: self.walk(taken, join), lambda: self.walk(other, join))
        return join

    def fork(self, guard: Pred, negated: Pred, then: Callable[[], None], otherwise: Callable[[], None]) -> None:
        """Run two sides from the same registers and join them by choice.

        A condition equal in all lanes of the CTA takes one side for everybody, so the sides do not race with each
        other; otherwise lanes of both sides run in the same barrier interval.
        """
        before = dict(self.registers)
        start = self.shared.footprint.copy() if guard.uniform else None
        self.depth += 1
        with self.path.under(guard), self._unordered(guard):
            then()
        first, self.registers = self.registers, dict(before)
        if start is not None:
            left, self.shared.footprint = self.shared.footprint, start
        with self.path.under(negated), self._unordered(guard):
            otherwise()
        self.depth -= 1
        if start is not None:
            self.shared.footprint = self.shared.footprint.union(left)
        self.registers = self.join(guard, first, self.registers)

    @contextmanager
    def _unordered(self, guard: Pred) -> Iterator[None]:
        """What a side orders (warp barriers, waits for copies) counts afterwards only where the side was taken: unless
        all threads took it, or exactly the lanes of a mask, as if it had not been ordered."""
        shared = self.shared
        before = None if guard.uniform or self.arena.mask_of(guard) is not None else shared.footprint.copy()
        yield
        if before is not None:
            shared.footprint = shared.footprint.union(before)

    def conditional(self) -> bool:
        """True when the current instruction is predicated by more than a lane mask, so that it may not be executed."""
        return self._predicate is not None and self.arena.mask_of(self._predicate) is None

    def join(self, guard: Pred, a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
        """Registers after two sides; one defined on one side only is undefined afterwards."""
        out: dict[str, Any] = {}
        for name, x in a.items():
            y = b.get(name)
            if y is None:
                continue
            out[name] = x if x is y else self.merge(guard, x, y)
        self._keep_pairs(guard, a, b, out)
        return out

    def _keep_pairs(self, guard: Pred, a: dict[str, Any], b: dict[str, Any], out: dict[str, Any]) -> None:
        """Rescaled sums keep the form S·2^(−c·m) with their joined maximum m."""
        names = [
            n for n, v in out.items() if isinstance(v, Float) and v.node.folds and a.get(n) is not b.get(n)
        ]
        sums = [n for n in names if any(_exponential(side[n]) for side in (a, b))]
        for name in sums:
            x, y = self._node(a[name]), self._node(b[name])
            for top in names:
                m = out[top].node
                first, second = self._node(a[top]), self._node(b[top])
                if top == name or m.op not in ("sel", "max") or None in (x, y, first, second):
                    continue
                pair = joined_pair(self.dom.scaling, guard, (x, y), (first, second, m))  # type: ignore[arg-type]
                if pair is not None:
                    out[name] = Float(out[name].kind, out[name].width, pair)
                    break

    def _node(self, v: Any) -> Real | None:
        """The real value of a float register; 0 and −∞ are also written as bits."""
        if isinstance(v, Float):
            return v.node
        bits = v.poly.as_int() if isinstance(v, Int) and v.width == 32 else None
        return self.dom.real(v, ScalarType("f", 32)) if bits is not None else None

    def merge(self, guard: Pred, x: Any, y: Any) -> Any:
        """x where the guard holds, else y; values that cannot be joined are undefined."""
        if isinstance(x, Pred):
            a = self.arena
            return a.disj((a.conj((guard, x)), a.conj((a.negate(guard), y))))
        try:
            return self.dom.merge(guard, x, y)
        except Unsupported as stuck:
            return Undef(x.width, f"joined values do not mix ({stuck})")


def _shared_unit(kernel: Kernel) -> int:
    """The smallest element size of the kernel's writes to shared memory, in bytes (at most 4, or 8 if all are)."""
    sizes = {4}
    for ins in kernel.code:
        parts = ins.modifiers
        if ins.name in ("st", "atom", "red") and any(m.split("::")[0] == "shared" for m in parts):
            digits = "".join(ch for ch in parts[-1] if ch.isdigit())
            sizes.add(int(digits) // 8 if digits else 4)
        if ins.name == "stmatrix":
            sizes.add(2)
    smallest = min(sizes)
    wide = [s for s in sizes if s != 4]
    return 8 if wide == [8] and not _has_narrow_shared(kernel) else smallest


def _has_narrow_shared(kernel: Kernel) -> bool:
    for ins in kernel.code:
        shared = ins.name in ("ld", "st") and any(m.split("::")[0] == "shared" for m in ins.modifiers)
        if shared and not ins.modifiers[-1].endswith("64"):
            return True
    return False


def _exponential(v: Any) -> bool:
    """True for a product with an exponential factor."""
    return isinstance(v, Float) and v.node.op == "mul" and any(y.op == "ex2" for y in v.node.args)
