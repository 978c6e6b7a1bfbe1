"""What tells two terms apart, in words: the elements that only one of them reads, else where they part."""

from __future__ import annotations

from collections.abc import Iterator

from warpproof.reference import describe
from warpproof.terms import Arena, Poly, Real

_SHOWN = 2
_WIDTH = 160
_KINDS = {"int": "the integer", "sel": "a choice by"}
_NAMES = {"fold": "reduction", "red": "reduction over lanes", "gather": "exchange between lanes", "sel": "choice"}


def difference(arena: Arena, mine: Real, theirs: Real) -> str:
    """A hint at why the kernel's value was not found equal to the reference's."""
    here, there = _reads(mine), _reads(theirs)
    only_here = [x for x in here if x not in there]
    only_there = [x for x in there if x not in here]
    if only_here or only_there:
        parts = [f"only the {who} reads {_listed(arena, some)}"
                 for who, some in (("kernel", only_here), ("reference", only_there)) if some]
        return "the normal forms differ: " + ", ".join(parts)
    for kind in ("int", "sel"):
        ours, others = _pieces(arena, mine, kind), _pieces(arena, theirs, kind)
        told = [f"only the {who} has {_KINDS[kind]} {_cut(min(some, key=len))}"
                for who, some in (("kernel", ours - others), ("reference", others - ours)) if some]
        if told:
            return "the normal forms differ: " + ", ".join(told)
    own, other = _operations(mine), _operations(theirs)
    extra = [f"the {who} has {_NAMES.get(op, op)} where the other has none"
             for who, ops, rest in (("kernel", own, other), ("reference", other, own))
             for op in sorted(ops - rest) if op not in ("add", "mul", "const", "int")]
    return "the normal forms differ" + (": " + extra[0] if extra else "")


def _pieces(arena: Arena, x: Real, kind: str) -> set[str]:
    """The integers of a term, or the conditions of its choices, in words."""
    found = [y.data if kind == "int" else y.pred for y in _nodes(x) if y.op == kind]
    return {describe(arena, p) for p in found if p is not None}


def _reads(x: Real) -> dict[Real, None]:
    return {y: None for y in _nodes(x) if y.op == "load"}


def _operations(x: Real) -> set[str]:
    return {y.op for y in _nodes(x)}


def _nodes(x: Real) -> Iterator[Real]:
    seen, stack = {x.id}, [x]
    while stack:
        y = stack.pop()
        yield y
        for z in y.args:
            if z.id not in seen:
                seen.add(z.id)
                stack.append(z)


def _listed(arena: Arena, loads: list[Real]) -> str:
    out = []
    for x in loads[:_SHOWN]:
        access, index = x.data
        out.append(f"{access.buffer}[{_shown(arena, index)}]")
    more = len(loads) - len(out)
    return " and ".join(out) + (f" and {more} more" if more else "")


def _shown(arena: Arena, index: Poly) -> str:
    return _cut(describe(arena, index))


def _cut(text: str) -> str:
    return text if len(text) <= _WIDTH else text[:_WIDTH] + "…"
