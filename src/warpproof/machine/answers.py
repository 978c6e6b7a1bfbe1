"""How the symbolic machine answers effects: memory, barriers, warp communication, special registers."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, cast

import numpy as np

from warpproof.core import Unsupported
from warpproof.domains import (
    ActiveMask,
    AsyncCopy,
    AsyncGroup,
    Atomic,
    Barrier,
    Cvta,
    Effect,
    Elect,
    Fence,
    Float,
    FragmentLoad,
    FragmentStore,
    Int,
    Load,
    Match,
    MatrixLoad,
    MatrixMultiply,
    MatrixStore,
    Redux,
    ScalarType,
    Shuffle,
    Special,
    Store,
    Undef,
    Value,
    Vote,
    WarpSync,
)
from warpproof.machine import cta_votes, shared_updates, symbolic_atomics, symbolic_matrix, symbolic_warp
from warpproof.machine.alignment import Divisors
from warpproof.machine.bases import by_base, by_choice
from warpproof.machine.exchange import lane_mask
from warpproof.machine.forwarding import Forwarding
from warpproof.machine.setup import BufferInfo
from warpproof.machine.symbolic_async import AsyncCopies
from warpproof.machine.symbolic_shared import SharedAccess
from warpproof.machine.trace import Access as Recorded
from warpproof.machine.trace import BarrierEvent, Hazard
from warpproof.machine.upcoming import Upcoming
from warpproof.terms import Access, Poly, Pred, Real, const

if TYPE_CHECKING:
    from warpproof.machine.symbolic import SymbolicMachine

_AXES: Final = {"x": 0, "y": 1, "z": 2}


class Answers:
    """The effect handler of one machine."""

    def __init__(self, machine: SymbolicMachine) -> None:
        self.machine, self.arena = machine, machine.arena
        self._bases: dict[int, tuple[str, str]] = {}
        self.cached: dict[str, str] = {}  # writable buffers that are read through the non-coherent cache, and where
        self.sources: dict[int, frozenset[str]] = {}  # by kernel: the registers that it may read
        self.copies = AsyncCopies(machine)
        self.forwarding = Forwarding(machine)
        self.shared = SharedAccess(machine)
        self.divisors = Divisors(machine.arena, machine.setup.facts)
        for name in machine.setup.buffers:
            self.base("global", name)

    # ------------------------------------------------------------------ addresses
    def base(self, space: str, name: str) -> Poly:
        """The (unknown) address of a variable or buffer."""
        p = self.arena.symbol("base", f"{space}:{name}", 0, None)
        ((m, _),) = p.terms.items()
        self._bases[m[0]] = (space, name)
        return p

    def symbol_address(self, name: str) -> Value:
        """The address of a variable in its own state space; shared variables have their layout offset."""
        kernel = self.machine.kernel
        spacing = self.machine.spacing
        if name in spacing.shared:
            return Int(64, const(spacing.shared[name]))
        if self.machine.calls.is_buffer(name):
            return Int(64, self.base("call", name))
        if any(p.name == name for p in kernel.params):
            return Int(64, self.base("param", name))
        if name in spacing.local:
            return Int(64, const(spacing.local[name]))
        return Int(64, self.base("module", name))

    def locate(self, address: Value) -> tuple[str, str, Poly]:
        """(space, variable, byte offset) of an address that has exactly one base."""
        p = self.machine.dom.integers.poly(address)
        found = [(m, c) for m, c in p.terms.items() if any(a in self._bases for a in m)]
        if not found:
            return "", "", p
        ((m, c),) = found if len(found) == 1 else ((None, None),)
        if m is None or len(m) != 1 or not (isinstance(c, int) and c == 1):
            raise Unsupported("address", "an address without one clear base")
        space, name = self._bases[m[0]]
        return space, name, Poly({k: v for k, v in p.terms.items() if k != m})

    # ------------------------------------------------------------------ special registers
    def special_width(self, name: str) -> int:
        """The width of a special register."""
        return 64 if name in ("%clock64", "%globaltimer", "%gridid") else 1 if name.startswith("%is_") else 32

    def special(self, name: str) -> Value | None:
        """Thread and block coordinates; None for other names."""
        base, _, axis = name.partition(".")
        lanes = np.arange(self.arena.lanes)
        bx, by, _ = self.machine.setup.block
        if axis in _AXES:
            k = _AXES[axis]
            match base:
                case "%tid":
                    return Int(32, const((lanes % bx, lanes // bx % by, lanes // (bx * by))[k]))
                case "%ntid":
                    return Int(32, const(self.machine.setup.block[k]))
                case "%ctaid":
                    block = self.arena.symbol("block", f"block.{axis}", 0, None)
                    return Int(32, const(0) if self.arena.bounds(block) == (0, 0) else block)
                case "%nctaid":
                    return Int(32, self.machine.setup.grid[k])
        match name:
            case "%laneid":
                return Int(32, const(lanes % 32))
            case "WARP_SZ":
                return Int(32, const(32))
        if name.startswith("%lanemask_"):
            return Int(32, const(lane_mask(name, lanes % 32)))
        return None

    # ------------------------------------------------------------------ dispatch
    def answer(self, effect: Effect) -> Any:
        """The answer to an effect, which may be recorded in the trace."""
        match effect:
            case Load():
                return self._load(effect)
            case Store():
                return self._store(effect)
            case Atomic():
                return self._atomic(effect)
            case Barrier():
                return self._barrier(effect)
            case Cvta():
                return self._cvta(effect)
            case Special(name):
                return self.machine.read(name)
            case Fence(semantics, scope, ""):
                return self.machine.crossing.fence(semantics, scope)
            case AsyncCopy():
                return self.copies.issue(effect)
            case AsyncGroup():
                return self.copies.group(effect)
            case _:
                return self._warp(effect)

    def _warp(self, effect: Effect) -> Any:
        """Operations of whole warps or member masks."""
        m = self.machine
        match effect:
            case Shuffle():
                return symbolic_warp.shuffle(m, effect)
            case WarpSync(mask):
                return symbolic_warp.warp_sync(m, mask)
            case Vote():
                return symbolic_warp.vote(m, effect)
            case Match():
                return symbolic_warp.match(m, effect)
            case Redux():
                return symbolic_warp.redux(m, effect)
            case Elect():
                return symbolic_warp.elect(m, effect)
            case ActiveMask():
                return symbolic_warp.active_mask(m)
            case MatrixLoad():
                return symbolic_matrix.load_matrices(m, effect)
            case MatrixStore():
                return symbolic_matrix.store_matrices(m, effect)
            case MatrixMultiply():
                return symbolic_matrix.multiply(m, effect)
            case FragmentLoad():
                return symbolic_matrix.load_fragment(m, effect)
            case FragmentStore():
                return symbolic_matrix.store_fragment(m, effect)
            case _:
                raise Unsupported(type(effect).__name__, "no symbolic meaning yet")

    def _atomic(self, effect: Atomic) -> Value | None:
        """A contribution where nobody uses the old value, else a way for CTAs to talk to each other."""
        used = symbolic_atomics.result_used(self.machine, effect)
        if self.machine.crossing.writes(effect, used):
            return self.machine.crossing.write(effect)
        if used or self.machine.crossing.counts(effect):
            return self.machine.crossing.update(effect)
        return symbolic_atomics.update(self.machine, effect)

    def _cvta(self, effect: Cvta) -> Value:
        address: Value = effect.address  # type: ignore[assignment]
        space = effect.space.split("::")[0]
        if space == "global":
            return address
        generic = self.base(space, "window")
        p = self.machine.dom.integers.poly(address)
        return Int(address.width, p - generic if effect.to else p + generic)

    def space(self, effect: Load | Store | Atomic) -> tuple[str, str, Poly]:
        space, name, offset = self.locate(effect.address)  # type: ignore[arg-type]
        declared = effect.space.split("::")[0]
        if declared == "generic":
            if space == "param" or not space:
                raise Unsupported("generic address", "an address without a base")
            declared = space
        elif not _fits(declared, space, name):
            raise Unsupported(f"{declared} address", f"the address of something in {space or 'no known'} memory")
        return ("call" if space == "call" else declared), name, offset

    # ------------------------------------------------------------------ loads
    def by_base(self, effect: Load | Store | Atomic) -> list[tuple[Pred, Value]]:
        """The lanes or cases that share a variable, with their addresses, when not all do."""
        m, address = self.machine, cast("Any", effect.address)
        p = m.dom.integers.poly(address)
        split = [(self.arena.lane_mask(lanes), q) for lanes, q in by_base(self.arena, p, self._bases, m.path.mask)]
        return [(where, Int(address.width, q))
                for where, q in split or by_choice(self.arena, p, self._bases, m.path.condition())]

    def _load(self, effect: Load) -> Any:
        out: Any = None
        for lanes, address in self.by_base(effect):
            with self.machine.path.under(lanes):
                got = self._load(replace(effect, address=address))
            if out is None:
                out = got
            elif effect.count == 1:
                out = self.machine.dom.merge(lanes, got, out)
            else:
                out = tuple(self.machine.dom.merge(lanes, x, y) for x, y in zip(got, out, strict=True))
        if out is not None:
            return out
        space, name, offset = self.space(effect)
        ty, n = effect.type, effect.count
        size = ty.width // 8
        if not self.machine.crossing.plain(effect, space, name):
            return self.machine.crossing.load(effect, space, name, offset)
        match space:
            case "param":
                values = [self._parameter(name, offset + i * size, ty) for i in range(n)]
            case "call":
                values = [self.machine.calls.load(name, offset + i * size, ty) for i in range(n)]
            case "global":
                info = self.machine.setup.buffers.get(name)
                if "nc" in effect.cache and info is not None and info.writable:
                    self.cached[name] = self.machine.where()
                values = self._global_load(name, offset, ty, n)
            case "shared":
                values = self.shared.load(offset, ty, n)
            case "local":
                self._local_slot(offset, ScalarType(ty.kind, ty.width * n))
                values = [self._local_load(offset + i * size, ty) for i in range(n)]
            case _:
                raise Unsupported(f"ld.{space}", "no symbolic meaning yet")
        return values[0] if n == 1 else tuple(values)

    def _parameter(self, name: str, offset: Poly, ty: ScalarType) -> Value:
        k = offset.as_int()
        value = self.machine.setup.arguments.get(name)
        if k is None or value is None:
            raise Unsupported("ld.param", f"parameter {name or '?'} is not in the launch, or a symbolic offset")
        if k == 0 and value.width == ty.width:
            return value
        if value.width % ty.width == 0 and (k * 8) % ty.width == 0:
            parts = self.machine.dom.unpack(value.width, value, value.width // ty.width)
            if 0 <= k * 8 // ty.width < len(parts):
                return parts[k * 8 // ty.width]
        raise Unsupported("ld.param", f"{ty} at byte {k} of parameter {name}")

    def elements(self, name: str, offset: Poly, ty: ScalarType, count: int) -> tuple[BufferInfo, Poly, int]:
        """Buffer, first element and elements per access unit; demands alignment."""
        info = self.machine.setup.buffers.get(name)
        if info is None:
            raise Unsupported("global memory", f"an access through {name or 'an unknown pointer'}")
        offset = self._on_path(offset)
        size = info.width // 8
        width = ty.width // 8
        if width % size:
            raise Unsupported(f"global access of {ty}", f"narrower than the {info.kind}{info.width} elements of {name}")
        align = width * count
        if self.divisors.of(offset) % align:
            self.machine.require("alignment", self.arena.eq(self.arena.mod(offset, const(align))))
        if any(np.any(np.asarray(c % size)) for c in offset.terms.values()):
            index = self.arena.floor_div(offset, const(size))
        else:
            index = offset.exact_div(size)
        return info, index, width // size

    def _on_path(self, offset: Poly) -> Poly:
        """An address with its choices decided by the path, as in `p = inside ? a + i : a`, read only if inside."""
        m = self.machine
        guard = m.path.symbolic()
        if guard.op == "true" or not m.arena.chooses(offset):
            return offset
        return Upcoming(m.dom, guard).poly(offset)

    def record(
        self, kind: str, info: BufferInfo, index: Poly, value: Value | None = None, open_loops: tuple[int, ...] = (),
        op: str = "",
    ) -> None:
        """Put a global access on the trace."""
        m = self.machine
        order = len(m.trace.accesses)
        m.trace.accesses.append(
            Recorded(kind, info.name, index, m.path.condition(), tuple(m.path.loops), m.current, order, value,
                     open_loops, op)
        )

    def _global_load(self, name: str, offset: Poly, ty: ScalarType, count: int) -> list[Value]:
        info, index, per = self.elements(name, offset, ty, count)
        out: list[Value] = []
        for i in range(count):
            parts = []
            for j in range(per):
                at = index + (i * per + j)
                if self.machine.crossing.turns.covers(info):
                    parts.append(self.machine.crossing.turns.load(info, at))
                    continue
                if info.writable and self.machine.crossing.locks.inside():
                    parts.append(self.machine.crossing.locks.load(info, at))
                    continue
                stored = self.forwarding.find(info, at)
                if stored is None:
                    handed = self.machine.crossing.handed_over(info, at)
                    if handed is not None:
                        parts.append(handed)
                        continue
                    self.record("load", info, at)
                else:
                    self.record("reload", info, at, open_loops=stored.open_loops)
                if stored is None and not info.initialised:
                    self.hazard("unwritten", f"{info.name} is read where this thread has not written it")
                parts.append(self.element(info, at) if stored is None else stored.value)
            out.append(parts[0] if per == 1 else self.machine.dom.pack(ty.width, parts))
        return out

    def element(self, info: BufferInfo, index: Poly) -> Value:
        """An element of a buffer as it was when the kernel started."""
        if not info.initialised:
            return Undef(info.width, f"{info.name} read before it is written")
        if info.left is not None and info.kind not in ("f", "bf"):
            return self._left(info, info.left(index, self.machine.path.condition()))
        if info.zero:
            return Int(info.width, const(0))
        if info.kind in ("f", "bf"):
            return Float(info.kind, info.width, self.arena.load(Access(info.name, int(info.left is not None)), index))
        atom = self.arena.derived("elem", (index,), name=info.name)
        ((m, _),) = atom.terms.items()
        half = 1 << (info.width - 1)
        lo, hi = (-half, half - 1) if info.kind == "s" else (0, 2 * half - 1)
        least, past = info.elements
        self.arena.restrict(m[0], lo if least is None else max(lo, self.arena.bounds(least)[0] or lo), hi)
        if least is not None:
            self.machine.learn(self.arena.le(least - atom))
        # An upper end is a fact only where the range has elements: else it would say that there is no such launch.
        low = lo if least is None else least
        if past is not None and self.machine.oracle.implied(self.arena.true, self.arena.le(low - past + 1)):
            self.machine.learn(self.arena.le(atom - past + 1))
        return Int(info.width, atom)

    def _left(self, info: BufferInfo, x: Real) -> Value:
        """The integer that an earlier launch left in an element."""
        if x.op == "int" or (x.op == "const" and x.data.denominator == 1):
            return Int(info.width, x.data if x.op == "int" else const(int(x.data)))
        raise Unsupported("global memory", f"the integers that an earlier launch left in {info.name} are a reduction")

    # ------------------------------------------------------------------ stores
    def _store(self, effect: Store) -> None:
        split = self.by_base(effect)
        if any(self.locate(address)[0] in ("local", "call") for _, address in split):
            raise Unsupported("generic store", "some lanes store to memory of their own, others elsewhere")
        for lanes, address in split:
            with self.machine.path.under(lanes):
                self._store(replace(effect, address=address))
        if split:
            return
        space, name, offset = self.space(effect)
        ty = effect.type
        if not self.machine.crossing.plain(effect, space, name):
            self.machine.crossing.store(effect, space, name, offset)
            return
        values: list[Any] = list(effect.values)
        match space:
            case "global":
                info, index, per = self.elements(name, offset, ty, len(values))
                for i, value in enumerate(values):
                    parts = (value,) if per == 1 else self.machine.dom.unpack(ty.width, value, per)
                    for j, part in enumerate(parts):
                        at = index + (i * per + j)
                        if self.machine.crossing.turns.covers(info):
                            self.machine.crossing.turns.store(info, at, part)
                        elif self.machine.crossing.locks.inside():
                            self.machine.crossing.locks.store(info, at, part)
                        else:
                            self.record("store", info, at, part)
            case "shared":
                self.shared.align(offset, ty.width // 8 * len(values))
                for i, value in enumerate(values):
                    self.shared.store(offset + i * (ty.width // 8), ty.width // 8, value)
            case "call":
                for i, value in enumerate(values):
                    self.machine.calls.store(name, offset + i * (ty.width // 8), ty, value)
            case "local":
                self._local_slot(offset, ScalarType(ty.kind, ty.width * len(values)))
                for i, value in enumerate(values):
                    self._local_store(offset + i * (ty.width // 8), ty, value)
            case _:
                raise Unsupported(f"st.{space}", "no symbolic meaning yet")

    def hazard(self, kind: str, detail: str) -> None:
        """Put a possible fault at the current place on the trace."""
        m = self.machine
        m.trace.hazards.append(Hazard(kind, detail, m.current, None, m.path.condition()))

    # ------------------------------------------------------------------ local memory
    def _local_slot(self, offset: Poly, ty: ScalarType) -> int:
        k, size = offset.as_int(), ty.width // 8
        if k is None:
            raise Unsupported("local memory", "an address that differs by lane or depends on a symbol")
        kernel = self.machine.kernel
        inside = any(
            start <= k and k + size <= start + kernel.variables[name].size
            for name, start in self.machine.spacing.local.items()
        )
        if not inside or k % size:
            raise Unsupported("local memory", "an access outside the variable, or not aligned")
        return k

    def _local_load(self, offset: Poly, ty: ScalarType) -> Value:
        k = self._local_slot(offset, ty)
        found = self.machine.registers.get(f"local+{k}")
        if found is None or found.width != ty.width:
            return Undef(ty.width, "local memory never written at this size")
        value: Value = found
        return value

    def _local_store(self, offset: Poly, ty: ScalarType, value: Value) -> None:
        k = self._local_slot(offset, ty)
        for name in [n for n in self.machine.registers if n.startswith("local+")]:
            at = int(name[6:])
            width = self.machine.registers[name].width // 8
            if at != k and at < k + ty.width // 8 and k < at + width:
                del self.machine.registers[name]
        self.machine.write(f"local+{k}", value)

    # ------------------------------------------------------------------ synchronisation
    def _barrier(self, effect: Barrier) -> Any:
        m = self.machine
        ident: Any = effect.id
        place = m.dom.integers.poly(ident)
        number = place.as_int()
        count: Any = effect.count
        threads = m.dom.integers.poly(count).as_int() if count is not None else None
        if m.streams.running is not None and effect.kind != "red":
            return m.streams.meet(place, threads, effect.kind == "sync")
        if effect.kind != "red" and number is not None and m.roles.running is not None and count is not None:
            return m.roles.meet(number, threads, effect.kind == "sync")
        whole = count is None or threads == self.arena.lanes
        alone = effect.kind == "red" and whole and m.streams.running is None and m.roles.running is None
        if not (effect.kind == "sync" or alone) or number is None or not 0 <= number < 16:
            raise Unsupported(f"barrier.{effect.kind}", "only full CTA barriers are modelled yet")
        if not whole:
            return m.roles.named(number, threads)
        m.roles.used_by(number, np.ones(self.arena.lanes, bool))
        if not m.conditional():  # else what came before may still be going on
            shared_updates.settle(m)
        m.trace.barriers.append(BarrierEvent(m.path.condition(), m.current, loops=tuple(m.path.loops)))
        m.crossing.barrier()
        if not m.conditional():
            m.shared.footprint.clear()
        return cta_votes.vote(m, effect) if alone else None


def _fits(declared: str, space: str, name: str) -> bool:
    """True when an address with this base may be used in this state space: variables in shared and local memory are
    offsets without a base, and a generic address of shared memory may stand for one."""
    match declared:
        case "shared":
            return not space or (space, name) == ("shared", "window")
        case "local":
            return not space
        case "const":
            return space == "module"
        case "param":
            return space in ("param", "call")
        case _:
            return space == declared
