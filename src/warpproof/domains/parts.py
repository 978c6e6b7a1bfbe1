"""Floats in memory whose cells are narrower: taken apart when stored, put together when read whole."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from warpproof.core import Unsupported
from warpproof.domains.values import Choice, Float, Pack, Part, Undef, Value
from warpproof.terms import Pred

if TYPE_CHECKING:
    from warpproof.domains.reals import Reals


def taken_apart(dom: Reals, width: int, value: Value, count: int) -> tuple[Value, ...]:
    """What narrower cells of memory hold: as `unpack`, but a float may be taken apart."""
    match value:
        case Float() if count > 1:
            return tuple(Part(width // count, value, k) for k in range(count))
        case Pack(_, have) if count % len(have) == 0:
            each = count // len(have)
            return tuple(q for p in have for q in taken_apart(dom, p.width, p, each))
        case Choice(_, pred, a, b):
            pairs = zip(taken_apart(dom, width, a, count), taken_apart(dom, width, b, count), strict=True)
            return tuple(dom.merge(pred, x, y) for x, y in pairs)
    return dom.unpack(width, value, count)


def joined(dom: Reals, width: int, cells: Sequence[Value]) -> Value:
    """The value of `width` bits that lies in consecutive cells; a float has to be read whole."""
    out: list[Value] = []
    rest = list(cells)
    holes = [v for v in rest if isinstance(v, Undef)]
    if len(holes) == len(rest):
        return Undef(width, holes[0].why)
    while rest:
        first = rest[0]
        if not isinstance(first, Part):
            out.append(rest.pop(0))
            continue
        count = first.whole.width // first.width
        if rest[:count] != [replace(first, place=k) for k in range(count)]:
            raise Unsupported("shared memory", "part of a float is read")
        out.append(first.whole)
        del rest[:count]
    if len(out) == 1:
        return out[0]
    if len({v.width for v in out}) > 1:
        raise Unsupported("shared memory", "values of different widths are read as one")
    return dom.pack(width, out)


def merged_parts(dom: Reals, p: Pred, a: Value, b: Value) -> Value:
    """p ? a : b where one side at least is part of a float."""
    place, wide = next((v.place, v.whole.width) for v in (a, b) if isinstance(v, Part))
    whole = [Undef(wide, v.why) if isinstance(v, Undef) else v.whole if isinstance(v, Part) and v.place == place
             and v.whole.width == wide else None for v in (a, b)]
    first, second = whole
    if first is None or second is None:
        return Choice(a.width, p, a, b)
    return Part(a.width, dom.merge(p, first, second), place)
