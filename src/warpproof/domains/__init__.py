"""The value domains an instruction's meaning can be read in: exact bits, real terms."""

from warpproof.domains.base import (
    ActiveMask,
    AsyncCopy,
    AsyncGroup,
    Atomic,
    Barrier,
    Carry,
    Comparison,
    Cvta,
    Domain,
    Effect,
    Elect,
    Fence,
    FloatMode,
    FloatOp,
    FragmentLoad,
    FragmentStore,
    GridDependency,
    IntOp,
    Load,
    Match,
    MatrixLoad,
    MatrixMultiply,
    MatrixStore,
    Opaque,
    P,
    Redux,
    ScalarType,
    Shuffle,
    SpaceTest,
    Special,
    Store,
    V,
    Vote,
    WarpSync,
)
from warpproof.domains.bits import Bits
from warpproof.domains.directed import DIRECTIONS, DirectedBits
from warpproof.domains.formats import exact_value
from warpproof.domains.pairs import READINGS, Carried, Reader, Reading, Unread, untied
from warpproof.domains.parts import joined, taken_apart
from warpproof.domains.reals import Reals
from warpproof.domains.values import Choice, Float, Int, Pack, Part, Undef, Value, poisoned

__all__ = [
    "DIRECTIONS", "READINGS", "ActiveMask", "AsyncCopy", "AsyncGroup", "Atomic", "Barrier", "Bits", "Carried", "Carry",
    "Choice", "Comparison", "Cvta", "DirectedBits", "Domain", "Effect", "Elect", "Fence", "Float", "FloatMode",
    "FloatOp", "FragmentLoad", "FragmentStore", "GridDependency", "Int", "IntOp", "Load", "Match", "MatrixLoad",
    "MatrixMultiply", "MatrixStore", "Opaque", "P", "Pack", "Part", "Reader", "Reading", "Reals", "Redux", "ScalarType",
    "Shuffle", "SpaceTest", "Special", "Store", "Undef", "Unread", "V", "Value", "Vote", "WarpSync", "exact_value",
    "joined", "poisoned", "taken_apart", "untied",
]
