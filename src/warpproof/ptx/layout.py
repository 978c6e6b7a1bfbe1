"""Where parameters and variables lie: byte offsets that honour alignment."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from warpproof.ptx.kernel import Parameter
from warpproof.ptx.syntax import RegisterDecl, Variable


def align_up(offset: int, align: int) -> int:
    """The smallest multiple of `align` that is not below `offset`."""
    return -(-offset // align) * align


def place(variables: Iterable[Variable], names: Iterable[str]) -> tuple[dict[str, int], int]:
    """The offset of each variable, in order, each aligned; and the bytes used."""
    layout: dict[str, int] = {}
    end = 0
    for name, variable in zip(names, variables, strict=True):
        layout[name] = align_up(end, variable.align)
        end = layout[name] + variable.size
    return layout, end


@dataclass(frozen=True, slots=True)
class Memory:
    """All variables of a kernel and its callees, with the layout of each space."""

    variables: dict[str, Variable]
    shared: dict[str, int]
    shared_size: int
    dynamic: tuple[str, ...]
    const: dict[str, int]
    global_: dict[str, int]
    local: dict[str, int]


def memory_of(variables: dict[str, Variable]) -> Memory:
    """The layout of every space; local variables of different functions do not share bytes."""
    spaces: dict[str, dict[str, int]] = {}
    for space in ("const", "global", "local"):
        chosen = {n: v for n, v in variables.items() if v.space == space}
        spaces[space], _ = place(chosen.values(), chosen)
    return Memory(variables, *_shared(variables), spaces["const"], spaces["global"], spaces["local"])


def _shared(variables: dict[str, Variable]) -> tuple[dict[str, int], int, tuple[str, ...]]:
    """Offsets of shared variables, static bytes, and the dynamic ones, which all start behind the static.

    An extern array with a size is static: the assembler allocates it like any other.
    """
    shared = {n: v for n, v in variables.items() if v.space == "shared"}
    dynamic = tuple(n for n, v in shared.items() if v.extern and v.size == 0)
    static = [n for n in shared if n not in dynamic]
    layout, size = place((shared[n] for n in static), static)
    start = align_up(size, max((shared[n].align for n in dynamic), default=1))
    return layout | dict.fromkeys(dynamic, start), size, dynamic


def parameters(declared: Iterable[Variable | RegisterDecl]) -> tuple[Parameter, ...]:
    """The parameters in order with their offsets; register parameters have offset 0 and take no space."""
    out: list[Parameter] = []
    end = 0
    for item in declared:
        if isinstance(item, RegisterDecl):
            out.append(Parameter(item.names[0][0], item.type, 0, 1, 0, "reg"))
            continue
        offset = align_up(end, item.align)
        end = offset + item.size
        out.append(Parameter(item.name, item.type, item.size, item.align, offset, "param", item.count, item.pointer))
    return tuple(out)
