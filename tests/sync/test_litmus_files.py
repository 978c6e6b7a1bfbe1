"""Our own litmus tests: each file states its verdict, worked out by hand from the axioms, and the reason."""

from __future__ import annotations

import re
import time
from pathlib import Path

import pytest

from warpproof.core import InputError
from warpproof.sync import MODELS, Litmus, Model, check, find_hang, find_race, load_litmus, model_named, weak_polls

FILES = sorted((Path(__file__).parent / "litmus").glob("*.litmus"))
EXPECT = re.compile(r"\(\* expect: (.*?) \*\)")


def expectations(test: Litmus) -> list[str]:
    found = EXPECT.search(test.source)
    assert found, "an `expect` comment is needed"
    return found[1].split(", ")


def since(expected: list[str]) -> list[Model]:
    names = [e.removeprefix("since ") for e in expected if e.startswith("since ")]
    first = MODELS[names[0] if names else "6.0"].version
    return [m for m in MODELS.values() if m.version >= first]


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)
def test_verdict(file: Path) -> None:
    test = load_litmus(file)
    expected = expectations(test)
    assert test.name == file.stem
    assert test.description
    for model in since(expected):
        answer = check(test, model)
        assert answer.allowed == (expected[0] in ("allowed", "violated")), model.name
        assert not answer.bounded
        assert answer.validated == (answer.allowed == (test.quantifier == "exists"))
    race, bounded = find_race(test)
    assert not bounded
    assert ("race" if race else "no race") in expected
    if {"hang", "no hang"} & set(expected):
        assert ("hang" if find_hang(test) else "no hang") in expected
    assert bool(weak_polls(test)) == ("weak poll" in expected)


@pytest.mark.parametrize("file", FILES, ids=lambda p: p.stem)
def test_switches_and_versions(file: Path) -> None:
    test = load_litmus(file)
    expected = expectations(test)
    for words in (e.split() for e in expected if e.startswith("with ")):
        _, switch, verdict = words
        assert check(test, model_named("8.6", [switch])).allowed == (verdict == "allowed")
    usable = since(expected)
    for model in MODELS.values():
        if model not in usable:
            with pytest.raises(InputError) as error:
                check(test, model)
            assert error.value.code == "SYN207"


def test_there_are_enough_and_they_are_fast() -> None:
    assert len(FILES) >= 60
    times = []
    for file in FILES:
        test = load_litmus(file)
        began = time.perf_counter()
        check(test)
        times.append(time.perf_counter() - began)
    assert sorted(times)[len(times) // 2] < 0.1
    assert max(times) < 5
