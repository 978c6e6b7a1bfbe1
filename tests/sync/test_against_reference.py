"""The engine against the direct reading of the axioms, on small random tests and on the straight-line files."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from reference_checker import Reference

from warpproof.sync import MODELS, Litmus, find_race, load_litmus, outcomes, read_litmus
from warpproof.sync.printing import term_text
from warpproof.sync.program import Atomic, Branch, Fence, Goto, Instruction, Load, ThreadRegister

FILES = sorted((Path(__file__).parent / "litmus").glob("*.litmus"))
PLACES = st.sampled_from(["cta 0,gpu 0", "cta 0,gpu 0", "cta 1,gpu 0", "cta 0,gpu 1"])
SCOPE = st.sampled_from(["cta", "gpu", "gpu", "sys"])
LOCATION = st.sampled_from(["x", "x", "y"])


@st.composite
def instruction(draw: st.DrawFn, thread: int, index: int, proxies: bool) -> str:
    register, location, scope = f"r{thread}{index}", draw(LOCATION), draw(SCOPE)
    earlier = [f"r{thread}{i}" for i in range(index)]
    value = draw(st.sampled_from([str(draw(st.integers(1, 2))), *earlier]))
    kinds = ["ld", "ld", "st", "st", "atom", "red", "cas", "exch", "fence", "fence", "bar"]
    match draw(st.sampled_from([*kinds, *["proxy", "alias", "surface", "sfence"] * proxies])):
        case "ld":
            sem = draw(st.sampled_from(["weak", f"relaxed.{scope}", f"acquire.{scope}", "volatile"]))
            return f"ld.{sem} {register}, {location}"
        case "st":
            sem = draw(st.sampled_from(["weak", f"relaxed.{scope}", f"release.{scope}", "volatile"]))
            return f"st.{sem} {location}, {value}"
        case "atom":
            sem = draw(st.sampled_from(["relaxed", "acquire", "release", "acq_rel"]))
            return f"atom.{sem}.{scope}.add {register}, {location}, 1"
        case "red":
            return f"red.{draw(st.sampled_from(['relaxed', 'release']))}.{scope}.add {location}, 1"
        case "cas":
            return f"atom.acq_rel.{scope}.cas {register}, {location}, {draw(st.integers(0, 1))}, {value}"
        case "exch":
            return f"atom.acquire.{scope}.exch {register}, {location}, {value}"
        case "fence":
            return f"fence.{draw(st.sampled_from(['sc', 'acq_rel', 'sc']))}.{scope}"
        case "proxy":
            return draw(st.sampled_from([f"suld.weak {register}, s", "sust.weak s, 1", f"ld.weak {register}, z",
                                         "st.weak z, 2"]))
        case "alias":
            return "fence.proxy.alias"
        case "surface":
            return draw(st.sampled_from([f"sust.relaxed.{scope} s, 2", f"suld.relaxed.{scope} {register}, s"]))
        case "sfence":
            return "fence.proxy.surface"
    return "bar.cta.sync 1"


@st.composite
def litmus(draw: st.DrawFn, proxies: bool = False) -> Litmus:
    threads = draw(st.integers(2, 3))
    budget = 6
    columns = []
    for t in range(threads):
        length = draw(st.integers(1, min(4, budget - (threads - 1 - t))))
        budget -= length
        columns.append([draw(instruction(t, i, proxies)) for i in range(length)])
    init = "x=0; y=0;" + (" s @ surface aliases x; z @ generic aliases x;" if proxies else "")
    texts = [t for c in columns for t in c]
    # The reference guesses everything: keep what it has to guess small.
    assume(sum(t.startswith(("atom", "red", "st", "sust")) for t in texts) <= 4)
    assume(sum(t.startswith(("atom", "red", "ld", "suld")) for t in texts) <= 4)
    assume(sum(w in t for t in texts for w in (" x", ", x", " s", ", s", " z", ", z") if not t.startswith("ld")) <= 3)
    head = " | ".join(f"P{t}@{draw(PLACES)}" for t in range(threads))
    rows = [" | ".join(c[i] if i < len(c) else "" for c in columns) for i in range(max(map(len, columns)))]
    registers = sorted({f"P{t}:{w.rstrip(',')}" for t, c in enumerate(columns) for text in c
                        for w in text.split()[1:2] if w.startswith("r") and not text.startswith("st")})
    observed = "; ".join([*registers, "x", "y"])
    return read_litmus(f"PTX random\n{{\n{init}\n}}\n" + " ;\n".join([head, *rows]) + f" ;\nlocations [{observed}]\n"
                       "exists (0 == 0)\n")


def agree(test: Litmus, version: str) -> None:
    model = MODELS[version]
    ours, bounded = outcomes(test, model)
    assert not bounded
    theirs, race = Reference(test, model).outcomes()
    observed = {term_text(test, t) for t in test.observed}
    assert {tuple(sorted((term_text(test, t), v) for t, v in state)) for state in ours} == {
        tuple(p for p in state if p[0] in observed) for state in theirs}
    assert (find_race(test, model)[0] is not None) == race


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck))


@given(test=litmus(), version=st.sampled_from(["6.0", "7.5", "8.6"]))
@settings(QUICK, max_examples=150)
def test_random(test: Litmus, version: str) -> None:
    agree(test, version)


@given(test=litmus(proxies=True))
@settings(QUICK, max_examples=150)
def test_random_with_proxies(test: Litmus) -> None:
    agree(test, "8.6")


def straight(test: Litmus) -> bool:
    def size(i: Instruction) -> int:
        return 0 if isinstance(i.operation, Fence) else 1

    code = [i for t in test.threads for i in t.instructions]
    return (not any(isinstance(i.operation, Branch | Goto) for i in code) and sum(map(size, code)) <= 7
            and not any(word in i.text for i in code for word in
                        ("cluster", "warp", ".v2", "inc", "min", "max", "r7", ", 2 ", "bar.sync 0,", "f, 0", "f]")))


STRAIGHT = [f for f in FILES if straight(load_litmus(f)) and f.stem not in ("bar-deadlock", "filter")]


@pytest.mark.parametrize("file", STRAIGHT, ids=lambda p: p.stem)
def test_files(file: Path) -> None:
    test = load_litmus(file)
    names = sorted({term_text(test, t) for t in _registers(test)} | {v.name for v in test.variables if not v.alias_of})
    source = test.source.replace("\nexists", f"\nlocations [{'; '.join(names)}]\nexists").replace(
        "\nforall", f"\nlocations [{'; '.join(names)}]\nforall")
    agree(read_litmus(source), "8.6")


def _registers(test: Litmus) -> set[object]:
    return {ThreadRegister(t, name) for t, thread in enumerate(test.threads) for i in thread.instructions
            for name in (i.operation.destinations if isinstance(i.operation, Load) else
                         (i.operation.destination,) if isinstance(i.operation, Atomic) and i.operation.destination
                         else ())}
