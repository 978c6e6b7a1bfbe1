"""Waiting loops whose first turn stands in front of them, as compilers leave `while (load(p) != v) pause();`.

    ld.acquire r1, [p]; if r1 = v goto OUT; L: pause; ld.acquire r2, [p]; if r2 != v goto L; OUT:

Both loads read the same place in the same way and end the wait by the same condition. Loads that do not end it tell
nothing, so every execution is one of the loop alone, in which the load that ends the wait is the loop's. A loop with a
fence is none: whoever ends the wait in the first turn has not executed it. What the two turns leave in registers is not
told apart, and counts as lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from warpproof.core import Unsupported
from warpproof.machine.uses import writes
from warpproof.terms import Pred

if TYPE_CHECKING:
    from warpproof.machine.crossing import Crossing
    from warpproof.machine.trace import SyncEvent

_AFTER: Final = frozenset({"setp", "mov", "and", "or", "xor", "not", "cvt", "selp", "add", "sub", "shl", "shr", "bra"})


def loop_behind(crossing: Crossing, number: int) -> int | None:
    """The header of the waiting loop that the block is the first turn of."""
    m = crossing.machine
    successors = m.graph.successors[number]
    if len(set(successors)) != 2 or number in m.graph.loops or m.roles.running is not None:
        return None
    header = next((s for s in successors if s in m.graph.loops and m.graph.loops[s].body == {s}), None)
    if header is None or {o for _, o in m.graph.loops[header].exits} != set(successors) - {header}:
        return None
    block = m.graph.blocks[number]
    body = m.kernel.code[block.start : block.stop]
    strong = [k for k, x in enumerate(body) if crossing.crosses(x)]
    single = len(strong) == 1 and all(x.name in _AFTER for x in body[strong[0] + 1 :])
    return header if single and crossing.waits(m.graph.loops[header]) else None


def wait(crossing: Crossing, number: int, header: int) -> int:
    """Run the block and the loop as one waiting loop; the block where control goes on."""
    m = crossing.machine
    with crossing.polling() as polled:
        taken: Any = m.block(number, terminator=False)
    out = next(s for s in m.graph.successors[number] if s != header)
    until = taken if m.graph.successors[number][0] == out else m.arena.negate(taken)
    if len(polled) != 1 or polled[0].kind != "poll":
        raise Unsupported("loop", "what comes before a waiting loop is not its first turn")
    first = polled[0]
    m.trace.sync[:] = [e for e in m.trace.sync if e is not first]
    events = len(m.trace.sync)
    follows = m.loops.run(header)
    if len(m.trace.sync) != events + 1:
        raise Unsupported("loop", "a waiting loop does more in each turn than its first turn in front of it")
    _same(crossing, first, until, m.trace.sync[-1])
    before, turn = (m.kernel.code[b.start : b.stop] for b in (m.graph.blocks[number], m.graph.blocks[header]))
    load = next(k for k, x in enumerate(before) if crossing.crosses(x))
    for x in (*before[load:], *turn):
        for name in writes(x):
            m.registers.pop(name, None)
    return follows


def _same(crossing: Crossing, first: SyncEvent, until: Pred, last: SyncEvent) -> None:
    """Raise `Unsupported` unless both turns end the wait by the same load and condition."""
    ((atom,),) = first.value.terms
    alike = (first.buffer, first.index, first.semantics, first.scope) == (
        last.buffer, last.index, last.semantics, last.scope)
    ends = crossing.arena.substitute_pred(until, {atom: last.value}) if last.value is not None else None
    if last.kind not in ("poll", "turn") or not alike or ends is not last.until:
        raise Unsupported("loop", "what comes before a waiting loop is not its first turn")
