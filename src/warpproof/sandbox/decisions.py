"""Questions about terms over a system call, answered by SMT in a killable process; every witness is evaluated again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, Literal

from warpproof.sandbox import actions
from warpproof.sandbox.bitvectors import Arena, Term
from warpproof.sandbox.diagrams import Diagrams, TooLarge
from warpproof.sandbox.instructions import Program
from warpproof.sandbox.interpreter import Call
from warpproof.sandbox.symbolic import WORDS, inputs, result
from warpproof.solve import ask

TIMEOUT_S: Final = 30.0
# Architecture and number first: filters decide by them first, which keeps the diagrams small.
ORDER: Final = ("w1", "w0", *WORDS[2:])
SECOND_COPY: Final = ("v2", "v3")


class Disagreement(Exception):
    """Two independent evaluations of the same question differ: an internal error, never an answer."""


@dataclass(frozen=True, slots=True)
class Decision:
    """`impossible` (proved for all calls), `possible` with one call that does it, or `unknown` with the reason."""

    kind: Literal["impossible", "possible", "unknown"]
    witness: Call | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True)
class Symbolic:
    """One unknown system call: an arena, its sixteen words, and diagrams over them."""

    arena: Arena
    words: tuple[Term, ...]
    diagrams: Diagrams

    @staticmethod
    def fresh() -> Symbolic:
        """A new arena with the words of one call."""
        arena = Arena()
        return Symbolic(arena, inputs(arena), Diagrams(arena, (*ORDER, *SECOND_COPY)))

    def at(self, number: int, arch: int) -> Symbolic:
        """The same call with number and architecture fixed."""
        return replace(self, words=(self.arena.number(number), self.arena.number(arch), *self.words[2:]))

    def value(self, filters: Sequence[Program]) -> Term:
        """What the kernel makes of the filters' results (oldest first): the effective value."""
        arena, chosen = self.arena, self.arena.number(actions.ALLOW)
        for program in reversed(filters):
            new = result(arena, program, self.words)
            chosen = arena.choose(_stricter(arena, new, chosen), new, chosen)
        return effective(arena, chosen)

    def passes(self, filters: Sequence[Program]) -> Term:
        """The call may be carried out."""
        return passes(self.arena, self.value(filters))

    def decide(self, question: Term, timeout_s: float = TIMEOUT_S) -> Decision:
        """Whether some call makes the Boolean term true."""
        known = self.arena.constant(question)
        if known == 0:
            return Decision("impossible", detail="by evaluation")
        if known == 1:
            return Decision("possible", self.call({}))
        answer = ask(self.arena.script(question), timeout_s=timeout_s)
        if answer.status == "unsat":
            return Decision("impossible", detail="z3")
        if answer.status != "sat":
            return Decision("unknown", detail=answer.detail)
        if not self.arena.evaluate(question, answer.model):
            raise Disagreement(f"the solver's witness {answer.model} does not satisfy the question")
        return Decision("possible", self.call(answer.model))

    def confirm(self, question: Term) -> Decision:
        """The same question by decision diagrams, which share no code with the SMT solver."""
        try:
            found = self.diagrams.model(self.diagrams.build(question))
        except TooLarge:
            return Decision("unknown", detail="the decision diagram is too large")
        return Decision("impossible", detail="diagram") if found is None else Decision("possible", self.call(found))

    def elsewhere(self) -> Symbolic:
        """The same call made from another instruction pointer."""
        other = tuple(self.arena.word(name) for name in SECOND_COPY)
        return replace(self, words=(*self.words[:2], *other, *self.words[4:]))

    def call(self, model: Mapping[str, int]) -> Call:
        """The call of an assignment; words that are fixed here keep their values."""
        fixed = [self.arena.constant(w) for w in self.words]
        values = (model.get(name, 0) if known is None else known for name, known in zip(WORDS, fixed, strict=True))
        return Call.of_words(tuple(values))


def _signed_less(arena: Arena, a: Term, b: Term) -> Term:
    flip = arena.number(1 << 31)
    return arena.compare("bvult", arena.binary("bvxor", a, flip), arena.binary("bvxor", b, flip))


def _stricter(arena: Arena, a: Term, b: Term) -> Term:
    mask = arena.number(actions.ACTION_MASK)
    return _signed_less(arena, arena.binary("bvand", a, mask), arena.binary("bvand", b, mask))


def effective(arena: Arena, value: Term) -> Term:
    """`actions.effective` as a term."""
    action = arena.binary("bvand", value, arena.number(actions.ACTION_MASK))
    data = arena.binary("bvand", value, arena.number(actions.DATA_MASK))
    capped = arena.choose(arena.compare("bvult", arena.number(actions.MAX_ERRNO), data),
                          arena.number(actions.MAX_ERRNO), data)
    taken = arena.number(actions.KILL_PROCESS)
    for known in actions.NAMES:
        if known == actions.ERRNO:
            meaning = arena.binary("bvor", arena.number(known), capped)
        else:
            meaning = value if known in actions.WITH_DATA else arena.number(known)
        taken = arena.choose(arena.compare("=", action, arena.number(known)), meaning, taken)
    return taken


def passes(arena: Arena, value: Term) -> Term:
    """`actions.passes` as a term."""
    action = arena.binary("bvand", value, arena.number(actions.ACTION_MASK))
    return arena.either(arena.compare("=", action, arena.number(known)) for known in actions.PASSING)
