"""One symbolic proof attempt: a kernel under a launch against a reference, as claims for the judge."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import Any, Final, Protocol

from warpproof.algebra import Sign, Signs, support
from warpproof.core import (
    Claim,
    InputError,
    Ledger,
    OutOfTime,
    Reason,
    Status,
    Unsupported,
    check_time,
    element_width,
    time_limit,
)
from warpproof.domains import Float, Int, ScalarType, Value
from warpproof.equivalence.contributions import Contributions
from warpproof.equivalence.earlier import Earlier, Leftover
from warpproof.equivalence.gathered import Gathered
from warpproof.equivalence.outputs import Expected, Output, OutputChecker
from warpproof.equivalence.rehearsal import Rehearsal
from warpproof.machine import Access, BufferInfo, Setup, SymbolicMachine, Trace
from warpproof.ptx import Kernel
from warpproof.reference import Launch, SymbolicLaunch
from warpproof.safety import (
    Infinities,
    RealConditions,
    barrier_claims,
    condition_claims,
    definedness_claims,
    memory_claims,
    race_claims,
)
from warpproof.solve import Facts, tighten, without_other_blocks
from warpproof.terms import Arena, Poly, Pred, Real, const

_SHARED_LIMIT: Final = 227 * 1024
GRID_LIMITS: Final = ((1 << 31) - 1, 65535, 65535)
_KINDS: Final = {"f": "f", "i": "s", "u": "u", "b": "u"}


class ReferenceArray(Protocol):
    """A traced output of the reference."""

    def at(self, indices: tuple[Poly, ...]) -> Real:
        """Its element at coordinates."""
        ...

    def index_symbols(self) -> tuple[Poly, ...]:
        """Fresh coordinates inside its shape."""
        ...


class Left(Protocol):
    """What earlier launches left in a buffer."""

    def at(self, proof: Proof, index: tuple[Poly, ...]) -> Real:
        """The element at these coordinates, as a term of the proof's arena."""
        ...


def element_type(dtype: str) -> ScalarType:
    """The register type of a manifest dtype (`f32`, `bf16`, `i32`, `u8`, `bool`)."""
    if dtype == "bool":
        return ScalarType("u", 8)
    if dtype.startswith("bf"):
        return ScalarType("bf", int(dtype[2:]))
    return ScalarType(_KINDS[dtype[0]], int(dtype[1:]))


@dataclass(slots=True)
class Outcome:
    """What one attempt has established. `figures` are counts and seconds, `executed` the instructions reached."""

    claims: list[Claim] = field(default_factory=list)
    ledger: Ledger = field(default_factory=Ledger)
    figures: dict[str, float] = field(default_factory=dict)
    executed: frozenset[int] = frozenset()


class Proof:
    """Runs the symbolic machine and asks every question about its trace."""

    def __init__(
        self, kernel: Kernel, launch: Launch, deadline: float, without: frozenset[int] = frozenset(),
        left: Mapping[str, Left] | None = None,
    ) -> None:
        """`without` are barriers and fences (by instruction) to leave out; `left` is what earlier launches left."""
        self.left = left or {}
        self.traced: Mapping[str, ReferenceArray] = {}
        self.kernel, self.launch, self.deadline, self.without = kernel, launch, deadline, without
        block = launch.symbolic(Arena(1)).block
        self.arena = Arena(block[0] * block[1] * block[2])
        self.symbolic: SymbolicLaunch = launch.symbolic(self.arena)
        self.outcome = Outcome()
        self._checker: OutputChecker | None = None
        known = (*self.symbolic.facts, *self._limits())
        tighten(self.arena, known)
        self._raise_sizes()
        self.blocks = self._blocks()
        self.facts = Facts(self.arena, (*known, *self._block_facts()))
        self.buffers = {n: self._buffer(n) for n in self.symbolic.buffers}
        self.rehearsal = Rehearsal(kernel)
        self.ctas = self.symbolic.grid[0] * self.symbolic.grid[1] * self.symbolic.grid[2]
        self.tickets = self._tickets() if self.rehearsal.crossing else {}
        if self.tickets:
            drawn = [self.arena.le(t - self.ctas + 1) for t in self.tickets.values()]
            self.facts = Facts(self.arena, (*known, *self._block_facts(), *drawn))

    def _limits(self) -> list[Pred]:
        """That the grid is one that a device admits: assumed where the preconditions do not say it."""
        facts, out = Facts(self.arena, self.symbolic.facts), []
        for extent, most in zip(self.symbolic.grid, GRID_LIMITS, strict=True):
            fits = self.arena.le(extent - most)
            if fits.op == "false":
                raise InputError("CLI622", "the grid is larger than a device admits (x < 2**31, y and z < 65536)")
            if not facts.implied(self.arena.true, fits):
                self.outcome.ledger.use(
                    "launch-limits", "the grid is one that a device admits (x < 2**31, y and z < 65536)",
                    "CUDA programming guide, technical specifications by compute capability")
                out.append(fits)
        return out

    def _raise_sizes(self) -> None:
        """Let the ranges say which sizes are at least 1 by the preconditions (that there is a CTA does not count)."""
        facts = Facts(self.arena, self.symbolic.facts)
        for atom in [a for a in self.arena.atoms if a.kind == "size"]:
            one = self.arena.le(1 - self.arena.variable(atom))
            if one.op == "le" and facts.implied(self.arena.true, one):
                self.arena.restrict(atom.id, 1, None)
        tighten(self.arena, self.symbolic.facts)

    # ------------------------------------------------------------------ launch
    def _blocks(self) -> tuple[Poly, ...]:
        return tuple(self.arena.symbol("block", f"block.{axis}", 0, None) for axis in "xyz")

    def _block_facts(self) -> list[Pred]:
        out = []
        for b, extent in zip(self.blocks, self.symbolic.grid, strict=True):
            ((m, _),) = b.terms.items()
            high = self.arena.bounds(extent)[1]
            self.arena.restrict(m[0], 0, None if high is None else high - 1)
            out.append(self.arena.le(b - extent + 1))
        return out

    def _block_dims(self) -> tuple[int, ...]:
        """The block indices that range over more than one value."""
        return tuple(
            next(iter(b.terms))[0] for b, extent in zip(self.blocks, self.symbolic.grid, strict=True)
            if extent.as_int() != 1
        )

    def _dims(self, accesses: Sequence[Access]) -> tuple[int, ...]:
        """What tells the CTAs of these accesses apart: the block indices, or a ticket, of which each CTA draws one."""
        used = set(support(self.arena, [a.index for a in accesses], [a.path for a in accesses]))
        tickets = tuple(t for t in (next(iter(p.terms))[0] for p in self.tickets.values()) if t in used)
        if not tickets:
            return self._block_dims()
        return (*tickets, *(b for b in self._block_dims() if b in used))

    def _buffer(self, name: str) -> BufferInfo:
        b = self.symbolic.buffers[name]
        ty = element_type(b.dtype)
        if name in self.left:
            return BufferInfo(name, ty.kind, ty.width, b.count, b.kind != "ptr_in", True,
                              left=lambda index, path: self._left_at(name, index, path))
        return BufferInfo(name, ty.kind, ty.width, b.count, b.kind != "ptr_in", b.kind != "ptr_out" or b.init_zero,
                          b.range or (None, None), b.init_zero)

    def _earlier(self) -> Earlier:
        """What opens reads of buffers that earlier launches wrote."""
        def leftover(name: str) -> Leftover:
            buffer = self.symbolic.buffers[name]

            def element(index: tuple[Poly, ...]) -> Real:
                if not buffer.contiguous:
                    raise Unsupported("intermediate buffer", f"the strides of {name} leave gaps")
                return self.left[name].at(self, index)

            return Leftover(tuple(buffer.shape), element)

        return Earlier(self.arena, self.facts, {name: leftover(name) for name in self.left})

    def _left_at(self, name: str, index: Poly, path: Pred) -> Real:
        """What an earlier launch left in an element."""
        return self.left[name].at(self, self._earlier().coordinates(name, index, path))

    def initial(self, name: str) -> Expected:
        """What a buffer holds when the launch begins, by coordinates."""
        if name not in self.left:
            return self.entry(name)
        return lambda index: self.left[name].at(self, index)

    def entry(self, name: str) -> Expected:
        """What a buffer holds before the first launch, by coordinates."""
        buffer = self.symbolic.buffers[name]

        def value(index: tuple[Poly, ...]) -> Real:
            if buffer.init_zero:
                return self.arena.zero
            found = buffer.element(self.arena, index)
            return found if isinstance(found, Real) else self.arena.of_int(found)

        return value

    def _tickets(self) -> dict[str, Poly]:
        """For each counter that starts at zero, the value that a CTA may draw from it."""
        high = self.arena.bounds(self.ctas)[1]
        last = None if high is None else high - 1
        return {n: self.arena.symbol("block", f"ticket.{n}", 0, last) for n, b in self.buffers.items()
                if b.zero and b.writable and b.kind in ("u", "s") and b.width == 32}

    def _arguments(self) -> dict[str, Value]:
        if len(self.kernel.params) != len(self.launch.arguments):
            raise Unsupported("launch", f"the kernel has {len(self.kernel.params)} parameters, the launch describes "
                                        f"{len(self.launch.arguments)}")
        out: dict[str, Value] = {}
        for formal, given in zip(self.kernel.params, self.launch.arguments, strict=True):
            wanted = 8 if given.kind.startswith("ptr") else element_width(given.dtype) // 8
            if formal.size != wanted:
                raise Unsupported("launch", f"the parameter {given.name!r} has {wanted} bytes in the launch, but "
                                            f"{formal.size} in the kernel")
            if given.value is not None:
                out[formal.name] = Int(formal.size * 8, self.symbolic.value(given.value))
            elif given.kind == "ptr_null":
                out[formal.name] = Int(64, const(0))
            elif given.is_buffer:
                out[formal.name] = Int(64, self.arena.symbol("base", f"global:{given.name}", 0, None))
            elif given.name in self.symbolic.sizes:
                out[formal.name] = Int(formal.size * 8, self.symbolic.sizes[given.name])
            else:
                ty = element_type(given.dtype)
                out[formal.name] = Float(ty.kind, ty.width, self.symbolic.scalars[given.name])
        return out

    def _check_block(self) -> None:
        """A launch that contradicts the kernel's .reqntid or .maxntid fails (PTX ISA 11.4), so it proves nothing."""
        block, limits = self.symbolic.block, self.kernel.directives
        threads = block[0] * block[1] * block[2]
        if "reqntid" in limits and tuple(limits["reqntid"]) != tuple(block):
            raise InputError("CLI628", f"block {block}, but the kernel requires {tuple(limits['reqntid'])}")
        if "maxntid" in limits and threads > prod(limits["maxntid"]):
            raise InputError("CLI628", f"block {block} has more threads than .maxntid {limits['maxntid']} admits")
        if threads > 1024 or block[2] > 64:
            raise InputError("CLI621", f"block {block} has more than 1024 threads, or more than 64 in z")
        if self._shared_bytes() > _SHARED_LIMIT:
            raise Unsupported("launch", f"no device has {self._shared_bytes()} bytes of shared memory for a block")

    def _shared_bytes(self) -> int:
        extra = self.symbolic.dynamic_shared.as_int()
        if extra is None:
            raise Unsupported("dynamic shared memory", "its size depends on a symbol")
        if extra < 0:
            raise InputError("REF211", f"the dynamic shared memory is {extra} bytes")
        return self.kernel.shared_size + extra

    # ------------------------------------------------------------------ attempt
    def attempt(self, outputs: Mapping[str, ReferenceArray]) -> Outcome:
        """Claims on every property; what stops the run is one open claim."""
        out = self.outcome
        self._check_block()
        machine = self._machine()
        began = time.monotonic()
        stage = "executing the kernel"
        try:
            with time_limit(self.deadline):
                trace = self._run(machine)
                out.figures.update(steps=trace.steps, terms=len(self.arena.reals), execute_s=time.monotonic() - began)
                out.executed = frozenset(trace.executed)
                for stage, question in self._questions(machine, trace, outputs):
                    self._ask(stage, question)
        except Unsupported as stuck:
            out.claims.append(Claim("conditions", f"{stage} to its end", Status.OPEN,
                                    place=self._reached(machine),
                                    reason=_reason(stuck), hint=str(stuck)))
        except OutOfTime:
            spent = f"{time.monotonic() - began:.0f} s went by"
            at = f" (at work: {self._checker.doing})" if self._checker is not None and self._checker.doing else ""
            out.claims.append(Claim("conditions", f"{stage} in time", Status.OPEN,
                                    place=self._reached(machine), reason=Reason.TIMEOUT, hint=spent + at))
        return out

    def _reached(self, machine: SymbolicMachine) -> str:
        """The instruction at which the execution stopped; nothing when it came to its end."""
        return machine.where() if self.kernel.code and not self.outcome.executed else ""

    def _ask(self, stage: str, question: Callable[[], list[Claim]]) -> None:
        """One stage; nothing is added to a stage that has run out of time."""
        began = time.monotonic()
        check_time()
        if self._checker is not None:
            self._checker.doing = ""
        claims = question()
        check_time()
        self.outcome.claims += claims
        self.outcome.figures[stage] = time.monotonic() - began

    def ordering(self) -> list[Claim]:
        """The claims on races and barriers alone; what stops the run raises `Unsupported`."""
        machine = self._machine()
        trace = self._run(machine)
        checker = OutputChecker(self.arena, self.facts, machine.dom, self._block_dims(), machine.where)
        return self._races(checker, machine, trace) + barrier_claims(self.arena, self.facts, trace, machine.where)

    def _machine(self) -> SymbolicMachine:
        setup = Setup(self.symbolic.grid, self.symbolic.block, self._arguments(), self.buffers, self._shared_bytes(),
                      self.facts.base, blocks=self.blocks, ctas=self.ctas, tickets=self.tickets,
                      cooperative=self.launch.options.cooperative)
        machine = SymbolicMachine(self.kernel, self.arena, setup, self.outcome.ledger, self.facts, self.deadline)
        machine.without = self.without
        return machine

    def _run(self, machine: SymbolicMachine) -> Trace:
        """The trace; a kernel whose CTAs or warps communicate is run once before, to see what they store."""
        self.rehearsal.prepare(self.facts, self._machine, machine)
        return machine.run()

    def _races(self, checker: OutputChecker, machine: SymbolicMachine, trace: Trace) -> list[Claim]:
        blocks, split = self._block_dims(), self._splitter(checker)
        claims = race_claims(self.arena, self.facts, trace, self.buffers, blocks, split, machine.where, self._dims)
        return claims + self.rehearsal.claims(self.facts, trace, machine, self._dims, blocks, split)

    def _questions(
        self, machine: SymbolicMachine, trace: Trace, outputs: Mapping[str, ReferenceArray],
    ) -> list[tuple[str, Callable[[], list[Claim]]]]:
        """The questions about a trace, named by what answering them does."""
        where = machine.where
        numeric = all(p.is_constant() for p in self.symbolic.sizes.values())
        checker = OutputChecker(self.arena, self.facts, machine.dom, self._block_dims(), where, dims=self._dims,
                                numeric=numeric, tickets=[next(iter(t.terms))[0] for t in self.tickets.values()])
        self._checker = checker
        earlier = self._earlier()
        checker.opened = lambda x, path: earlier.opened(x, path, checker.matcher)
        layouts = {
            n: (tuple(b.shape), None if b.contiguous else tuple(b.strides)) for n, b in self.symbolic.buffers.items()
        }
        return [
            ("comparing the outputs", lambda: self._outputs(checker, trace, outputs)),
            ("checking the operations", lambda: condition_claims(
                self.arena, self.facts, trace, self._conditions(checker, trace), where)),
            ("checking the reference's divisions and roots", lambda: definedness_claims(
                self.arena, trace, self._conditions(checker, trace), checker.compared)),
            ("checking memory accesses",
             lambda: memory_claims(self.arena, self.facts, trace, self.buffers, layouts, where)),
            ("ordering accesses", lambda: self._races(checker, machine, trace)),
            ("checking barriers", lambda: barrier_claims(self.arena, self.facts, trace, where)),
        ]

    def _splitter(self, checker: OutputChecker) -> Any:
        def split(a: Access) -> tuple[tuple[Poly, ...], tuple[Poly, ...]]:
            b = self.symbolic.buffers[a.buffer]
            place = checker.locate(a, b.shape, None if b.contiguous else b.strides).at
            return place.extents(tuple(b.shape)), place.index

        return split

    def _outputs(self, checker: OutputChecker, trace: Trace, outputs: Mapping[str, ReferenceArray]) -> list[Claim]:
        claims: list[Claim] = []
        for name, array in outputs.items():
            output = self.output(name, array.at, array.index_symbols)
            claims += self.compared(checker, output, trace, [a for a in trace.accesses if a.buffer == name])
        return claims

    def output(self, name: str, expected: Expected, symbols: Callable[[], tuple[Poly, ...]]) -> Output:
        """A buffer that is to hold the expected values."""
        buffer = self.symbolic.buffers[name]
        strides = None if buffer.contiguous else tuple(buffer.strides)
        return Output(name, tuple(buffer.shape), element_type(buffer.dtype), expected, symbols, self.initial(name),
                      strides)

    def compared(
        self, checker: OutputChecker, output: Output, trace: Trace, accesses: list[Access],
    ) -> list[Claim]:
        """Claims that the accesses give an output its expected values."""
        stores = [a for a in accesses if a.kind == "store"]
        updates = [a for a in accesses if a.kind == "atomic"]
        strong = [a.order for a in trace.accesses if a.buffer == output.name and a.kind == "sync"]
        if any(a.order < max(strong, default=0) for a in stores):
            return [Claim("equivalence", f"{output.name} is stored last by plain stores", Status.OPEN,
                          place=checker.where(stores[0].instruction), hint="a strong access may come after")]
        if not accesses or all(a.kind == "sync" for a in accesses):
            released = self._released(checker, output, trace)
            if released is not None:
                return [released]
        if not updates:
            return self._stored(checker, output, trace, stores)
        if stores:
            return [Claim("equivalence", f"{output.name} is either stored or updated atomically", Status.OPEN,
                          place=checker.where(stores[0].instruction), reason=Reason.UNSUPPORTED,
                          hint="elements of one output are stored and updated atomically by one kernel")]
        if output.type.floating:
            self.outcome.ledger.use(
                "atomic-order", "the order of atomic additions differs from run to run, and so does their rounding",
                "over the reals every order gives one sum (PTX ISA 9.7.13.5: each update is one step)",
                checker.where(updates[0].instruction))
        return Contributions(checker).check(output, updates)

    def _released(self, checker: OutputChecker, output: Output, trace: Trace) -> Claim | None:
        """The claim on a buffer of locks: each is given back, and so all are 0 in the end as in the beginning."""
        events = [e for e in trace.sync if e.buffer == output.name]
        back = {e.kind for e in events} == {"lock", "unlock"} or [e.how for e in events] == ["inc"]
        if not (back and self.buffers[output.name].zero):
            return None
        implied = Facts(self.arena, without_other_blocks(self.arena, self.facts.launch, ())).implied
        same = checker.normal.equal(self.arena.zero, output.expected(output.symbols()), self.arena.true, implied)
        status, hint = (Status.SHOWN, "") if same else (Status.OPEN, "the reference leaves another value")
        return Claim("equivalence", f"{output.name} is free in the end", status, "locks" if same else "",
                     checker.where(events[0].instruction), hint=hint)

    def _stored(
        self, checker: OutputChecker, output: Output, trace: Trace, stores: list[Access],
    ) -> list[Claim]:
        """Claims on an output that is only stored; what the last CTA sums up is compared part by part if need be."""
        claims = checker.check(output, stores)
        if all(c.status is Status.SHOWN for c in claims) or not trace.handovers:
            return claims
        machine = self._machine()
        machine.crossing.survey, machine.crossing.opaque = self.rehearsal.survey, True
        try:
            run = machine.run()
        except Unsupported:
            return claims
        blocks = dict(zip((next(iter(b.terms))[0] for b in self.blocks), self.symbolic.grid, strict=True))
        wide = {b: blocks[b] for b in self._block_dims()}
        parts = Gathered(checker, run, wide).check(output, stores)
        return claims if parts is None else [*parts, claims[-1]]

    def _conditions(self, checker: OutputChecker, trace: Trace) -> RealConditions:
        signs = {}
        for f in self.symbolic.float_facts:
            if f.op in (">", ">=") and f.value >= 0:
                strict = f.op == ">" or f.value > 0
                signs[f.name] = Sign.POSITIVE if strict else Sign.NONNEGATIVE
        canonical = checker.normal.canonical

        def rewrite(x: Real, path: Pred) -> list[Real]:
            try:
                x = checker.told(x, path)
            except Unsupported:
                return []
            found = [x]
            for _, rewriter in checker.rewriters:
                y = rewriter.rewrite(x, path)
                if y is not x and y not in found:
                    found.append(y)
            return found

        return RealConditions(self.arena, self.facts, Signs(self.arena, signs), rewrite, canonical,
                              tuple(self._divisors(checker)), self._roots(checker), checker.same, self.outcome.ledger,
                              Infinities(self.arena, self.facts, trace.maxima))

    def _roots(self, checker: OutputChecker) -> tuple[Real, ...]:
        """What the reference takes roots of, at the coordinates that were compared."""
        out: dict[int, Real] = {}
        seen: set[int] = set()
        stack = [x for _, x in checker.compared]
        while stack:
            x = stack.pop()
            if x.id not in seen:
                seen.add(x.id)
                stack.extend(x.args)
                if x.op == "sqrt":
                    out[x.args[0].id] = x.args[0]
        return tuple(out.values())

    def _divisors(self, checker: OutputChecker) -> list[tuple[Pred, Real]]:
        """The canonical divisors of the reference at the coordinates that were compared, and where it divides by them.

        A choice divides on one side only, and a fold that may be empty perhaps never.
        """
        out: list[tuple[Pred, Real]] = []
        seen: set[tuple[int, int]] = set()
        stack = [(r.reference, self.arena.true) for _, r in checker.rewriters]
        while stack:
            x, where = stack.pop()
            if (x.id, where.id) in seen:
                continue
            seen.add((x.id, where.id))
            if x.op == "div":
                out.append((where, checker.normal.canonical(x.args[1])))
            if x.op == "sel" and x.pred is not None:
                stack.append((x.args[0], self.arena.conj((where, x.pred))))
                stack.append((x.args[1], self.arena.conj((where, self.arena.negate(x.pred)))))
            elif x.op != "fold" or (x.pred is not None and self.arena.inhabited(x.pred, x.data[1])):
                stack.extend((y, where) for y in x.args)
        return out


def _reason(stuck: Unsupported) -> Reason:
    if "out of time" in stuck.why:
        return Reason.TIMEOUT
    return Reason.LOOP if stuck.form == "loop" else Reason.UNSUPPORTED
