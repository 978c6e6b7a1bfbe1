"""The opcode table: every row has a rule, a control kind or a reason; every rule runs on every kind of its forms."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from instances import instances
from rule_runner import Runner

from warpproof.core import Unsupported
from warpproof.isa import scalar
from warpproof.ptx import syntax
from warpproof.semantics import Bound, Row, Slot, bind, candidates, reason_without_rule, table

ROWS = list(table())
RULES = [row for row in ROWS if row.rule is not None]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.form.text)
def test_each_row_is_exactly_one_thing(row: Row) -> None:
    assert [row.rule is not None, bool(row.control), bool(row.why)].count(True) == 1
    assert row.manual
    assert row.family


@pytest.mark.parametrize("row", RULES, ids=lambda row: row.form.text)
def test_every_rule_runs_and_answers_in_the_shape_of_its_slots(row: Row) -> None:
    ran = 0
    for instruction in instances(row.form):
        found = next(iter(candidates(instruction.opcode)), None)
        assert found is not None, instruction.opcode
        if reason_without_rule(*found):
            assert "shared::cluster" in instruction.opcode
            continue
        bound = bind(instruction)
        runner = Runner()
        check_results(instruction, bound, runner.run(bound, runner.sources(instruction, bound)))
        ran += 1
    assert ran > 0


def check_results(instruction: syntax.Instruction, bound: Bound, results: tuple[object, ...]) -> None:
    slots = [(o, s) for o, s in zip(instruction.operands, bound.slots, strict=True) if s.role == "dst"]
    assert len(results) == len(slots) == bound.results
    for (operand, slot), result in zip(slots, results, strict=True):
        parts: tuple[object, ...] = (result,)
        if slot.pair:
            assert isinstance(result, tuple)
            first, second = result
            parts = (first,)
            check_value(Slot("dst", scalar("pred")), second)
        elif isinstance(operand, syntax.Vector):
            assert isinstance(result, tuple)
            assert len(result) == len(operand.elements)
            parts = result
        for part in parts:
            check_value(slot, part)


def check_value(slot: Slot, value: object) -> None:
    assert isinstance(value, np.ndarray)
    if slot.type.kind == "pred":
        assert value.dtype == np.bool_
    elif slot.type.width == 128:
        assert value.shape[-1] == 2
    else:
        assert value.dtype == np.dtype(f"u{slot.type.width // 8}"), (slot, value.dtype)


@pytest.mark.parametrize("row", [r for r in ROWS if r.why and not r.any_suffix], ids=lambda row: row.form.text)
def test_rows_without_a_rule_say_why(row: Row) -> None:
    reasons = set()
    for instruction in instances(row.form):
        with pytest.raises(Unsupported) as caught:
            bind(instruction)
        assert caught.value.span == instruction.span
        reasons.add(caught.value.why)
    assert row.why in reasons


def test_control_rows_bind_to_their_kind() -> None:
    kinds = {bind(i).control for row in ROWS if row.control for i in list(instances(row.form))[:1] if bind(i).control}
    assert kinds == {"bra", "brx", "call", "ret", "exit", "trap", "nop"}


def test_the_form_notation_needs_no_third_party_package() -> None:
    code = "import warpproof.isa, sys; assert 'numpy' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True)
