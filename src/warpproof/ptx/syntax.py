"""The PTX syntax tree: one frozen class per idea, a span on each statement (PTX ISA 9.x, chapters 4 and 5).

Fields named `text`, and others that take no part in comparison, keep how a thing was spelled, so that the printer gives
back the tokens that were read.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from warpproof.core import Span


@dataclass(frozen=True, slots=True)
class Register:
    """A register or special register by name (`%r1`, `%tid.x`, `p`)."""

    name: str


@dataclass(frozen=True, slots=True)
class Immediate:
    """An integer literal or constant expression, as its value (`0xFFFFFFFFU` is 4294967295, `-1` is -1)."""

    value: int
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FloatImmediate:
    """A float literal as IEEE bits: `0f…` has width 32, `0d…`, decimals and float expressions have width 64."""

    bits: int
    width: int
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Symbol:
    """The address or value of a variable, parameter, function or label, plus a byte offset.

    `index` is the element of `a[3]` as written; `resolve` turns it into bytes (section 6.4.2).
    """

    name: str
    offset: int = 0
    index: int | None = None
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Address:
    """`[base+offset]`; `coords` holds the coordinate vector and further operands of tensor copies and textures.

    `unified` is the `.unified` mark behind the bracket.
    """

    base: Register | Symbol | Immediate
    offset: int = 0
    coords: tuple[Operand, ...] = ()
    unified: bool = False
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Vector:
    """`{a, b, …}`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Sink:
    """The discarding destination `_`."""


@dataclass(frozen=True, slots=True)
class Negated:
    """`!p` as a source operand."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Minus:
    """`-a` as a source register of a video instruction."""

    operand: Operand


@dataclass(frozen=True, slots=True)
class Pair:
    """`d|p`: a destination with a predicate destination (setp, shfl, elect, …)."""

    first: Operand
    second: Operand


@dataclass(frozen=True, slots=True)
class Group:
    """A parenthesised operand list of a `call`."""

    elements: tuple[Operand, ...]


@dataclass(frozen=True, slots=True)
class Text:
    """A quoted string operand."""

    value: str


Operand = (
    Register | Immediate | FloatImmediate | Symbol | Address | Vector | Sink | Negated | Minus | Pair | Group | Text
)


@dataclass(frozen=True, slots=True)
class Guard:
    """`@p` or `@!p`."""

    register: str
    negated: bool


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction. `opcode` is the full dotted text (`fma.rn.f32`); `name` its first part, `modifiers` the rest."""

    opcode: str
    operands: tuple[Operand, ...]
    guard: Guard | None
    span: Span
    source: tuple[str, int] | None = None  # (file, line) of the source by `.loc`, when known

    @property
    def name(self) -> str:
        """The base opcode, `fma` of `fma.rn.f32`."""
        return self.opcode.split(".", 1)[0]

    @property
    def modifiers(self) -> tuple[str, ...]:
        """The dotted parts after the base opcode (`shared::cta` stays one part)."""
        return tuple(self.opcode.split(".")[1:])


@dataclass(frozen=True, slots=True)
class Pointer:
    """The `.ptr` attribute of a kernel parameter: what it points to (section 5.1.6.3). An empty space means generic."""

    space: str
    align: int | None


@dataclass(frozen=True, slots=True)
class AddressValue:
    """An address in an initialiser: `sym`, `generic(sym)+8`, `0xff00(sym)`; `mask` selects the bits, None for all."""

    name: str
    offset: int
    generic: bool
    mask: int | None
    text: str = field(default="", compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class FieldValue:
    """`name = value` in the initialiser of a sampler, texture or surface reference (section 5.3)."""

    name: str
    value: str


@dataclass(frozen=True, slots=True)
class ListValue:
    """`{ … }` in an initialiser."""

    elements: tuple[Value, ...]


Value = Immediate | FloatImmediate | AddressValue | FieldValue | ListValue


@dataclass(frozen=True, slots=True)
class Variable:
    """A declared variable of any state space. `size` in bytes (0 = unsized, extern); `initial` its bytes if given.

    An initialised variable whose bytes are not known from the text (addresses, ambiguous nesting) has `initial` None
    and the reason in `opaque`; `resolve` refuses kernels that name it.
    """

    name: str
    space: str  # "shared" | "global" | "const" | "local" | "param"
    type: str  # element type, "b8", "f32", …
    vector: int  # 1, 2, 4
    count: int | None  # array elements, None for a scalar, 0 for an unsized array
    align: int
    size: int
    span: Span
    extern: bool = False
    initial: bytes | None = None
    attributes: tuple[str, ...] = field(default=())
    linkage: str = ""  # "", "visible", "extern", "weak", "common"; "hidden" of a parameter
    pointer: Pointer | None = None
    dims: tuple[int | None, ...] = ()  # None for `[]`
    copies: int | None = None  # `n` of `name<n>`: the variables name0 … name(n-1)
    value: Value | None = None  # the initialiser
    opaque: str = ""
    written_align: bool = field(default=False, compare=False, repr=False)
    joined: bool = field(default=False, compare=False, repr=False)  # follows the previous one after a comma


@dataclass(frozen=True, slots=True)
class RegisterDecl:
    """`.reg .type names;` with `%r<9>` expanded by `resolve`, kept as written here."""

    type: str  # "b32", "pred", …
    vector: int
    names: tuple[tuple[str, int | None], ...]  # (name or prefix, count of `<n>` or None)
    span: Span


@dataclass(frozen=True, slots=True)
class Label:
    """`name:`."""

    name: str
    span: Span


@dataclass(frozen=True, slots=True)
class LabelTable:
    """`name: .branchtargets a, b;`, `.calltargets` or `.callprototype`; `kind` is the directive without its dot."""

    name: str
    kind: str
    targets: tuple[str, ...]
    span: Span
    signature: Signature | None = None  # of a `.callprototype`


@dataclass(frozen=True, slots=True)
class Signature:
    """The parameters, return parameters and directives of a function or prototype; a list never written is None."""

    returns: tuple[Variable | RegisterDecl, ...] | None
    params: tuple[Variable | RegisterDecl, ...] | None
    directives: tuple[Directive, ...]


@dataclass(frozen=True, slots=True)
class Directive:
    """Any other directive: `name` without its dot (`pragma`, `loc`, `section`, `maxntid`, …), its tokens as text."""

    name: str
    arguments: tuple[str, ...]
    span: Span


@dataclass(frozen=True, slots=True)
class Block:
    """A `{ … }` scope with its own registers, variables and labels."""

    statements: tuple[Statement, ...]
    span: Span


Statement = Instruction | Variable | RegisterDecl | Label | LabelTable | Directive | Block


@dataclass(frozen=True, slots=True)
class Function:
    """An `.entry` or `.func`, with parameters in order; `body` is None for a declaration."""

    name: str
    entry: bool
    params: tuple[Variable | RegisterDecl, ...]
    returns: tuple[Variable | RegisterDecl, ...]
    directives: tuple[Directive, ...]  # .reqntid, .maxntid, .minnctapersm, …
    body: Block | None
    linkage: str  # "", "visible", "extern", "weak"
    span: Span
    attributes: tuple[str, ...] = ()
    signature: Signature | None = field(default=None, compare=False, repr=False)  # tells `f` from `f()`


@dataclass(frozen=True, slots=True)
class Module:
    """A PTX text: version, target, address size and the top-level items in order."""

    version: str
    target: tuple[str, ...]
    address_size: int
    items: tuple[Function | Variable | Directive, ...]
    text: str = field(repr=False)
    file: str
    written_address_size: bool = field(default=True, compare=False, repr=False)

    def entries(self) -> tuple[Function, ...]:
        """The kernels of the module, in order."""
        return tuple(f for f in self.items if isinstance(f, Function) and f.entry and f.body is not None)
