"""Integer sets (isl), SMT (z3 in a child process), entailment: decision procedures behind one kind of answer."""

from warpproof.solve.coordinates import Coordinates, coordinates, product
from warpproof.solve.entailment import implies
from warpproof.solve.facts import Facts
from warpproof.solve.intervals import Consecutive, in_order
from warpproof.solve.linearise import Box, Region
from warpproof.solve.pieces import Piece, without_other_blocks
from warpproof.solve.quotients import digits, multiple, quotients
from warpproof.solve.radix import box_of, flattened
from warpproof.solve.ranges import tighten
from warpproof.solve.regrouping import regrouped
from warpproof.solve.relations import Answer, Problem
from warpproof.solve.rendezvous import Finding, Rendezvous
from warpproof.solve.sets import (
    covers,
    disjoint,
    equal_index_same_thread,
    exactly_once,
    injective,
    nonempty,
    single_thread,
    within,
)
from warpproof.solve.smt import SmtAnswer, SmtWorker, answer_with, ask
from warpproof.solve.smtlib import Sample, entails, refute_le, sample, script

__all__ = [
    "Answer", "Box", "Consecutive", "Coordinates", "Facts", "Finding", "Piece", "Problem", "Region", "Rendezvous",
    "Sample", "SmtAnswer", "SmtWorker", "answer_with", "ask", "box_of", "coordinates", "covers", "digits", "disjoint",
    "entails", "equal_index_same_thread", "exactly_once", "flattened", "implies", "in_order", "injective", "multiple",
    "nonempty", "product", "quotients", "refute_le", "regrouped", "sample", "script", "single_thread", "tighten",
    "within", "without_other_blocks",
]
