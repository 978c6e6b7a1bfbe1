"""A reference value taken apart into summands of one operation, at symbolic coordinates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from warpproof.algebra import is_data, support
from warpproof.equivalence.pieces import is_reduction
from warpproof.terms import Arena, Poly, Pred, Real, const

Scale = Callable[[Real], Real]


@dataclass(frozen=True, slots=True)
class Summand:
    """`body` for every element and all values of `variables` in `domain`, in which the coordinates `index` are free.

    `index` gives the atom of a coordinate by its axis. It leaves out axes of length 1, and coordinates in `determined`,
    which are data (`idx[k]`): the summand goes to that element only, and domain and body do not mention the coordinate.
    `limited` says that conditions remain under which there is a body; `inhabited` that every element has one.
    """

    index: Mapping[int, int]
    variables: tuple[int, ...]
    domain: Pred
    body: Real
    determined: Mapping[int, Poly] = field(default_factory=dict)
    limited: bool = False
    inhabited: bool = False


def coordinates(symbols: Sequence[Poly], shape: Sequence[Poly]) -> tuple[Poly, ...]:
    """Symbolic coordinates: 0 along axes of length 1."""
    return tuple(const(0) if extent.as_int() == 1 else o for o, extent in zip(symbols, shape, strict=True))


def summands(
    arena: Arena, op: str, index: Sequence[Poly], shape: Sequence[Poly], x: Real, *, determined: bool = True,
) -> list[Summand]:
    """The operands of x under `op`; folds give bound variables, conditions and factors go to the bodies.

    Unless `determined`, coordinates stay free where data say which they are: `idx[k] == j` is a condition of the body.
    """
    axes = {d: next(iter(o.atoms())) for d, o in enumerate(index) if o.terms}
    box = {d: arena.conj((arena.le(-index[d]), arena.le(index[d] - shape[d] + 1))) for d in axes}
    walker = _Walker(arena, op)
    walker.walk(x, arena.true, lambda y: y)
    return [_made(arena, op, axes, box, *found, determined) for found in walker.found]


def scaled_sums(arena: Arena, x: Real) -> list[tuple[Scale, Real]]:
    """(scale, y) with x = Σ scale(y), where no y is a multiple or fraction of a sum over lanes or iterations."""
    out: list[tuple[Scale, Real]] = []

    def walk(y: Real, scale: Scale) -> None:
        k = _factor(y) if y.op in ("mul", "div") else None
        if y.op == "add":
            for z in y.args:
                walk(z, scale)
        elif k is not None:
            walk(y.args[k], _scaled(arena, scale, y.args[1 - k], y.op == "div"))
        else:
            out.append((scale, y))

    walk(x, lambda y: y)
    return out


class _Walker:
    """Collects (variables, condition, body, inhabited)."""

    def __init__(self, arena: Arena, op: str) -> None:
        self.arena, self.op, self.unit = arena, op, arena.identity(op)
        self.found: list[tuple[tuple[int, ...], Pred, Real, bool]] = []

    def walk(self, x: Real, guard: Pred, scale: Scale, bound: tuple[int, ...] = (), full: bool = True) -> None:
        """Collect the operands of x where the guard holds, each scaled; `full`: the bound variables have values."""
        a = self.arena
        if x is self.unit:
            return
        match x.op:
            case self.op:
                for y in x.args:
                    self.walk(y, guard, scale, bound, full)
            case "sel" if x.pred is not None and (is_reduction(x, self.op) or self.unit in x.args):
                self.walk(x.args[0], a.conj((guard, x.pred)), scale, bound, False)
                self.walk(x.args[1], a.conj((guard, a.negate(x.pred))), scale, bound, False)
            case "mul" | "div" if self.op == "add" and (k := _factor(x)) is not None:
                self.walk(x.args[k], guard, _scaled(a, scale, x.args[1 - k], x.op == "div"), bound, full)
            case "fold" if x.data[0] == self.op:
                inhabited = full and not bound and x.pred is not None and a.inhabited(x.pred, x.data[1])
                _, atom, domain, body = a.open(x)
                self.walk(body, a.conj((guard, domain)), scale, (*bound, atom), inhabited)
            case _:
                self.found.append((bound, guard, scale(x), full))


def _factor(x: Real) -> int | None:
    """The position of the operand of a product or quotient that is a sum; only a dividend can be one."""
    sides = (0,) if x.op == "div" else (0, 1)
    return next((k for k in sides if is_reduction(x.args[k], "add") or (x.args[k].op == "add" and x.folds)), None)


def _scaled(arena: Arena, inner: Scale, factor: Real, divides: bool) -> Scale:
    """A body times, or divided by, a common factor."""
    return lambda x: inner(arena.div(x, factor) if divides else arena.mul(x, factor))


def _made(
    arena: Arena, op: str, axes: Mapping[int, int], box: Mapping[int, Pred], variables: tuple[int, ...],
    condition: Pred, body: Real, inhabited: bool, solves: bool,
) -> Summand:
    """Coordinates that data determine are replaced; other conditions on data go to the body.

    Where such a coordinate lies is not asked: an update that goes there is shown to be in bounds.
    """
    rest, determined = list(arena.conjuncts(condition)), {}
    for d, o in axes.items() if solves else ():
        for p in rest:
            image = _solved(arena, p, o)
            if image is not None:
                rest.remove(p)
                put = arena.substitution({o: image})
                rest, body = [put.pred(q) for q in rest], put.real(body)
                determined[d] = image
                break
    plain = [p for p in rest if not is_data(arena, p)]
    data = arena.conj(p for p in rest if is_data(arena, p))
    if data.op != "true":
        body = arena.sel(data, body, arena.identity(op))
    kept = {d: o for d, o in axes.items() if d not in determined}
    inside = (box[d] for d in kept)
    return Summand(kept, variables, arena.conj((*plain, *inside)), body, determined, bool(plain) or data.op != "true",
                   inhabited)


def _solved(arena: Arena, p: Pred, coordinate: int) -> Poly | None:
    """The loaded value that an equation says the coordinate is."""
    if p.op != "eq" or not is_data(arena, p):
        return None
    slope, rest = p.data.split(coordinate)
    k = slope.as_int()
    if k not in (1, -1) or coordinate in support(arena, (rest,)):
        return None
    image: Poly = rest * -k
    return image


Read = tuple[object, Poly]


def reads(arena: Arena, x: Real) -> list[Read]:
    """(what, index) of everything a term reads, outside folds and cross-lane reductions."""
    out: list[Read] = []
    seen: set[int] = set()
    stack = [x]
    while stack:
        y = stack.pop()
        if y.id in seen:
            continue
        seen.add(y.id)
        if y.op == "load":
            out += [y.data, *reads_of(arena, y.data[1])]
        elif y.op == "int":
            out += reads_of(arena, y.data)
        elif y.op not in ("fold", "red", "gather"):
            stack.extend(y.args)
            if y.pred is not None:
                out += _conditions(arena, y.pred, stack)
    return list(dict.fromkeys(out))


def _conditions(arena: Arena, p: Pred, stack: list[Real]) -> list[Read]:
    """What a condition reads; its reals go on the stack."""
    stack.extend(p.reals)
    out = reads_of(arena, p.data) if p.op in ("le", "eq", "ne") else []
    return out + [r for q in p.args for r in _conditions(arena, q, stack)]


def reads_of(arena: Arena, p: Poly) -> list[Read]:
    """(what, index) of the loaded integers in a polynomial."""
    out: list[Read] = []
    for a in sorted(p.atoms()):
        atom = arena.atoms[a]
        if atom.kind == "elem":
            out.append(((atom.name, atom.tag), atom.args[0]))
        for q in atom.args:
            out += reads_of(arena, q)
    return out
