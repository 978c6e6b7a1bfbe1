"""Instructions, conditions and executions as text."""

from __future__ import annotations

from typing import Final

from warpproof.sync.events import Kind
from warpproof.sync.execution import Execution
from warpproof.sync.model import Scope
from warpproof.sync.program import (
    ALIAS,
    GENERIC,
    Atomic,
    Comparison,
    Condition,
    Connective,
    Fence,
    Litmus,
    Load,
    Operand,
    Operation,
    ProxyFence,
    Register,
    Store,
    Term,
    ThreadRegister,
)

_LOADS: Final = {GENERIC: "ld", "surface": "suld", "texture": "tld", "constant": "cold", "async": "ald"}
_STORES: Final = {GENERIC: "st", "surface": "sust", "async": "ast"}
_ATOMICS: Final = {GENERIC: "", "surface": "su", "async": "a"}


def scope_text(scope: Scope | None) -> str:
    """`.cta` and so on, empty for none."""
    return "" if scope is None else f".{scope.name.lower()}"


def _operand(operand: Operand) -> str:
    return operand.name if isinstance(operand, Register) else str(operand)


def instruction_text(operation: Operation) -> str:
    """The operation in the notation of litmus files; only memory operations and fences have one here."""
    match operation:
        case Load(names, address, sem, scope, proxy, width):
            shape, target = _shape(names, width)
            return f"{_LOADS[proxy]}.{sem}{scope_text(scope)}{shape} {target}, {_operand(address)}"
        case Store(address, values, sem, scope, proxy, width):
            shape, source = _shape(tuple(_operand(v) for v in values), width)
            return f"{_STORES[proxy]}.{sem}{scope_text(scope)}{shape} {_operand(address)}, {source}"
        case Atomic(name, kind, address, operands, sem, scope, proxy, width):
            head = _ATOMICS[proxy] + ("red" if name is None else "atom")
            shape, _ = _shape(("",), width)
            arguments = [*([] if name is None else [name]), _operand(address), *map(_operand, operands)]
            return f"{head}.{sem}{scope_text(scope)}.{kind}{shape} {', '.join(arguments)}"
        case Fence(sem, scope):
            return f"fence.{sem}{scope_text(scope)}"
        case ProxyFence(proxy):
            return f"fence.proxy.{ALIAS if proxy == ALIAS else proxy}"
    raise AssertionError(operation)


def _shape(parts: tuple[str, ...], width: int) -> tuple[str, str]:
    suffix = f".u{8 * width}" if width else ""
    return (f".v{len(parts)}{suffix}", "{" + ", ".join(parts) + "}") if len(parts) > 1 else (suffix, parts[0])


def term_text(test: Litmus, term: Term) -> str:
    """`P0:r1`, a location or a number."""
    if isinstance(term, ThreadRegister):
        return f"{test.threads[term.thread].name}:{term.name}"
    return str(term)


def condition_text(test: Litmus, condition: Condition) -> str:
    """The condition in the notation of litmus files."""
    match condition:
        case Comparison(sign, left, right):
            return f"{term_text(test, left)} {sign} {term_text(test, right)}"
        case Connective("not", (part,)):
            return f"~({condition_text(test, part)})"
        case Connective(kind, parts):
            if not parts:
                return "true" if kind == "and" else "~true"
            sign = " /\\ " if kind == "and" else " \\/ "
            return sign.join(f"({t})" if isinstance(p, Connective) else t
                             for p in parts for t in (condition_text(test, p),))
    raise AssertionError(condition)


def event_text(execution: Execution, number: int) -> str:
    """One event: `R.acquire.gpu f = 1`, `F.sc.gpu`, `init x = 0`."""
    event, value = execution.frame.events[number], execution.values[number]
    if number < execution.frame.first:
        return f"init {event.address} = {value}"
    match event.kind:
        case Kind.READ | Kind.WRITE:
            kind = event.kind.value + ("*" if event.rmw else "")
            proxy = "" if event.proxy == GENERIC else f".{event.proxy}"
            return f"{kind}{proxy}.{event.sem}{scope_text(event.scope)} {event.address} = {value}"
        case Kind.FENCE:
            return f"F.{event.sem}{scope_text(event.scope)}"
        case Kind.PROXY_FENCE:
            return f"F.proxy.{event.proxy}"
        case Kind.BARRIER:
            what = "sync" if event.arrives and event.waits else "arrive" if event.arrives else "wait"
            return f"barrier.{event.level}.{what} {' '.join(str(k) for k in event.key)}"
    raise AssertionError(event.kind)
