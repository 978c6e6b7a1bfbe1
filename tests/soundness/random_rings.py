"""Random programs of two sides that meet at named barriers in loops, and all their schedules tried out one by one.

A side is a list of steps: ("loop", trip, steps), ("if", condition, steps), or one of arrive, sync, put, get with a
`Place`. Trips and conditions speak of the sizes m and n, so that one program stands for many launches.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, count
from typing import Any

from proof_cases import Small, put, word

Steps = list[Any]
Sizes = dict[str, int]


@dataclass(frozen=True)
class Place:
    """(slope·i + start) mod period + base, without the remainder where the period is 0; i counts the innermost loop."""

    slope: int = 1
    start: int = 0
    period: int = 2
    base: int = 1
    mirror: bool = False  # of a put or get: lane 31 − l instead of l

    def at(self, i: int) -> int:
        v = self.slope * i + self.start
        return (v % self.period if self.period else v) + self.base


@dataclass(frozen=True)
class Rings:
    """A filling warp and some emptying warps."""

    first: Steps
    second: Steps
    readers: int = 1


# ---------------------------------------------------------------------- PTX
def kernel(rings: Rings) -> Small:
    """The program; every thread stores its own number, and the second side sums up what it reads."""
    threads, labels = 32 * (1 + rings.readers), count()
    body = f"""and.b32 %r3, %t, 31; xor.b32 %r5, %r3, 31; shr.u32 %r4, %t, 5; mov.f32 %f4, 0f00000000;
        cvt.rn.f32.u32 %f1, %t; setp.gt.u32 %p1, %t, 31; @%p1 bra SECOND;
        {_text(rings.first, threads, labels)} bra DONE;
        SECOND: {_text(rings.second, threads, labels)}
        mad.lo.s32 %r6, %c, {rings.readers}, %r4; sub.s32 %r6, %r6, 1; shl.b32 %r6, %r6, 5; add.s32 %r6, %r6, %r3;
        {put('%f4', 'y', '%r6')}"""
    params = (("y", "ptr_out", "f32", ("n", str(rings.readers), "32")),)
    bounds = ("n >= 1", "n <= 1000", "m >= 1", "m <= 1000")
    return Small(body, params, ("n", "m"), bounds, ("n",), threads)


def _text(steps: Steps, threads: int, labels: Iterator[int], trip: str = "") -> str:
    out = []
    for kind, what, *inner in steps:
        label = f"X{next(labels)}"
        if kind == "loop":
            name, more = what
            out.append(f"add.s32 %r40, %i_{name}, {more}; mov.u32 %r30, 0; setp.le.s32 %p5, %r40, 0; "
                       f"@%p5 bra {label}E; {label}: {_text(inner[0], threads, labels, '%r40')} add.s32 %r30, %r30, 1; "
                       f"setp.lt.s32 %p6, %r30, %r40; @%p6 bra {label}; {label}E:")
        elif kind == "if":
            test, k = what
            unless = f"setp.lt.s32 %p4, %r30, {k};" if test == "from" else (
                f"add.s32 %r15, %r30, {k}; setp.ge.s32 %p4, %r15, {trip};")
            out.append(f"{unless} @%p4 bra {label}F; {_text(inner[0], threads, labels, trip)} {label}F:")
        else:
            out.append(_step(kind, what, threads))
    return "\n".join(out)


def _step(kind: str, at: Place, threads: int) -> str:
    number = f"mul.lo.s32 %r10, %r30, {at.slope}; add.s32 %r10, %r10, {at.start};" if at.slope else (
        f"mov.u32 %r10, {at.start};")
    number += (f"rem.s32 %r10, %r10, {at.period};" if at.period else "") + f"add.s32 %r10, %r10, {at.base};"
    if kind in ("arrive", "sync"):
        return f"{number} bar.{kind} %r10, {threads};"
    lane, access = "%r5" if at.mirror else "%r3", "st.shared.f32 [%r20], %f1;"
    if kind == "get":
        access = "ld.shared.f32 %f2, [%r20]; add.f32 %f4, %f4, %f2;"
    return f"{number} shl.b32 %r13, %r10, 5; add.s32 %r14, %r13, {lane}; {word('%r20', '%r14')} {access}"


# ---------------------------------------------------------------------- all schedules
def _run(steps: Steps, sizes: Sizes, i: int = 0, trip: int = 0) -> Iterator[tuple[str, int, bool]]:
    for kind, what, *inner in steps:
        if kind == "loop":
            end = sizes[what[0]] + what[1]
            for j in range(end):
                yield from _run(inner[0], sizes, j, end)
        elif kind == "if":
            if i >= what[1] if what[0] == "from" else i + what[1] < trip:
                yield from _run(inner[0], sizes, i, trip)
        else:
            yield kind, what.at(i), what.mirror


def fault(rings: Rings, sizes: Sizes) -> str:
    """What goes wrong in some schedule at these sizes; empty when nothing does."""
    sides = [list(_run(s, sizes)) for s in (rings.first, rings.second)]
    if any(not 1 <= at <= 15 if kind in ("arrive", "sync") else not 0 <= at < 32 for s in sides for kind, at, _ in s):
        return "a barrier or cell that does not exist"
    warps = [0] + [1] * rings.readers
    return _met([[(k, at) for k, at, _ in s if k in ("arrive", "sync")] for s in sides], warps) or _raced(sides, warps)


def _met(arrivals: Sequence[Sequence[tuple[str, int]]], warps: Sequence[int]) -> str:
    """Explores all orders of arrivals. A state: per warp its next arrival and where it waits, and who is in a phase."""
    ranks = [[sum(b == at for _, b in s[:k]) for k, (_, at) in enumerate(s)] for s in arrivals]
    start: Any = ((0,) * len(warps), (0,) * len(warps), ())
    seen, todo = {start}, [start]
    while todo:
        position, waiting, phases = todo.pop()
        ready = [w for w, s in enumerate(warps) if not waiting[w] and position[w] < len(arrivals[s])]
        if not ready and (any(waiting) or phases):
            return "a warp waits for ever, or a phase stays open"
        for w in ready:
            k = position[w]
            kind, at = arrivals[warps[w]][k]
            there = dict(phases)
            now = (*there.pop(at, ()), (w, ranks[warps[w]][k]))
            if len({v for v, _ in now}) < len(now):
                return "a second arrival in one phase"
            next_, waits = list(position), list(waiting)
            next_[w], waits[w] = k + 1, at if kind == "sync" else 0
            if len(now) < len(warps):
                there[at] = tuple(sorted(now))
            elif len({r for _, r in now}) > 1:
                return "arrivals of different ranks in one phase"
            else:
                waits = [0 if x == at else x for x in waits]
            state = (tuple(next_), tuple(waits), tuple(sorted(there.items())))
            if state not in seen:
                seen.add(state)
                todo.append(state)
    return ""


def _raced(sides: Sequence[Sequence[tuple[str, int, bool]]], warps: Sequence[int]) -> str:
    """By vector clocks of two lanes of each warp, in one schedule: all have the same phases."""
    n = 2 * len(warps)
    clocks = [[int(t == u) for u in range(n)] for t in range(n)]
    position, waiting = [0] * len(warps), [0] * len(warps)
    phases: dict[int, list[list[int]]] = {}
    done: dict[tuple[int, int], list[tuple[str, int, list[int]]]] = {}
    while any(position[w] < len(sides[s]) for w, s in enumerate(warps)):
        w = next(w for w, s in enumerate(warps) if position[w] < len(sides[s]) and not waiting[w])
        kind, at, mirror = sides[warps[w]][position[w]]
        position[w] += 1
        lanes = (2 * w, 2 * w + 1)
        if kind in ("put", "get"):
            for t in lanes:
                done.setdefault((at, t % 2 ^ mirror), []).append((kind, t, list(clocks[t])))
            continue
        phases.setdefault(at, []).extend(list(clocks[t]) for t in lanes)
        for t in lanes:
            clocks[t][t] += 1
        waiting[w] = at if kind == "sync" else 0
        if len(phases[at]) == n:
            known = [max(x) for x in zip(*phases.pop(at), strict=True)]
            for v in [v for v, x in enumerate(waiting) if x == at]:
                waiting[v] = 0
                for t in (2 * v, 2 * v + 1):
                    clocks[t] = [max(x) for x in zip(clocks[t], known, strict=True)]
    return _unordered(done.values())


def _unordered(cells: Any) -> str:
    for accesses in cells:
        for (kind, t, then), (other, u, now) in combinations(accesses, 2):
            if t != u and "put" in (kind, other) and now[t] < then[t] and then[u] < now[u]:
                return "a race"
        for k, (kind, _, now) in enumerate(accesses):
            if kind == "get" and not any(x == "put" and then[u] <= now[u] for x, u, then in accesses[:k]):
                return "a read of nothing"
    return ""


# ---------------------------------------------------------------------- programs
def program(seed: int) -> Rings:
    """A ring that is right, with up to three changes."""
    r = random.Random(seed)
    s = r.choice([1, 2, 2, 3])
    full, empty, cell = Place(period=s), Place(period=s, base=1 + s), Place(period=s, base=0)
    take, trip = ("get", replace(cell, mirror=r.random() < 0.5)), r.choice([("m", 0), ("n", 0), ("m", 1)])
    fill: Steps = [("sync", empty), ("put", cell), ("arrive", full)]
    drain: Steps = [("sync", full), take, ("arrive", empty)]
    first: Steps = [("loop", trip, fill)]
    second: Steps = [("loop", trip, drain)]
    match r.randrange(4):
        case 0:
            fill[0], drain[2] = ("if", ("from", s), [fill[0]]), ("if", ("more", s), [drain[2]])
        case 1:
            fill[:] = [("put", cell), ("arrive", full), ("sync", empty)]
        case 2:
            fill[:], drain[2] = [("put", cell), ("sync", full), ("sync", empty)], ("sync", empty)
        case 3:
            second[:0] = [("arrive", Place(0, 1 + s + k, 0, 0)) for k in range(s)]
            fill[0], drain[2] = ("sync", empty), ("if", ("more", s), [("arrive", empty)])
    for _ in range(r.choice([0, 1, 1, 2, 3])):
        _change(r, r.choice([first, second]))
    return Rings(first, second, r.choice([1, 1, 2]))


def _change(r: random.Random, steps: Steps) -> None:
    """Leave out, swap or alter one step."""
    k = r.randrange(len(steps)) if steps else -1
    if k < 0:
        return
    kind, what, *inner = steps[k]
    if inner and inner[0] and r.random() < 0.8:
        _change(r, inner[0])
        return
    other = {"arrive": "sync", "sync": "arrive", "put": "get", "get": "put"}
    choice = r.randrange(4)
    if choice == 0 and len(steps) > 1:
        del steps[k]
    elif choice == 1 and k + 1 < len(steps):
        steps[k], steps[k + 1] = steps[k + 1], steps[k]
    elif inner:
        steps[k] = (kind, (what[0], max(0, what[1] + r.choice([-1, 1]))), *inner)
    elif choice == 2:
        steps[k] = (other[kind], what)
    else:
        field = r.choice(["start", "base", "period", "slope"])
        steps[k] = (kind, replace(what, **{field: max(0, getattr(what, field) + r.choice([-1, 1]))}))
