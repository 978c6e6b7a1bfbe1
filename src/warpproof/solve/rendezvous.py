"""Which arrivals at named barriers meet, in loops of any length; what that orders; and which store a load reads.

Two sides of a branch, each all of its warps, meet at barriers that wait for exactly these threads. The k-th arrival of
one side at a barrier meets the k-th of the other, in every execution, once it is shown that

* `ranks`: the guessed k numbers the arrivals of a side at a barrier 0, 1, 2 … in program order, and both sides have the
  same ones. In a finite sequence there is only one such numbering, so a wrong guess fails;
* `known`: before a side arrives at a barrier again, all its warps have waited at some barrier, at or after the arrival
  before, where the other side came after its own. So no warp arrives at a phase while the one before is open (as in
  Weft, PPoPP 2015), and by induction in causality order phases consist of the arrivals that are matched here;
* `alive`: there are no two waits, one of each side, each for an arrival that the other side has only behind its wait.
  With two sides that is every deadlock.

A step of one side is ordered before a step of the other when it is before (in program order) an arrival whose partner
is a wait before that step; steps of different threads of one side, when a wait of that side lies between. Longer chains
give no more, as a side's steps are in program order.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, pairwise, product
from typing import Any, Final

import islpy as isl
import numpy as np

from warpproof.algebra import DERIVED, evaluate, pred_polys, support
from warpproof.core import Unsupported
from warpproof.machine import Meeting, Source
from warpproof.solve.affine import Readback
from warpproof.solve.presburger import OutOfBudget
from warpproof.solve.ranks import fit
from warpproof.solve.relations import Problem
from warpproof.solve.streams import Streams
from warpproof.terms import BoolVector, Poly, const

_TURNS: Final = 6
_OPERATIONS: Final = 40_000_000
_SECONDS: Final = 20.0


@dataclass(frozen=True, slots=True)
class Finding:
    """One condition of a rendezvous: on which property it bears, whether it is shown, and what is wrong if not."""

    property: str
    text: str
    shown: bool
    hint: str = ""


class Rendezvous:
    """The findings on the meetings of one trace, and the sources of its loads."""

    def __init__(self, problem: Problem, meetings: Sequence[Meeting], sides: Sequence[BoolVector]) -> None:
        wide = Problem(problem.arena, problem.facts, operations=_OPERATIONS, seconds=_SECONDS)
        self.arena, self.meetings, self.sides = problem.arena, tuple(meetings), sides
        try:
            self.streams = Streams(wide, meetings)
        except OutOfBudget:
            raise Unsupported("integer sets", "isl used up its budget on the meetings of warps") from None
        self.call, self.all = self.streams.call, self.streams.all
        self.t = self.streams.times
        self.sources: dict[int, tuple[Source, ...]] = {}
        self._later: dict[tuple[int, int], Any] = {}

    def findings(self, valid: BoolVector) -> list[Finding]:
        """All conditions, as far as the earlier ones hold; `valid` are the cells that exist."""
        try:
            return list(self._findings(valid))
        except OutOfBudget:
            return [Finding("barriers", "who meets at named barriers", False, "isl used up its budget")]

    def _findings(self, valid: BoolVector) -> Iterator[Finding]:
        ids = self._ids()
        yield ids
        ranks = self._ranks() if ids.shown else None
        text = "the arrivals of both sides at each named barrier correspond"
        if ranks is None:
            if ids.shown:
                yield Finding("barriers", text, False, "they are not equally many, or in no regular order")
            return
        yield Finding("barriers", text, True)
        self._match(ranks)
        yield self._known(ranks)
        yield self._alive()
        yield self._inside(valid)
        yield self._ordered()
        self.sources = self._sources()
        unknown = any(e.kind == "get" and k not in self.sources for k, e in enumerate(self.meetings))
        yield Finding("memory", "shared memory is read where it has been written", not unknown,
                      "a load whose store is not known for all sizes" if unknown else "")

    # ------------------------------------------------------------------ barriers
    def _at(self, side: int, kinds: Sequence[int]) -> Any:
        one = " or ".join(f"kind = {k}" for k in kinds)
        return self.streams.only(self.all, f"side = {side} and ({one})")

    def _ids(self) -> Finding:
        text = "named barriers wait for the threads of both sides, and are not that of the CTA"
        threads = sum(int(s.sum()) for s in self.sides)
        wrong = [e for e in self.meetings if e.kind in ("arrive", "sync") and e.size != threads]
        if wrong:
            return Finding("barriers", text, False, f"{wrong[0].size} threads instead of {threads}")
        self.numbers = []
        places = self.call(self.streams.relation([], ["place"], self.streams.only(self.all, "kind <= 1")).range)
        for n in range(1, 16):
            if not self.call(places.intersect, self.streams.session.read_set(f"{{ [{n}] }}")).is_empty():
                self.numbers.append(n)
        inside = self.streams.session.read_set("{ [a] : 1 <= a <= 15 }")
        fine = self.call(places.is_subset, inside)
        return Finding("barriers", text, bool(fine), "" if fine else "a barrier number outside of 1 to 15")

    def _ranks(self) -> list[Any] | None:
        """For each side the map from (time, barrier) to (barrier, rank), checked; None if no guess is right."""
        samples = [s for at in self._launches() for s in [self._sample(at)] if s is not None]
        found = []
        for side in (0, 1):
            ranked = self._numbered(side, samples)
            if ranked is None or not self._counts(side, ranked):
                return None
            found.append(ranked)
        images = [self.call(r.range) for r in found]
        return found if self.call(images[0].is_equal, images[1]) else None

    def _numbered(self, side: int, samples: list[Any]) -> Any:
        """The guessed map of a side: a union over its arrivals and the numbers of the barriers."""
        streams, whole = self.streams, None
        basis = self._basis()
        for (k, e), n in product(enumerate(self.meetings), self.numbers):
            if e.side != side or e.kind not in ("arrive", "sync"):
                continue
            rows, values = [], []
            for at, points in samples:
                for turn, rank in points.get((k, n), ()):
                    rows.append([*turn, 1, *[evaluate(self.arena, p, at, 0) for _, p in basis]])
                    values.append(rank)
            here = streams.only(self.all, f"number = {k} and place = {n}")
            if self.call(here.is_empty):
                continue
            fitted = fit(rows, values) if rows else None
            if fitted is None:
                return None
            names = [f"t{2 * d + 1}" for d in range(len(e.loops))] + ["1"] + [name for name, _ in basis]
            total = " + ".join(f"{c}*{x}" for c, x in zip(fitted[0], names, strict=True) if c) or "0"
            to = streams.read_map(f"{{ [{', '.join(streams.columns)}] -> [{', '.join(f'{t}_' for t in self.t)}, r] : "
                                  f"{fitted[1]}*r = {total} and " + " and ".join(f"{t}_ = {t}" for t in self.t) + " }")
            part = self.call(to.intersect_domain, here)
            by = self.call(self.call(streams.relation(self.t, streams.columns, here).apply_range, part).coalesce)
            keyed = streams.read_map(f"{{ [{', '.join(self.t)}, r] -> [{n}, r] }}")
            one = self.call(by.apply_range, keyed)
            whole = one if whole is None else self.call(whole.union, one)
        return whole

    def _counts(self, side: int, ranked: Any) -> bool:
        """Every arrival has a rank ≥ 0; at one barrier later ones have higher ranks, and none is left out."""
        side_times = self.call(ranked.domain)
        if not self.call(self._times(side, (0, 1)).is_subset, side_times) or not self.call(ranked.is_single_valued):
            return False
        image = self.call(ranked.range)
        down = self.streams.read_map("{ [a, r] -> [a, r - 1] : r >= 1 }")
        if not self.call(image.is_subset, self.streams.session.read_set("{ [a, r] : r >= 0 }")):
            return False
        if not self.call(self.call(image.apply, down).is_subset, image):
            return False
        earlier = self.call(self.streams.lex(True).intersect_domain, side_times)
        earlier = self.call(earlier.intersect_range, side_times)
        pairs = self.call(self.call(self.call(ranked.reverse).apply_range, earlier).apply_range, ranked)
        wrong = self.streams.read_map("{ [a, r] -> [a, s] : s <= r }")
        return bool(self.call(self.call(pairs.intersect, wrong).is_empty))

    def _times(self, side: int, kinds: Sequence[int]) -> Any:
        return self.call(self.streams.relation([], self.t, self._at(side, kinds)).range)

    # ------------------------------------------------------------------ guesses from small launches
    def _launches(self) -> Iterator[dict[str, int]]:
        """Admitted parameters at which the loops of the arrivals have few iterations, in all combinations of two."""
        steps: dict[int, int] = {}
        for k, e in enumerate(self.meetings):
            if e.loops and e.kind in ("arrive", "sync"):
                steps.setdefault(e.loops[0], k)
        groups = [list(self._by_turns(k)) for k in steps.values()] or [[self.streams.sets.where()]]
        wanted = [p for g in groups for p in g]
        for a, b in combinations(groups, 2):
            wanted += [self.call(p.intersect, q) for p in a[:_TURNS] for q in b[:_TURNS]]
        seen: set[tuple[int, ...]] = set()
        for one in wanted:
            point = {} if self.call(one.is_empty) else self.streams.session.sample(one)
            at = {n: point.get(n, 0) for n in self.streams.sets.parameters}
            if (point or not at) and tuple(at.values()) not in seen:
                seen.add(tuple(at.values()))
                yield at

    def _by_turns(self, number: int) -> Iterator[Any]:
        """The parameters at which a step in a loop is taken 0, 1, 2 … times."""
        turns = self.call(self.streams.relation([], ["t1"], self.streams.only(self.all, f"number = {number}")).range)

        def upto(v: int) -> Any:
            return self.call(self.call(turns.intersect, self.streams.session.read_set(f"{{ [{v}] }}")).params)

        there = [upto(v) for v in range(2 * len(self.numbers) + _TURNS)]
        yield self.call(self.streams.sets.where().subtract, there[0])
        for now, more in pairwise(there):
            yield self.call(now.subtract, more)

    def _sample(self, at: dict[str, int]) -> tuple[dict[int, int], dict[tuple[int, int], list[Any]]] | None:
        """At one launch: for each arrival and barrier the iterations and ranks."""
        fixed = self.streams.session.read_set("{ : " + " and ".join(f"{k} = {v}" for k, v in at.items()) + " }"
                                              ) if at else self.streams.sets.where()
        few = self.call(self.streams.only(self.all, "kind <= 1").intersect_params, self.call(fixed.params))
        if not few.is_bounded():
            return None
        rows: list[list[int]] = []
        few.foreach_point(lambda p: rows.append([
            int(p.get_coordinate_val(isl.dim_type.set, c).to_python()) for c in range(len(self.streams.columns))]))
        n = len(self.t)
        counts: dict[tuple[int, int], int] = {}
        out: dict[tuple[int, int], list[Any]] = {}
        for row in sorted(rows):
            place, side, number = row[n], row[n + 3], row[n + 4]
            rank = counts.get((side, place), 0)
            counts[side, place] = rank + 1
            loops = len(self.meetings[number].loops)
            out.setdefault((number, place), []).append(([row[2 * d + 1] for d in range(loops)], rank))
        return {int(k[1:]): v for k, v in at.items() if k[1:].isdigit()}, out

    def _basis(self) -> list[tuple[str, Poly]]:
        """Parameters, and quotients of parameters in the conditions of arrivals: as isl text and polynomial."""
        names, known = self.streams.sets.names, set(self.streams.sets.parameters)
        loops = {i for e in self.meetings for i in e.loops}
        polys = [q for e in self.meetings if e.kind in ("arrive", "sync")
                 for q in (e.place, *(r for g in self.arena.conjuncts(e.path) for r in pred_polys(g)))]
        out: list[tuple[str, Poly]] = []
        used = sorted(support(self.arena, polys))
        for a in used:
            atom = self.arena.atoms[a] if a >= 0 else None
            if atom is None or atom.kind != "div" or atom.kind not in DERIVED:
                continue
            by, inner = atom.args[1].as_int(), atom.args[0]
            if by is None or not inner.uniform() or set(support(self.arena, (inner,))) & loops:
                continue
            if all(len(m) <= 1 and names.name(m[0]) in known for m in inner.terms if m):
                out.append((f"floor(({names.poly(inner)})/{by})", self.arena.variable(atom)))
        return out + [(f"p{a}", Poly({(a,): 1})) for a in used if f"p{a}" in known]

    # ------------------------------------------------------------------ order
    def _match(self, ranks: list[Any]) -> None:
        """Partners, and for each side the waits and what is ordered before what."""
        first = self.call(ranks[0].apply_range, self.call(ranks[1].reverse))
        self.partner = [first, self.call(first.reverse)]
        self.waits = [self._times(side, (1,)) for side in (0, 1)]
        before = self.streams.lex(True)
        self.across, self.among = [], []
        for side in (0, 1):
            heard = self.call(self.partner[side].intersect_range, self.waits[1 - side])
            self.across.append(self.call(self.call(before.apply_range, heard).apply_range, before))
            through = self.call(before.intersect_range, self.waits[side])
            self.among.append(self.call(through.apply_range, before))

    def _known(self, ranks: list[Any]) -> Finding:
        text = "no warp comes to a named barrier again before it must know that the phase before is over"
        following = self.streams.read_map("{ [a, r] -> [a, r + 1] }")
        upto, before = self.streams.lex(False), self.streams.lex(True)
        for side in (0, 1):
            again = self.call(self.call(ranks[side].apply_range, following).apply_range,
                              self.call(ranks[side].reverse))
            own = self.call(upto.intersect_range, self.waits[side])
            there = self.call(self.call(self.partner[side].apply_range, upto).apply_range, self.partner[1 - side])
            told = self.call(self.call(own.intersect, there).apply_range, before)
            if not self.call(again.is_subset, told):
                return Finding("barriers", text, False, "a second arrival may come in one phase")
        return Finding("barriers", text, True)

    def _alive(self) -> Finding:
        text = "the warps do not wait for each other in a circle"
        later = self.call(self.streams.lex(True).reverse)
        blocked = []
        for side in (0, 1):
            wait = self.call(self.partner[side].intersect_domain, self.waits[side])
            blocked.append(self.call(self.call(wait.apply_range, later).intersect_range, self.waits[1 - side]))
        circle = self.call(blocked[0].intersect, self.call(blocked[1].reverse))
        fine = self.call(circle.is_empty)
        return Finding("barriers", text, bool(fine), "" if fine else "two waits, each for what comes behind the other")

    # ------------------------------------------------------------------ shared memory
    def _inside(self, valid: BoolVector) -> Finding:
        text = "shared memory is accessed inside its allocation, in cells of one size"
        if len({e.size for e in self.meetings if e.kind in ("put", "get")}) > 1:
            return Finding("memory", text, False, "accesses of different sizes")
        edges = np.flatnonzero(np.diff(np.concatenate(([0], valid.astype(np.int8), [0])))).reshape(-1, 2)
        cells = " or ".join(f"{a} <= c < {b}" for a, b in edges.tolist()) or "1 = 0"
        used = self.call(self.streams.relation([], ["place"], self.streams.only(self.all, "kind >= 2")).range)
        fine = self.call(used.is_subset, self.streams.session.read_set(f"{{ [c] : {cells} }}"))
        return Finding("memory", text, bool(fine), "" if fine else "outside for some sizes")

    def _ordered(self) -> Finding:
        text = "shared-memory accesses of warps that meet at named barriers are ordered"
        s = self.streams
        stores = [s.relation(self.t, ["place"], self._at(side, (2,))) for side in (0, 1)]
        every = [s.relation(self.t, ["place"], self._at(side, (2, 3))) for side in (0, 1)]
        ordered = self.call(self.across[0].union, self.call(self.across[1].reverse))
        for first, second in ((stores[0], every[1]), (every[0], stores[1])):
            pairs = self.call(first.apply_range, self.call(second.reverse))
            if not self.call(pairs.is_subset, ordered):
                return Finding("races", text, False, "a store of one side and an access of the other are unordered")
        for side in (0, 1):
            if not self._apart(side):
                return Finding("races", text, False, "accesses of different threads of one side are unordered")
        return Finding("races", text, True)

    def _apart(self, side: int) -> bool:
        """Conflicting accesses of different threads of one side have a wait of that side between them."""
        s = self.streams
        who = [*self.t, "lane"]
        stores = s.relation(who, ["place"], self._at(side, (2,)))
        every = s.relation(who, ["place"], self._at(side, (2, 3)))
        pairs = self.call(stores.apply_range, self.call(every.reverse))
        names, others = [*self.t, "l"], [f"{t}_" for t in self.t]
        pairs = self.call(pairs.intersect, s.read_map(
            f"{{ [{', '.join(names)}] -> [{', '.join(others)}, m] : l != m }}"))
        drop = s.read_map(f"{{ [{', '.join(names)}] -> [{', '.join(self.t)}] }}")
        times = self.call(self.call(self.call(drop.reverse).apply_range, pairs).apply_range, drop)
        ordered = self.call(self.among[side].union, self.call(self.among[side].reverse))
        return bool(self.call(times.is_subset, ordered))

    # ------------------------------------------------------------------ values
    def _sources(self) -> dict[int, tuple[Source, ...]]:
        """For each load of which everything is known, the stores that it reads, each under its condition.

        The last store to the cell that is ordered before the load. All stores to a cell are by one side and ordered,
        and so are store and load (`findings`), so the latest in program order is the one that is read.
        """
        out: dict[int, tuple[Source, ...]] = {}
        for k, e in enumerate(self.meetings):
            if e.kind == "get":
                try:
                    found = self._of(k, e)
                except (OutOfBudget, Unsupported):
                    found = ()
                if found:
                    out[k] = found
        return out

    def _of(self, number: int, get: Meeting) -> tuple[Source, ...]:
        s, side = self.streams, get.side
        here = s.only(self.all, f"number = {number}")
        who = [*self.t, "lane"]
        read = s.relation(who, ["place"], here)
        cells = self.call(read.range)
        writers = [w for w in (0, 1) if not self.call(self.call(s.relation(
            [], ["place"], self._at(w, (2,))).range).is_disjoint, cells)]
        if len(writers) != 1:
            return ()
        (writer,) = writers
        stores = s.relation(who, ["place"], self._at(writer, (2,)))
        pairs = self.call(read.apply_range, self.call(stores.reverse))
        last = self.call(self.call(pairs.intersect, self._behind(side, writer)).lexmax)
        points = self.call(read.domain)
        if not self.call(points.is_subset, self.call(last.domain)):
            return ()
        return tuple(self._each(last, points, number, writer))

    def _behind(self, side: int, writer: int) -> Any:
        """The pairs of a step of one side and an earlier step of the side that writes, by time and lane."""
        if (side, writer) not in self._later:
            earlier = self.across[writer] if writer != side else self.streams.lex(True)
            drop = self.streams.read_map(f"{{ [{', '.join(self.t)}, l] -> [{', '.join(self.t)}] }}")
            puts = self.streams.relation([], self.t, self._at(writer, (2,)))
            gets = self.streams.relation([], self.t, self._at(side, (3,)))
            earlier = self.call(self.call(earlier.intersect_domain, self.call(puts.range)).intersect_range,
                                self.call(gets.range))
            later = self.call(self.call(earlier.reverse).coalesce)
            self._later[side, writer] = self.call(self.call(drop.apply_range, later).apply_range,
                                                  self.call(drop.reverse))
        return self._later[side, writer]

    def _each(self, last: Any, points: Any, number: int, writer: int) -> Iterator[Source]:
        """The stores that a load reads, those outside of loops first."""
        s = self.streams
        reader = Readback(self.arena, (*s.time(number, self.meetings[number]), const(np.arange(self.arena.lanes))))
        puts = [(k, e) for k, e in enumerate(self.meetings) if e.kind == "put" and e.side == writer]
        for k, put in sorted(puts, key=lambda x: len(x[1].loops)):
            store = s.relation([], [*self.t, "lane"], s.only(self.all, f"number = {k}"))
            part = self.call(last.intersect_range, self.call(store.range))
            if self.call(part.is_empty):
                continue
            for where, function in _pieces(self.call(part.as_pw_multi_aff)):
                out = [reader.poly(function.get_at(c)) for c in range(len(self.t) + 1)]
                if not out[-1].is_constant():
                    raise Unsupported("integer sets", "which lane has stored depends on a symbol")
                lanes = np.clip(out[-1].lanes(self.arena.lanes), 0, self.arena.lanes - 1)
                at = {i: out[2 * d + 1] for d, i in enumerate(put.loops)}
                condition = reader.pred(self.call(where.gist, points))
                yield Source(condition, k, at, lanes)


def _pieces(function: Any) -> list[tuple[Any, Any]]:
    """The domains and affine functions of a piecewise function."""
    out: list[tuple[Any, Any]] = []
    function.foreach_piece(lambda where, value: out.append((where, value)))
    return out
