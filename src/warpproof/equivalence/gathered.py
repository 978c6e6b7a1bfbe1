"""A sum that the last CTA forms of what every CTA has stored: as if each CTA had added its part itself.

The last CTA's value is shown to be the sum over all CTAs of an opaque element each; then the parts are compared with
the reference like atomic updates of an output that starts at zero.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from warpproof.algebra import support
from warpproof.core import Claim, Status, Unsupported
from warpproof.domains import Float
from warpproof.equivalence.contributions import Contributions
from warpproof.equivalence.outputs import Output, OutputChecker
from warpproof.equivalence.rewriting import Rewriter
from warpproof.machine import OPAQUE, Access, Handover, Trace
from warpproof.terms import Access as Leaf
from warpproof.terms import Arena, Poly, Pred, Real


@dataclass(frozen=True, slots=True)
class _Part:
    """The store that leaves a CTA's part, its lane, and the block index that names the CTA."""

    store: Access
    lane: int
    block: int


class Gathered:
    """Compares an output that the last CTA stores with the reference; `trace` is a run with opaque hand-overs."""

    def __init__(self, checker: OutputChecker, trace: Trace, blocks: dict[int, Poly]) -> None:
        self.checker, self.arena, self.facts, self.trace = checker, checker.arena, checker.facts, trace
        self.blocks = blocks  # block indices of more than one value, with their number of values

    def check(self, output: Output, stores: Sequence[Access]) -> list[Claim] | None:
        """Claims on an output stored once by the last CTA, or None when it is no such sum."""
        handed = [h for h in self.trace.handovers if h.given.kind == "ticket"]
        if len(stores) != 1 or not handed or not output.type.floating:
            return None
        try:
            part = self._part(handed)
            final = next(a for a in self.trace.accesses if a.kind == "store" and a.buffer == output.name)
            if part is None or not self._is_sum(final, part):
                return None
        except (Unsupported, StopIteration):
            return None
        added = replace(part.store, kind="atomic", buffer=output.name, index=final.index, op="add")
        zero = replace(output, initial=lambda index: self.arena.zero)
        claims = Contributions(self.checker).check(zero, [added])
        where = self.checker.where(final.instruction)
        text = f"{output.name} gets the sum of what all CTAs have stored in {part.store.buffer}"
        return [Claim("equivalence", text, Status.SHOWN, "normal-form", where), *claims]

    def _part(self, handed: Sequence[Handover]) -> _Part | None:
        stores = {h.store.instruction: h.store for h in handed}
        if len(stores) != 1 or len(self.blocks) != 1:
            return None
        (store,) = stores.values()
        (block,) = self.blocks
        mask = self.facts.mask(store.path)
        lanes = [] if mask is None else np.flatnonzero(mask).tolist()
        return _Part(store, lanes[0], block) if len(lanes) == 1 else None

    def _is_sum(self, final: Access, part: _Part) -> bool:
        """The last CTA's value is the sum over all CTAs of the element that each has stored."""
        arena = self.arena
        value = final.value
        if not isinstance(value, Float) or set(self.blocks) & set(support(arena, (final.index,))):
            return False
        total = self._total(part)
        rewriter = Rewriter(arena, self.checker.matcher, self.facts, total)
        mine = rewriter.rewrite(value.node, final.path)
        return self.checker.normal.equal(mine, total, final.path, self.facts.implied)

    def _total(self, part: _Part) -> Real:
        arena: Arena = self.arena
        atom = arena.fresh("index", "cta", 0, None)
        j = arena.variable(atom)
        here = arena.permutation_map(np.full(arena.lanes, part.lane))
        at: Poly = arena.substitution({part.block: j}).poly(here.poly(part.store.index))
        domain: Pred = arena.conj((arena.le(-j), arena.le(j - self.blocks[part.block] + 1)))
        return arena.fold("add", atom.id, domain, arena.load(Leaf(part.store.buffer, OPAQUE), at))
