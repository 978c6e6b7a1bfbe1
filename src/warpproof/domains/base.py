"""The Domain protocol: the primitives a semantics rule may use, and the effects it may ask the machine for.

A register is w untyped bits per lane. `V` is a domain's register value, `P` its predicate value; both stand for all
lanes at once. A domain that has no sound answer raises `Unsupported`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, Protocol, TypeVar

from warpproof.isa import ScalarType as ScalarType

V = TypeVar("V")
P = TypeVar("P")

IntOp = Literal[
    "add", "sub", "mul_lo", "mul_hi", "mul_wide", "div", "rem", "min", "max", "neg", "abs", "not", "and", "or",
    "xor", "shl", "shr", "popc", "clz", "brev", "bfind", "bfe", "bfi", "add_sat", "sub_sat", "shf_l_wrap",
    "shf_l_clamp", "shf_r_wrap", "shf_r_clamp", "prmt", "lop3", "fns",
]
FloatOp = Literal[
    "add", "sub", "mul", "fma", "div", "rcp", "sqrt", "rsqrt", "min", "max", "neg", "abs", "ex2", "lg2", "sin", "cos",
    "tanh", "copysign", "testp",
]
Comparison = Literal["eq", "ne", "lt", "le", "gt", "ge", "equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"]


@dataclass(frozen=True, slots=True)
class FloatMode:
    """Rounding and clamping of one float operation. `approx` marks `.approx` and `.full` instructions."""

    rounding: str = "rn"  # rn rz rm rp rna rs; rni rzi rmi rpi round to integral in the format
    ftz: bool = False
    sat: bool = False  # clamp to [+0, 1], NaN to +0
    approx: bool = False
    nan: bool = False  # .NaN: min/max return canonical NaN if either input is NaN
    xorsign: bool = False  # .xorsign.abs of two-input min/max
    relu: bool = False
    full: bool = False  # .full of div: full range, where .approx returns zero for huge divisors
    satfinite: bool = False  # overflow gives the largest finite value


@dataclass(frozen=True, slots=True)
class Load:
    """Ask for `count` elements of `type` at `address` (+ element index times the element's byte size).

    The answer is the value, or a tuple of values when `count` > 1, each as wide as `type`.
    """

    space: str  # generic global shared local const param
    type: ScalarType
    count: int
    address: object
    semantics: str = "weak"  # weak volatile relaxed acquire mmio
    scope: str = ""
    cache: tuple[str, ...] = ()  # nc, ca, cg, cv, L1::…


@dataclass(frozen=True, slots=True)
class Store:
    """Write `values` of `type` at `address` onwards."""

    space: str
    type: ScalarType
    values: tuple[object, ...]
    address: object
    semantics: str = "weak"
    scope: str = ""


@dataclass(frozen=True, slots=True)
class Atomic:
    """A read-modify-write; the answer is the old value (`returns` False for `red`)."""

    op: str  # add min max and or xor exch cas inc dec
    space: str
    type: ScalarType
    address: object
    args: tuple[object, ...]
    semantics: str = "relaxed"
    scope: str = "gpu"
    returns: bool = True
    mode: FloatMode = FloatMode()


@dataclass(frozen=True, slots=True)
class Barrier:
    """A CTA barrier. `kind` sync | arrive | red; `count` None means every thread of the CTA."""

    kind: str
    id: object
    count: object | None
    aligned: bool
    reduce: str = ""  # popc and or
    predicate: object | None = None


@dataclass(frozen=True, slots=True)
class WarpSync:
    """`bar.warp.sync membermask`."""

    mask: object


@dataclass(frozen=True, slots=True)
class Shuffle:
    """A warp shuffle; the answer is (value, in-range predicate)."""

    mode: str  # up down bfly idx
    value: object
    lane: object
    clamp: object
    mask: object | None


@dataclass(frozen=True, slots=True)
class Vote:
    """A warp vote; the answer is a predicate, or the mask for `ballot`."""

    mode: str  # all any uni ballot
    predicate: object
    mask: object | None


@dataclass(frozen=True, slots=True)
class Match:
    """`match.any` / `match.all`; the answer is (mask, predicate)."""

    mode: str
    type: ScalarType
    value: object
    mask: object


@dataclass(frozen=True, slots=True)
class Redux:
    """`redux.sync`."""

    op: str
    type: ScalarType
    value: object
    mask: object
    mode: FloatMode = FloatMode()


@dataclass(frozen=True, slots=True)
class ActiveMask:
    """`activemask.b32`."""


@dataclass(frozen=True, slots=True)
class Fence:
    """`membar` and `fence`, by semantics and scope; `proxy` for `fence.proxy.*`."""

    semantics: str
    scope: str
    proxy: str = ""


@dataclass(frozen=True, slots=True)
class Special:
    """Read a special register (`%tid.x`)."""

    name: str


@dataclass(frozen=True, slots=True)
class Cvta:
    """`cvta{.to}.space`, `isspacep` and `mapa`-free address conversion; the answer is the converted address."""

    space: str
    to: bool
    address: object


@dataclass(frozen=True, slots=True)
class SpaceTest:
    """`isspacep.space`; the answer is a predicate."""

    space: str
    address: object


@dataclass(frozen=True, slots=True)
class Carry:
    """The carry flag CC.CF: `value` None reads it (the answer is a predicate), otherwise it is written."""

    value: object | None = None


@dataclass(frozen=True, slots=True)
class Elect:
    """`elect.sync`; the answer is (lane id of the leader, predicate true in the leader)."""

    mask: object


@dataclass(frozen=True, slots=True)
class Opaque:
    """A value the manual leaves unspecified (a cache policy); the answer is any value of `type`, never a known one."""

    name: str
    type: ScalarType


@dataclass(frozen=True, slots=True)
class MatrixLoad:
    """`ldmatrix` of `count` 8x8 matrices of b16 from shared memory; the answer is `count` b32 registers.

    Matrix i has its row r at the address held by lane 8*i + r; lane l receives row l//4, columns 2*(l%4) and the next
    (`transposed`: column l//4, rows 2*(l%4) and the next), the lower index in the low half.
    """

    count: int
    transposed: bool
    address: object


@dataclass(frozen=True, slots=True)
class MatrixStore:
    """`stmatrix`: the inverse of `MatrixLoad`."""

    count: int
    transposed: bool
    address: object
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class MatrixMultiply:
    """`mma.sync….row.col`: D = A*B + C on warp fragments laid out as in the manual; the answer is D's registers."""

    shape: tuple[int, int, int]
    d_type: ScalarType
    a_type: ScalarType
    b_type: ScalarType
    c_type: ScalarType
    a: tuple[object, ...]
    b: tuple[object, ...]
    c: tuple[object, ...]
    saturate: bool = False
    layouts: tuple[str, str] | None = None  # of `wmma.mma`: row or col of A and B, whose fragments have no known layout


@dataclass(frozen=True, slots=True)
class FragmentLoad:
    """`wmma.load` of matrix `operand` (a, b or c) of an m×n×k product; the answer is the lane's `registers` registers.

    `stride` counts elements of `type` between rows (between columns if `column`); None means no gaps.
    """

    operand: str
    shape: tuple[int, int, int]
    column: bool
    space: str
    type: ScalarType
    registers: int
    address: object
    stride: object | None


@dataclass(frozen=True, slots=True)
class FragmentStore:
    """`wmma.store.d`: the inverse of `FragmentLoad` of matrix c."""

    shape: tuple[int, int, int]
    column: bool
    space: str
    type: ScalarType
    address: object
    stride: object | None
    values: tuple[object, ...]


@dataclass(frozen=True, slots=True)
class AsyncCopy:
    """`cp.async`: copy `size` bytes global → shared without waiting; bytes from `source_size` on are zero-filled.

    `ignore` (a predicate) makes the whole source zero. `cache` is ca or cg.
    """

    destination: object
    source: object
    size: int
    source_size: object | None = None
    ignore: object | None = None
    cache: str = "ca"


@dataclass(frozen=True, slots=True)
class AsyncGroup:
    """`cp.async.commit_group` (kind commit), `wait_group` (wait, leaving `pending` groups), `wait_all`."""

    kind: str
    pending: int = 0


@dataclass(frozen=True, slots=True)
class GridDependency:
    """`griddepcontrol`: `wait` for prerequisite grids, or `launch_dependents`."""

    action: str


Effect = (
    Load | Store | Atomic | Barrier | WarpSync | Shuffle | Vote | Match | Redux | ActiveMask | Fence | Special | Cvta
    | SpaceTest | Carry | Elect | Opaque | MatrixLoad | MatrixStore | MatrixMultiply | FragmentLoad | FragmentStore
    | AsyncCopy | AsyncGroup | GridDependency
)


class Domain(Protocol[V, P]):
    """What a rule may compute with. `ty.width` is the operand width; results have it too unless said otherwise."""

    lanes: int

    def constant(self, ty: ScalarType, bits: int) -> V:
        """The bit pattern `bits` (taken modulo 2^width) in every lane."""
        ...

    def integer(self, op: IntOp, ty: ScalarType, *args: V, control: int = 0) -> V:
        """An exact integer operation on `ty`. `mul_wide` returns twice the width, `popc`, `clz` and `bfind` a u32;
        `div`, `rem`, `shr`, `min`, `max`, `mul_hi`, `mul_wide`, `bfe`, `bfind` honour signedness; shift amounts and
        field positions are u32, and shifts clamp as `.shl/.shr` do. `control` is the lop3 table or the prmt mode (0
        generic, 1 f4e, 2 b4e, 3 rc8, 4 ecl, 5 ecr, 6 rc16)."""
        ...

    def floating(self, op: FloatOp, ty: ScalarType, mode: FloatMode, *args: V) -> V:
        """A float operation with one rounding (packed types lane by lane); `.approx` functions by their own bounds."""
        ...

    def compare(self, op: Comparison, ty: ScalarType, a: V, b: V, ftz: bool = False) -> P:
        """A comparison by type: unordered forms are true on NaN."""
        ...

    def test(self, property: str, ty: ScalarType, a: V) -> P:
        """`testp`: finite infinite number notanumber normal subnormal."""
        ...

    def truth(self, value: bool) -> P:
        """The constant predicate."""
        ...

    def predicate(self, op: Literal["and", "or", "xor", "not"], *args: P) -> P:
        """Boolean operations on predicates."""
        ...

    def select(self, ty: ScalarType, p: P, a: V, b: V) -> V:
        """Lane-wise `p ? a : b`."""
        ...

    def convert(self, dst: ScalarType, src: ScalarType, mode: FloatMode, a: V) -> V:
        """`cvt`: value conversion, with the source's type deciding extension and the mode deciding rounding."""
        ...

    def pack(self, width: int, parts: Sequence[V]) -> V:
        """Concatenate equal-width parts, the first in the low bits, to a `width`-bit value."""
        ...

    def unpack(self, width: int, value: V, parts: int) -> tuple[V, ...]:
        """Split a `width`-bit value into `parts` equal pieces, low bits first."""
        ...

    def resize(self, width: int, value: V) -> V:
        """Truncate or zero-extend the raw bits to `width`."""
        ...
