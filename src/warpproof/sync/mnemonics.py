"""One instruction of a litmus test from its text: the notation of the public sets, and PTX's own.

Modifiers may come in any order, as the public sets differ; state spaces, types and cache operators are read and, where
they do not change the model (PTX 8.4), dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, NoReturn

from warpproof.core import InputError, Span
from warpproof.sync.model import Scope
from warpproof.sync.program import (
    ALIAS,
    GENERIC,
    Address,
    Atomic,
    Barrier,
    Branch,
    Fence,
    Goto,
    Label,
    Load,
    Local,
    Operand,
    Operation,
    ProxyFence,
    Register,
    Store,
)

SCOPES: Final = {"cta": Scope.CTA, "cluster": Scope.CLUSTER, "gpu": Scope.GPU, "gl": Scope.GPU, "sys": Scope.SYS}
_SEMANTICS: Final = {"weak", "relaxed", "acquire", "release", "acq_rel", "sc", "volatile", "mmio"}
_SPACES: Final = {"global", "shared", "shared::cta", "shared::cluster", "generic"}
_CACHE: Final = {"ca", "cg", "cs", "cv", "lu", "wb", "wt"}
_VECTORS: Final = {"v2": 2, "v4": 4, "v8": 8}
_OPERATIONS: Final = {"add", "sub", "mul", "div", "and", "or", "xor", "exch", "cas", "inc", "dec", "min", "max"}
_LOADS: Final = {"ld": GENERIC, "suld": "surface", "tld": "texture", "cold": "constant", "ldc": "constant",
                 "ald": "async"}
_STORES: Final = {"st": GENERIC, "sust": "surface", "ast": "async"}
_ATOMICS: Final = {"atom": GENERIC, "suatom": "surface"}
_REDUCTIONS: Final = {"red": GENERIC, "sured": "surface", "ared": "async"}
_PROXIES: Final = {"generic": GENERIC, "constant": "constant", "surface": "surface", "texture": "texture",
                   "async": "async", "alias": ALIAS, "async.global": "async", "async.shared::cta": "async",
                   "async.shared::cluster": "async"}
_TYPE: Final = re.compile(r"[usbf](8|16|32|64)\Z")
_NUMBER: Final = re.compile(r"-?(?:0[xX][0-9a-fA-F]{1,16}|\d{1,20})\Z", re.ASCII)
_REGISTER: Final = re.compile(r"%?r[a-z]{0,2}\d+\Z|%\w+\Z", re.ASCII)
_SYMBOL: Final = re.compile(r"([A-Za-z_$][\w$]*)(?:\s*\+\s*(\d{1,9}))?\Z", re.ASCII)


@dataclass(frozen=True, slots=True)
class Names:
    """The declared symbols, so that a symbol called `rd1` is not taken for a register, and those met undeclared."""

    symbols: frozenset[str]
    undeclared: set[str] = field(default_factory=set)

    def operand(self, text: str, fail: Callable[[str], NoReturn], address: bool = False) -> Operand:
        """A number, register or symbol; in the place of an address an undeclared name is a location that holds 0."""
        text = text.strip()
        if text.startswith("&"):
            text = text[1:].strip()
        elif _NUMBER.match(text):
            return number(text)
        symbol = _SYMBOL.match(text)
        if symbol and symbol[1] in self.symbols:
            return Address(symbol[1], int(symbol[2] or 0))
        if _REGISTER.match(text):
            return Register(text.lstrip("%"))
        if symbol and address:
            self.undeclared.add(symbol[1])
            return Address(symbol[1], int(symbol[2] or 0))
        fail(f"{text!r} is no number, register or declared location")


@dataclass(slots=True)
class _Modifiers:
    sems: list[str]
    scopes: list[Scope]
    operations: list[str]
    width: int = 0
    elements: int = 1


class _Reader:
    """Reads one instruction; `fail` reports at its place."""

    def __init__(self, text: str, span: Span, names: Names, source: str) -> None:
        self.text, self.span, self.names, self.source = text, span, names, source
        head, _, rest = text.partition(" ")
        self.parts = head.split(".")
        self.arguments = _split(rest)

    def fail(self, message: str, code: str = "SYN202", hint: str = "") -> NoReturn:
        raise InputError(code, message, self.span, hint, self.source)

    def read(self) -> Operation:
        base = self.parts[0]
        if self.text.endswith(":") and re.fullmatch(r"[\w$]+:", self.text.replace(" ", "")):
            return Label(self.text.replace(" ", "")[:-1])
        if base in _LOADS:
            return self._local_or_load(_LOADS[base])
        if base in _STORES:
            return self._store(_STORES[base])
        if base in _ATOMICS or base in _REDUCTIONS:
            return self._atomic((_ATOMICS | _REDUCTIONS)[base], base in _ATOMICS)
        match base:
            case "fence" | "membar":
                return self._fence(base)
            case "bar" | "barrier":
                return self._barrier()
            case "mov" | "add" | "sub" | "mul" | "div" | "and" | "or" | "xor":
                return self._local(base)
            case "beq" | "bne" | "blt" | "bgt" | "ble" | "bge":
                left, right, target = self._count(3)
                return Branch(base[1:], self._operand(left), self._operand(right), target)
            case "goto" | "bra":
                return Goto(self._count(1)[0])
        self.fail(f"no litmus instruction {base!r}",
                  hint="ld, st, atom, red, fence, membar, bar, barrier, mov, add, sub, mul, div, and, or, xor, "
                       "b<cond>, goto, or a label; suld, sust, tld, cold, ald, ast through other proxies")

    def _operand(self, text: str) -> Operand:
        return self.names.operand(text, self.fail)

    def _register(self, text: str) -> str:
        operand = self._operand(text)
        if not isinstance(operand, Register):
            self.fail(f"{text.strip()!r} is not a register")
        return operand.name

    def _address(self, text: str) -> Operand:
        inner = text[1:-1] if text.startswith("[") and text.endswith("]") else text
        operand = self.names.operand(inner, self.fail, address=True)
        if isinstance(operand, int):
            self.fail(f"{text!r} is not a location")
        return operand

    def _count(self, *counts: int) -> list[str]:
        if len(self.arguments) not in counts:
            wanted = " or ".join(str(c) for c in counts)
            self.fail(f"{self.parts[0]} takes {wanted} operands here, not {len(self.arguments)}")
        return self.arguments

    def _modifiers(self) -> _Modifiers:
        found = _Modifiers([], [], [])
        for part in self.parts[1:]:
            width = _TYPE.match(part)
            if part in _SEMANTICS:
                found.sems.append(part)
            elif part in SCOPES:
                found.scopes.append(SCOPES[part])
            elif width:
                found.width = int(width[1]) // 8
            elif part in _VECTORS:
                found.elements = _VECTORS[part]
            elif part in _OPERATIONS:
                found.operations.append(part)
            elif part == "nc":
                self.fail("ld.global.nc is outside the model: its data must be constant", "SYN206",
                          hint="the model says nothing about non-coherent loads (PTX 8.6)")
            elif part not in _SPACES | _CACHE:
                self.fail(f"unknown modifier .{part}")
        if "mmio" in found.sems:
            found.sems = [s for s in found.sems if s != "mmio"] or ["relaxed"]
        if len(found.sems) > 1 or len(found.scopes) > 1:
            self.fail("more than one semantics or scope")
        return found

    def _access(self, modifiers: _Modifiers, allowed: tuple[str, ...]) -> tuple[str, Scope | None]:
        sem = modifiers.sems[0] if modifiers.sems else "weak"
        scope = modifiers.scopes[0] if modifiers.scopes else None
        if modifiers.operations:
            self.fail(f"unknown modifier .{modifiers.operations[0]}")
        if sem in ("weak", "volatile"):
            if scope is not None:
                self.fail(f"a {sem} access has no scope")
            return ("weak", None) if sem == "weak" else ("relaxed", Scope.SYS)
        if sem not in allowed:
            self.fail(f".{sem} does not go with {self.parts[0]}")
        if scope is None:
            self.fail(f"a .{sem} access needs a scope", hint="add .cta, .cluster, .gpu or .sys")
        return sem, scope

    def _local_or_load(self, proxy: str) -> Operation:
        first, second = self._count(2)
        if len(self.parts) == 1 and not second.startswith("["):
            operand = self._operand(second)
            if not isinstance(operand, Address):
                # The public sets write `ld r0, 1` for a move.
                return Local(self._register(first), "mov", operand)
        modifiers = self._modifiers()
        sem, scope = self._access(modifiers, ("relaxed", "acquire"))
        names = tuple(self._register(t) for t in _elements(first))
        if len(names) != modifiers.elements:
            self.fail(f"{modifiers.elements} destination registers are needed, not {len(names)}")
        return Load(names, self._address(second), sem, scope, proxy, modifiers.width)

    def _store(self, proxy: str) -> Operation:
        first, second = self._count(2)
        modifiers = self._modifiers()
        sem, scope = self._access(modifiers, ("relaxed", "release"))
        values = tuple(self._operand(t) for t in _elements(second))
        if len(values) != modifiers.elements:
            self.fail(f"{modifiers.elements} values are needed, not {len(values)}")
        return Store(self._address(first), values, sem, scope, proxy, modifiers.width)

    def _atomic(self, proxy: str, returns: bool) -> Operation:
        modifiers = self._modifiers()
        if len(modifiers.operations) != 1:
            self.fail("an atomic has exactly one operation", hint=", ".join(sorted(_OPERATIONS)))
        sem = modifiers.sems[0] if modifiers.sems else "relaxed"
        if sem not in ("relaxed", "acquire", "release", "acq_rel"):
            self.fail(f".{sem} does not go with {self.parts[0]}")
        if modifiers.elements != 1:
            self.fail("vector atomics are not supported", "SYN206")
        operation = modifiers.operations[0]
        arguments = list(self.arguments)
        if not arguments:
            self.fail(f"{self.parts[0]} needs operands")
        destination = self._register(arguments.pop(0)) if returns else None
        wanted = 2 if operation == "cas" else 1
        if not arguments or not (len(arguments) - 1 == wanted or (operation in ("inc", "dec") and len(arguments) == 1)):
            self.fail(f"{operation} takes a location and {wanted} operand{'s' * (wanted > 1)}")
        if not returns and operation in ("exch", "cas"):
            self.fail(f"red has no .{operation}")
        operands = tuple(self._operand(t) for t in arguments[1:])
        scope = modifiers.scopes[0] if modifiers.scopes else Scope.GPU
        return Atomic(destination, operation, self._address(arguments[0]), operands, sem, scope, proxy, modifiers.width)

    def _fence(self, base: str) -> Operation:
        self._count(0)
        rest = self.parts[1:]
        if base == "fence" and rest[:1] == ["proxy"]:
            kind = ".".join(rest[1:])
            if kind not in _PROXIES or kind == "generic":
                self.fail(f"fence.proxy.{kind} is not supported", "SYN206", hint=f"known: {', '.join(_PROXIES)}")
            return ProxyFence(_PROXIES[kind])
        if base == "fence" and rest[:1] == ["alias"]:
            return ProxyFence(ALIAS)
        modifiers = self._modifiers()
        sem = modifiers.sems[0] if modifiers.sems else "acq_rel" if base == "fence" else "sc"
        if sem not in ("acq_rel", "sc", "acquire", "release") or (base == "membar" and modifiers.sems):
            self.fail(f".{sem} does not go with {base}")
        if not modifiers.scopes:
            self.fail(f"{base} needs a scope", hint="add .cta, .cluster, .gpu or .sys")
        return Fence(sem, modifiers.scopes[0])

    def _barrier(self) -> Operation:
        rest = [p for p in self.parts[1:] if p != "aligned"]
        if rest[:1] == ["cluster"]:
            return self._cluster_barrier(rest[1:])
        if rest == ["warp", "sync"]:
            self._count(0, 1)
            return Barrier("warp", arrives=True, waits=True)
        litmus_form = self.parts[0] == "bar" and rest[:1] == ["cta"]
        kind = [p for p in rest if p != "cta"]
        if kind not in (["sync"], ["arrive"]):
            self.fail(f"no barrier {'.'.join(self.parts)!r}", hint="bar.cta.sync, bar.sync, bar.arrive, bar.warp.sync, "
                      "barrier.cluster.arrive, barrier.cluster.wait")
        waits = kind == ["sync"]
        operands = [self._operand(t) for t in self._count(*((1, 2, 3) if litmus_form else (1, 2)))]
        if not litmus_form:
            quorum = operands[1] if len(operands) > 1 else None
            return Barrier("cta", arrives=True, waits=waits, resource=operands[0], quorum=quorum)
        if not isinstance(operands[0], int):
            self.fail("the first operand of bar.cta is the instance, a number")
        return Barrier("cta", arrives=True, waits=waits, instance=operands[0],
                       resource=operands[1] if len(operands) > 1 else -1,
                       quorum=operands[2] if len(operands) > 2 else None)

    def _cluster_barrier(self, rest: list[str]) -> Operation:
        self._count(0)
        match rest:
            case ["arrive"] | ["arrive", "release"]:
                return Barrier("cluster", arrives=True, waits=False)
            case ["arrive", "relaxed"]:
                return Barrier("cluster", arrives=True, waits=False, orders=False)
            case ["wait"] | ["wait", "acquire"]:
                return Barrier("cluster", arrives=False, waits=True)
        self.fail(f"no barrier {'.'.join(self.parts)!r}")

    def _local(self, base: str) -> Operation:
        if base == "mov":
            first, second = self._count(2)
            return Local(self._register(first), "mov", self._operand(second))
        first, second, third = self._count(3)
        return Local(self._register(first), base, self._operand(second), self._operand(third))


def number(text: str) -> int:
    """The integer, decimal or hexadecimal, as a 64-bit signed one."""
    value = int(text, 16 if "x" in text.lower() else 10) & (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value


def _split(text: str) -> list[str]:
    parts = [p.strip() for p in re.split(r",(?![^{]*\})", text)]
    return [] if parts == [""] else parts


def _elements(text: str) -> list[str]:
    return [t.strip() for t in text[1:-1].split(",")] if text.startswith("{") and text.endswith("}") else [text]


def read_instruction(text: str, span: Span, names: Names, source: str) -> Operation:
    """The operation that the text of one instruction stands for; InputError SYN202 or SYN206 if it stands for none."""
    return _Reader(re.sub(r"\s+", " ", text.strip()), span, names, source).read()
