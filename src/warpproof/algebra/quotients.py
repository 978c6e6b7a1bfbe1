"""Exact division in rational forms: divisors that are linear in one unknown are cancelled where they divide.

The normal form keeps 1/(i+1) as a factor of its own and does not see that i/(i+1) + 1/(i+1) is 1. Here the divisors are
multiplied out and divided back one by one, by polynomial division in i, as far as no remainder is left.
"""

from __future__ import annotations

from fractions import Fraction

from warpproof.algebra.forms import Form, add
from warpproof.algebra.normal import Normaliser
from warpproof.terms import Poly, Real


def cancelled(normal: Normaliser, form: Form, var: int) -> Form:
    """The form with the divisors that are linear in the integer unknown `var` cancelled where they divide it."""
    unknown = normal.arena.of_int(Poly({(var,): 1}))
    powers: dict[Real, int] = {}
    for (_, factors, _) in form:
        for y, k in factors:
            if (k < 0 or y.op == "add") and var in y.free and _linear(normal.form(y), unknown, var) is not None:
                powers[y] = max(powers.get(y, 0), -k)
    for y, k in powers.items():
        form = _cleared(normal, form, y, k)
    for y, k in powers.items():
        while k and (quotient := _divided(normal, form, y, unknown, var)) is not None:
            form, k = quotient, k - 1
        form = normal.forms.mul(form, normal.forms.atom(y, -k)) if k else form
    return form


def _linear(form: Form, unknown: Real, var: int) -> tuple[Fraction, Form] | None:
    """(a, b) with the form a·unknown + b and b free of it, else None."""
    slope, rest = Fraction(0), {}
    for key, c in form.items():
        if key[1] == ((unknown, 1),) and key[0].op == "true" and not key[2]:
            slope = c
        elif var in key[0].free or key[2] or any(var in y.free for y, _ in key[1]):
            return None
        else:
            rest[key] = c
    return (slope, rest) if slope else None


def _cleared(normal: Normaliser, form: Form, divisor: Real, power: int) -> Form:
    """The form times divisor^power, multiplied out."""
    out: Form = {}
    for (g, factors, e), c in form.items():
        have = next((k for y, k in factors if y is divisor), 0)
        t: Form = {(g, tuple((y, k) for y, k in factors if y is not divisor), e): c}
        for _ in range(power + have):
            t = normal.forms.mul(t, normal.form(divisor))
        out = add(out, t)
    return out


def _divided(normal: Normaliser, form: Form, divisor: Real, unknown: Real, var: int) -> Form | None:
    """The form over a linear divisor; None when there is a remainder."""
    linear = _linear(normal.form(divisor), unknown, var)
    by_power = _coefficients(form, unknown, var)
    if linear is None or by_power is None:
        return None
    slope, rest = linear
    out: Form = {}
    for k in range(max(by_power, default=0), 0, -1):
        quotient = {key: c / slope for key, c in by_power.get(k, {}).items()}
        power = normal.forms.atom(unknown, k - 1) if k > 1 else normal.forms.constant(1)
        out = add(out, normal.forms.mul(quotient, power))
        by_power[k - 1] = add(by_power.get(k - 1, {}), normal.forms.mul(quotient, rest), -1)
    return out if not by_power.get(0) else None


def _coefficients(form: Form, unknown: Real, var: int) -> dict[int, Form] | None:
    """The form as a polynomial in the unknown; factors that depend on it otherwise count as coefficients."""
    out: dict[int, Form] = {}
    for (g, factors, e), c in form.items():
        power = next((k for y, k in factors if y is unknown), 0)
        if power < 0:
            return None
        key = (g, tuple((y, k) for y, k in factors if y is not unknown), e)
        out.setdefault(power, {})[key] = c
    return out
