import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from warpproof.core import Unsupported
from warpproof.machine.flow import Block, Graph, analyse, control_flow
from warpproof.ptx import parse, resolve

HEAD = ".version 8.8 .target sm_90 .address_size 64 .entry k() { .reg .pred %p<9>; .reg .b32 %r<9>; "


def flow(text: str) -> Graph:
    return control_flow(resolve(parse(HEAD + text + " }")))


def graph(edges: list[tuple[int, ...]], exits: list[int], guarded: tuple[int, ...] = ()) -> Graph:
    return analyse([Block(i, i + 1) for i in range(len(edges))], edges, exits, guarded)


def reachable(edges: list[tuple[int, ...]], start: int, without: int | None = None) -> set[int]:
    """The nodes on paths from `start` that do not pass `without`."""
    seen: set[int] = set()
    stack = [start] if start != without else []
    while stack:
        node = stack.pop()
        if node not in seen:
            seen.add(node)
            stack += [s for s in edges[node] if s != without]
    return seen


def dominator_sets(edges: list[tuple[int, ...]], root: int) -> dict[int, set[int]]:
    """By definition: `d` dominates `n` iff `n` cannot be reached without `d`."""
    every = reachable(edges, root)
    return {n: {d for d in every if d == n or n not in reachable(edges, root, d)} for n in every}


def immediate(sets: dict[int, set[int]], node: int) -> int | None:
    """The strict dominator that all other strict dominators dominate."""
    strict = sets[node] - {node}
    return next((d for d in strict if all(o in sets[d] for o in strict)), None)


@st.composite
def edge_lists(draw: st.DrawFn) -> list[tuple[int, ...]]:
    count = draw(st.integers(1, 9))
    return [tuple(draw(st.lists(st.integers(0, count - 1), max_size=3, unique=True))) for _ in range(count)]


def irreducible(edges: list[tuple[int, ...]]) -> bool:
    """By definition: a cycle is left when every edge to a dominator of its source is taken away."""
    sets = dominator_sets(edges, 0)
    forward = [tuple(s for s in e if n in sets and s not in sets[n]) for n, e in enumerate(edges)]
    return any(n in reachable(forward, s) for n in sets for s in forward[n])


@settings(max_examples=400, deadline=None)
@given(edge_lists(), st.data())
def test_random_graphs_agree_with_the_definitions(edges: list[tuple[int, ...]], data: st.DataObject) -> None:
    exits = [n for n, e in enumerate(edges) if not e]
    guarded = tuple(data.draw(st.lists(st.integers(0, len(edges) - 1), max_size=2, unique=True)))
    if irreducible(edges):
        with pytest.raises(Unsupported):
            graph(edges, exits, guarded)
        return
    made = graph(edges, exits, guarded)
    sets = dominator_sets(edges, 0)
    assert set(made.order) == set(sets)
    for node in range(len(edges)):
        assert made.idom[node] == (immediate(sets, node) if node in sets else None)
        assert set(made.predecessors[node]) == {p for p in sets if node in edges[p]}
        for other in range(len(edges)):
            assert made.dominates(other, node) == (node in sets and other in sets[node])
    check_postdominators(made, edges, exits, set(sets))
    check_loops(made, edges, sets)


def check_postdominators(made: Graph, edges: list[tuple[int, ...]], exits: list[int], live: set[int]) -> None:
    end = len(edges)
    assert set(exits) & live <= set(made.exits)
    backward = [tuple(p for p in live if n in edges[p]) for n in range(end)] + [made.exits]
    sets = dominator_sets(backward, end)
    assert live <= set(sets)
    for node in range(end):
        expected = immediate(sets, node) if node in live else None
        assert made.ipdom[node] == (None if expected == end else expected)
    proper = dominator_sets([*backward[:end], tuple(e for e in exits if e in live)], end)
    for extra in set(made.exits) - set(exits):
        assert extra not in proper, "only blocks without a way out get an edge to the exit"


def check_loops(made: Graph, edges: list[tuple[int, ...]], sets: dict[int, set[int]]) -> None:
    latches: dict[int, set[int]] = {}
    for node in sets:
        for succ in edges[node]:
            if succ in sets[node]:
                latches.setdefault(succ, set()).add(node)
    assert set(made.loops) == set(latches)
    for header, loop in made.loops.items():
        backward = [tuple(p for p in sets if n in edges[p]) for n in range(len(edges))]
        body = {header}.union(*(reachable(backward, latch, header) for latch in latches[header]))
        assert (set(loop.latches), loop.body) == (latches[header], body)
        assert set(loop.exits) == {(b, s) for b in body for s in edges[b] if s not in body}
        around = [o for h, o in made.loops.items() if h != header and header in o.body]
        assert loop.depth == len(around) + 1
        assert loop.parent == (min(around, key=lambda o: len(o.body)).header if around else None)
        assert all(body <= o.body for o in around)


def test_a_diamond() -> None:
    made = flow("@%p1 bra ELSE; mov.u32 %r1, 1; bra JOIN; ELSE: mov.u32 %r1, 2; JOIN: mov.u32 %r2, %r1; ret;")
    assert made.blocks == (Block(0, 1), Block(1, 3), Block(3, 4), Block(4, 6))
    assert made.successors == ((2, 1), (3,), (3,), ())
    assert made.idom == (None, 0, 0, 0)
    assert made.ipdom == (3, 3, 3, None)
    assert made.exits == (3,)
    assert [made.block_of(i) for i in range(6)] == [0, 1, 1, 2, 3, 3]


def test_nested_loops() -> None:
    made = flow("A: mov.u32 %r1, 0; B: add.u32 %r1, %r1, 1; @%p1 bra B; @%p2 bra A; ret;")
    outer, inner = made.loops[0], made.loops[1]
    assert (outer.body, outer.latches, outer.exits, outer.parent, outer.depth) == (
        frozenset({0, 1, 2}), (2,), ((2, 3),), None, 1)
    assert (inner.body, inner.latches, inner.exits, inner.parent, inner.depth) == (
        frozenset({1}), (1,), ((1, 2),), 0, 2)


def test_a_guarded_exit_falls_through() -> None:
    made = flow("@%p1 ret; mov.u32 %r1, 1; @%p2 trap; ret;")
    assert made.blocks == (Block(0, 1), Block(1, 3), Block(3, 4))
    assert made.successors == ((1,), (2,), ())
    assert (made.exits, made.ipdom) == ((2,), (1, 2, None))


def test_running_past_the_end_is_an_exit() -> None:
    assert flow("mov.u32 %r1, 1;").exits == (0,)
    made = flow("@%p1 bra END; mov.u32 %r1, 1; END:")
    assert (made.successors, made.exits, made.ipdom) == (((1,), ()), (0, 1), (None, None))
    assert flow("").blocks == (Block(0, 0),)


def test_calls_and_barriers_stay_inside_a_block() -> None:
    head = ".version 8.8 .target sm_90 .address_size 64 "
    text = head + ".func f() { ret; } .entry k() { call f; bar.sync 0; call f; ret; }"
    assert control_flow(resolve(parse(text))).blocks == (Block(0, 4),)


def test_branch_tables() -> None:
    made = flow("ts: .branchtargets A, B, A; brx.idx %r1, ts; A: ret; B: ret;")
    assert made.successors[0] == (1, 2)


def test_unreachable_code_has_no_say() -> None:
    made = flow("bra L; mov.u32 %r1, 0; bra M; L: mov.u32 %r1, 1; M: ret;")
    assert made.idom == (None, None, 0, 2)
    assert made.predecessors[3] == (2,)
    assert 1 not in made.order


def test_endless_loops_have_postdominators() -> None:
    made = flow("A: @%p1 bra B; mov.u32 %r1, 0; bra J; B: mov.u32 %r1, 1; J: @%p2 exit; bra A;")
    assert made.ipdom[0] == made.ipdom[1] == made.ipdom[2] == 3
    assert made.exits == (3,)


def test_loops_with_two_entries_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="irreducible"):
        flow("@%p1 bra B; A: mov.u32 %r1, 0; B: @%p2 bra A; ret;")


def test_indirect_jumps_are_unsupported() -> None:
    with pytest.raises(Unsupported, match="target"):
        flow("bra %r1;")


@pytest.mark.parametrize("shape", ["chain", "exits", "loops", "diamonds", "ladder"])
def test_large_graphs_are_quick(shape: str) -> None:
    n = 10_000
    chain: list[tuple[int, ...]] = [(i + 1,) for i in range(n - 1)] + [()]
    edges: dict[str, list[tuple[int, ...]]] = {
        "chain": chain,
        "exits": [(i + 1, n - 1) for i in range(n - 2)] + [(n - 1,), ()],
        "loops": [(i + 1, i) for i in range(n - 1)] + [()],
        "diamonds": [((i + 1, i + 2), (i + 2,), (i + 1,))[i % 3] for i in range(n - 2)] + [(n - 1,), ()],
        "ladder": [(i + 1, min(n - 1, i + 100)) for i in range(n - 1)] + [()],
    }
    start = time.process_time()
    graph(edges[shape], [n - 1])
    assert time.process_time() - start < 2.0


def test_deep_nests_are_refused_not_stored() -> None:
    n = 6000
    inward: list[tuple[int, ...]] = [(i + 1,) for i in range(n)]
    edges = [*inward, *((i + 1, 2 * n - 1 - i) for i in range(n, 2 * n)), ()]
    with pytest.raises(Unsupported, match="nested"):
        graph(edges, [2 * n])
