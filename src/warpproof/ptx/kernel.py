"""A kernel ready to run: flat code, resolved names, laid-out memory."""

from __future__ import annotations

from dataclasses import dataclass, field

from warpproof.ptx.syntax import Function, Instruction, LabelTable, Module, Pointer, Variable


@dataclass(frozen=True, slots=True)
class RegisterType:
    """The declared type of a register: kind `b`, `u`, `s`, `f`, `bf`, `pred` or an opaque kind, and its width in bits.

    `width` is the total width; `packed` is 2 for `f16x2` and `bf16x2`. A predicate has width 1.
    """

    kind: str
    width: int
    packed: int = 1


@dataclass(frozen=True, slots=True)
class Parameter:
    """A parameter of a kernel or function: `offset` in its parameter space, sizes in bytes.

    `space` is `param`, or `reg` for a register parameter of a function, which is then also in `Kernel.registers`.
    """

    name: str
    type: str
    size: int
    align: int
    offset: int
    space: str = "param"
    count: int | None = None  # elements of an array parameter
    pointer: Pointer | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Kernel:
    """A kernel or called function with scopes flattened and every name unique.

    Names that clash get a suffix `@1`, `@2`, …, which no identifier can contain. `registers` holds the registers that
    the code mentions, the components of a vector register as `name.x`. A label's value is the index of the next
    instruction, `len(code)` at the end; running past the end returns. `variables` and the layouts cover the kernel and
    everything it calls, and are the same for all of them; a `Symbol` in an operand names a parameter if `params` or
    `returns` has it, else one of `variables` (space `param`: an argument buffer of a call), `labels`, `tables`, or a
    function in `callees` or `externs`. Layouts give byte offsets from the start of the space; all `dynamic_shared`
    arrays start behind the static shared memory, at the same offset.
    """

    name: str
    entry: bool
    params: tuple[Parameter, ...]
    returns: tuple[Parameter, ...]
    registers: dict[str, RegisterType]
    code: tuple[Instruction, ...]
    labels: dict[str, int]
    tables: dict[str, LabelTable]
    variables: dict[str, Variable]
    shared_layout: dict[str, int]
    shared_size: int  # static bytes
    dynamic_shared: tuple[str, ...]
    const_layout: dict[str, int]
    global_layout: dict[str, int]
    local_layout: dict[str, int]
    directives: dict[str, tuple[int, ...]]  # maxntid, reqntid, reqnctapercluster always with three numbers
    pragmas: tuple[str, ...]
    callees: dict[str, Kernel] = field(repr=False)
    externs: dict[str, Function] = field(repr=False)  # named, but without a body here, or a kernel
    module: Module = field(repr=False)

    @property
    def address_size(self) -> int:
        """32 or 64."""
        return self.module.address_size

    @property
    def target(self) -> str:
        """The architecture the code is for, as `sm_90a`."""
        return self.module.target[0]
