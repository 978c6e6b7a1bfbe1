"""Witnesses, races, repairs, drawings and reports; speed on four threads."""

from __future__ import annotations

import json
import time
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from warpproof.core import InputError
from warpproof.sync import (
    MODELS,
    Litmus,
    apply,
    check,
    draw,
    evaluate,
    find_race,
    find_repair,
    load_litmus,
    model_named,
    read_litmus,
    result_dict,
    result_lines,
)

FOLDER = Path(__file__).parent / "litmus"


def grid(columns: list[list[str]], final: str, init: str = "x=0; y=0; f=0;") -> Litmus:
    head = " | ".join(f"P{i}@cta {i},gpu 0" for i in range(len(columns)))
    rows = [" | ".join(c[i] if i < len(c) else "" for c in columns) for i in range(max(map(len, columns)))]
    return read_litmus(f"PTX t\n{{ {init} }}\n" + " ;\n".join([head, *rows]) + f" ;\n{final}\n")


@pytest.mark.parametrize(("name", "after"), [
    ("mp-weak", ["st.release.gpu f, 1", "ld.acquire.gpu r0, f"]),
    ("mp-release-cta-far", ["st.release.gpu f, 1"]),
    ("mp-acquire-only", ["st.release.gpu f, 1"]),
    ("mp-fences-cta-far", ["fence.acq_rel.gpu", "ld.acquire.gpu r0, f"]),
    ("mp-fences-flag-cta", ["st.relaxed.gpu f, 1", "ld.relaxed.gpu r0, f"]),
    ("sb-relaxed", ["fence.sc.gpu", "fence.sc.gpu"]),
    ("lock-relaxed-unlock", ["st.release.gpu f, 0", "st.release.gpu f, 0"]),
    ("alias-no-fence", ["fence.proxy.alias"]),
    ("surface-no-fence", ["fence.proxy.surface"]),
    ("async-no-fence", ["fence.proxy.async"]),
    ("atom-add-mixed-scopes", ["atom.relaxed.gpu.add r0, x, 1"]),
])
def test_weakest_repair(name: str, after: list[str]) -> None:
    test = load_litmus(FOLDER / f"{name}.litmus")
    repair = find_repair(test)
    assert repair is not None
    assert [e.after for e in repair.edits] == after
    assert check(test).allowed
    assert not check(apply(test, repair.edits)).allowed
    for left_out in range(len(repair.edits)):
        some = [e for i, e in enumerate(repair.edits) if i != left_out]
        assert check(apply(test, some)).allowed


def test_no_repair_by_strengthening() -> None:
    assert find_repair(grid([["st.relaxed.gpu x, 1"], ["ld.relaxed.gpu r0, x"]], "exists (P1:r0 == 1)")) is None


@pytest.mark.parametrize("file", sorted(FOLDER.glob("*.litmus"))[::7], ids=lambda p: p.stem)
def test_reports_and_drawings(file: Path) -> None:
    test = load_litmus(file)
    result = evaluate(test, states=True)
    data = json.loads(json.dumps(result_dict(result)))
    assert data["allowed"] == (data["execution"] is not None)
    assert result_lines(result)[0].startswith(f"{test.name}: ")
    execution = result.answer.witness or (result.race.execution if result.race else None)
    if execution is not None:
        root = ET.fromstring(draw(test, execution, "<title> & more"))
        texts = {t.text for t in root.iter("{http://www.w3.org/2000/svg}text")}
        drawn = data["execution"] or data["race"]["execution"]
        assert {e["text"] for e in drawn["events"] if e["thread"]} | {"<title> & more"} <= texts
        assert not [a for e in root.iter() for a in e.attrib if "href" in a]


def test_witness_is_the_outcome() -> None:
    test = load_litmus(FOLDER / "mp-weak.litmus")
    witness = check(test).witness
    assert witness is not None
    reads = {str(e.address): witness.values[i] for i, e in enumerate(witness.frame.events) if e.kind.value == "R"}
    assert reads == {"f": 1, "x": 0}


def test_race_names_the_accesses() -> None:
    test = load_litmus(FOLDER / "release-no-bar.litmus")
    race, _ = find_race(test)
    assert race is not None
    texts = {test.threads[t].instructions[i].text for t, i in (race.first, race.second)}
    assert texts == {"st.weak x, 1", "ld.weak r1, x"}


def test_models_and_switches() -> None:
    assert model_named("7.5", ["causality-identity"]).identity
    for name, switches in (("9", []), ("8.6", ["nothing"])):
        with pytest.raises(InputError) as error:
            model_named(name, switches)
        assert error.value.code == "SYN209"


def test_a_thread_does_not_race_with_itself_in_any_version() -> None:
    test = grid([["st.weak x, 1", "ld.weak r0, x"]], "exists (P0:r0 == 0)")
    for model in MODELS.values():
        assert not check(test, model).allowed
        assert find_race(test, model)[0] is None


ADD = ["atom.acq_rel.gpu.add r0, x, 1", "atom.acq_rel.gpu.add r1, y, 1"]
FOUR = {
    "counters": grid([["atom.acq_rel.gpu.add r0, x, 1"]] * 4, "forall (x == 4)"),
    "two-counters": grid([*[ADD] * 3, ["ld.acquire.gpu r0, y", "ld.acquire.gpu r1, x"]],
                         "exists (P3:r0 == 3 /\\ P3:r1 != 3)"),
    "chain": grid([["st.weak x, 1", "st.release.gpu f, 1"],
                   *[["ld.acquire.gpu r0, f", "atom.acq_rel.gpu.add r2, f, 1"]] * 2,
                   ["ld.acquire.gpu r0, f", "ld.weak r1, x"]], "exists (P3:r0 == 3 /\\ P3:r1 == 0)"),
    "writers": grid([[f"st.relaxed.gpu x, {i}", f"st.relaxed.gpu y, {i}", "ld.relaxed.gpu r0, x"] for i in range(1, 5)],
                    "exists (P0:r0 == 4 /\\ P1:r0 == 3 /\\ P2:r0 == 2 /\\ P3:r0 == 1)"),
    "lock": grid([["L0:", "atom.acquire.gpu.cas r0, f, 0, 1", "bne r0, 0, L0", "ld.weak r1, x", "add r1, r1, 1",
                   "st.weak x, r1", "st.release.gpu f, 0"]] * 4, "forall (x == 4)"),
    "fences": grid([[f"st.relaxed.gpu x, {i}", "fence.sc.gpu", "ld.relaxed.gpu r0, y", f"st.relaxed.gpu y, {i}"]
                    for i in range(1, 5)], "exists (P0:r0 == 4 /\\ P1:r0 == 1 /\\ P2:r0 == 2 /\\ P3:r0 == 3)"),
}


@pytest.mark.parametrize("name", FOUR)
def test_four_threads_are_answered_in_seconds(name: str) -> None:
    began = time.process_time()
    answer = check(FOUR[name])
    assert time.process_time() - began < 5
    assert not answer.allowed
    assert not answer.bounded
