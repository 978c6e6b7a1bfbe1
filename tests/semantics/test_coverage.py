"""The coverage table, and the corpus: every instruction in it is PTX to the table, and nearly all have a rule."""

from __future__ import annotations

from pathlib import Path

from warpproof import ptx
from warpproof.core import Unsupported
from warpproof.report.coverage import count_opcodes, render, texts
from warpproof.semantics import bind, coverage, covered_share, table

ROOT = Path(__file__).parents[2]
CORPUS = ROOT / "tests" / "corpus"


def test_counts_go_to_the_form_that_the_opcode_makes() -> None:
    rows = coverage({"fma.rn.f32": 5, "tcgen05.wait::ld.sync.aligned": 2, "bra.uni": 1, "ld.shared::cluster.b32": 3})
    counted = {row.form.split(" ")[0]: (row.count, row.why) for row in rows if row.count}
    assert counted["fma.rnd{.ftz}{.sat}.f32"] == (5, "")
    assert counted["bra{.uni}"] == (1, "")
    assert counted["tcgen05.*"] == (2, "tensor memory is not modelled")
    assert sum(row.count for row in rows) == 11
    assert covered_share(rows) == 6 / 11


def test_an_unknown_opcode_has_a_row_of_its_own() -> None:
    rows = coverage({"frob.s32": 4})
    assert [(r.form, r.family, r.why) for r in rows if r.count] == [("frob.s32", "unknown", "no form of the table")]


def test_every_form_of_the_table_has_a_row() -> None:
    listed = {row.form.removesuffix(".*") for row in coverage({})}
    assert listed == {row.form.text for row in table()}
    assert covered_share(coverage({})) == 1.0


def test_the_page_in_the_documentation_is_up_to_date() -> None:
    counts, files = count_opcodes(texts([CORPUS]))
    assert files > 200
    rows = coverage(counts)
    assert covered_share(rows) > 0.99
    assert (ROOT / "docs" / "coverage.md").read_text() == render(rows, files)


def test_every_instruction_of_the_corpus_binds_or_says_why() -> None:
    """No `InputError`: ptxas takes these files."""
    bound = missed = 0
    for name, text in texts([CORPUS]):
        module = ptx.parse(text, name)
        for entry in module.entries():
            for instruction in ptx.resolve(module, entry.name).code:
                try:
                    bind(instruction)
                    bound += 1
                except Unsupported:
                    missed += 1
    assert bound > 80_000
    assert missed < bound / 100
