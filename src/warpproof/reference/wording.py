"""Polynomials and predicates in words, for error messages."""

from __future__ import annotations

from warpproof.terms import Arena, Poly, Pred


def describe(arena: Arena, x: Poly | Pred) -> str:
    """Python-like text of an integer expression or a predicate."""
    return _poly(arena, x) if isinstance(x, Poly) else _pred(arena, x)


def _poly(arena: Arena, p: Poly) -> str:
    out = ""
    for m, c in sorted(p.terms.items(), key=lambda t: (not t[0], t[0])):
        k = c if isinstance(c, int) else "lane"
        names = "*".join(_atom(arena, a) for a in m)
        negative = isinstance(k, int) and k < 0
        size = abs(k) if isinstance(k, int) else k
        body = str(size) if not m else names if size == 1 else f"{size}*{names}"
        if out:
            out += f" {'-' if negative else '+'} {body}"
        else:
            out = f"-{body}" if negative else body
    return out or "0"


def _atom(arena: Arena, ident: int) -> str:
    a = arena.atoms[ident]
    args = ", ".join(_poly(arena, p) for p in a.args)
    match a.kind:
        case "div":
            return f"(({_poly(arena, a.args[0])}) // ({_poly(arena, a.args[1])}))"
        case "min" | "max":
            return f"{a.kind}({args})"
        case "elem":
            return f"{a.name}[{args}]"
        case "phi":
            return f"where({_pred(arena, a.pred) if a.pred else '?'}, {args})"
        case _:
            return a.name


def _pred(arena: Arena, p: Pred) -> str:
    match p.op:
        case "le" | "eq" | "ne":
            left = {m: c for m, c in p.data.terms.items() if m and _positive(c)}
            right = p.data - Poly(left)
            sign = {"le": "<=", "eq": "==", "ne": "!="}[p.op]
            return f"{_poly(arena, Poly(left))} {sign} {_poly(arena, -right)}"
        case "and" | "or":
            return f" {p.op} ".join(f"({_pred(arena, q)})" for q in p.args)
        case "not":
            return f"not ({_pred(arena, p.args[0])})"
        case "fcmp":
            return "a comparison of floats"
        case _:
            return p.op


def _positive(c: object) -> bool:
    return isinstance(c, int) and c > 0
