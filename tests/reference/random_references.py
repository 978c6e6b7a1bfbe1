"""Random references out of the statements that people write, as source text."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

import numpy as np

_NAMES = ("p", "q", "s", "u", "i", "j", "y", "z")


class Writer:
    """Writes one reference on x [n, m], w [m] and k [n] (integers from 0 to m − 1)."""

    def __init__(self, seed: int) -> None:
        self.rng = np.random.default_rng(seed)
        self.lines: list[str] = []

    def pick(self, *options: str) -> str:
        return options[int(self.rng.integers(len(options)))]

    def source(self) -> str:
        """The text of the function."""
        self.lines = ["def reference(x, w, k, n, m):"]
        self.put(1, f"y = {self.pick('np.zeros((n, m))', 'x.copy()', 'np.ones((n, m)) * w', 'np.empty((n, m))')}")
        self.put(1, "y[:] = 0.5 * x" if "empty" in self.lines[-1] else "z = np.zeros(n)")
        self.put(1, f"z = {self.pick('np.zeros(n)', 'x[:, 0] * 1.0', 'np.full(n, 2.0)')}")
        self.put(1, f"s = {self.pick('0.0', '1.5', 'w[0]')}")
        self.put(1, "u = 0")
        for _ in range(int(self.rng.integers(1, 4))):
            self.statement(1, ())
        self.put(1, "return {'y': y, 'z': z + s + 0.0 * u}")
        return "\n".join(self.lines) + "\n"

    def put(self, depth: int, text: str) -> None:
        self.lines.append("    " * depth + text)

    # ------------------------------------------------------------------ statements
    def statement(self, depth: int, loops: tuple[str, ...]) -> None:
        kind = self.pick("store", "store", "store", "scalar", "if", "if", "for", "for", "slice", "mask", "count")
        if kind == "for" and len(loops) < 2 and depth < 4:
            self.loop(depth, loops)
        elif kind == "if" and depth < 4:
            self.put(depth, f"if {self.condition(loops)}:")
            self.block(depth + 1, loops)
            if self.rng.random() < 0.5:
                self.put(depth, "else:")
                self.block(depth + 1, loops)
        elif kind == "scalar":
            self.put(depth, f"s = {self.pick('s +', 's *', '', 's + 0.5 *')} {self.value(loops)}")
        elif kind == "count":
            self.put(depth, self.pick("u += 1", "u = u + 2", "u = 3"))
        elif kind == "slice" and not loops:
            self.put(depth, self.pick(
                "y[1:] += y[:-1]", "y[:, ::2] = x[:, ::2] * 2", "y[:, 1:] = y[:, :-1]", "y[::-1] -= x",
                "z[1:] = z[:-1]",
                "y = np.where(x > 0, y, -y)", "y = np.cumsum(y, axis=1)", "z = y.sum(axis=1)", "y = y + z[:, None]",
                "y[np.arange(n), k] = 7.0", "z = np.maximum.accumulate(z)", "y = np.roll(y, 1, axis=0)",
                "z = z + np.array([sum(x[i, j] * w[j] for j in range(m)) for i in range(n)])",
                "z += np.take_along_axis(x, k[:, None], axis=1)[:, 0]", "z = x[np.arange(n), x.argmax(axis=1)]"))
        elif kind == "mask" and not loops:
            self.put(depth, self.pick(
                "y[x > 0] = 1.0", "y[y > 0.25] *= 2", "z[k == 0] = -1.0", "y[x < 0] = x[x < 0] + 1"))
        else:
            self.put(depth, self.store(loops))

    def block(self, depth: int, loops: tuple[str, ...]) -> None:
        for _ in range(int(self.rng.integers(1, 3))):
            self.statement(depth, loops)

    def loop(self, depth: int, loops: tuple[str, ...]) -> None:
        name = "ij"[len(loops)] if not loops else "j" if loops[0] == "i" else "i"
        size = {"i": "n", "j": "m"}[name]
        bounds = self.pick(size, size, f"1, {size}", f"{size} - 1", f"{size} - 2, -1, -1", f"0, {size}, 2")
        self.put(depth, f"for {name} in range({bounds}):")
        if self.rng.random() < 0.2:
            self.put(depth + 1, f"if {self.condition((*loops, name))}:")
            self.put(depth + 2, "continue")
        self.block(depth + 1, (*loops, name))

    def store(self, loops: tuple[str, ...]) -> str:
        i, j = ("i" if "i" in loops else "0"), ("j" if "j" in loops else "-1")
        target = self.pick(f"y[{i}, {j}]", f"y[{i}, {j}]", f"z[{i}]", f"y[n - 1 - {i}, {j}]" if i == "i" else "y[0, 0]",
                           f"y[{i}]", f"y[:, {j}]")
        value = self.value(loops)
        if target.startswith("y[:, "):
            value = self.pick(f"x[:, {j}]", "z", f"y[:, {j}] * 2", f"y[:, {j} - 1] + 1" if j == "j" else "z * 2", value)
        elif target == f"y[{i}]":
            value = self.pick(f"x[{i}]", "w", value)
        elif self.rng.random() < 0.2 and "i" in loops and target.startswith("z"):
            value = self.pick("z[i - 1] + x[i, 0]", "s", "z[i - 1]")
        return f"{target} {self.pick('=', '=', '+=', '*=')} {value}"

    # ------------------------------------------------------------------ expressions
    def value(self, loops: tuple[str, ...]) -> str:
        i, j = ("i" if "i" in loops else "0"), ("j" if "j" in loops else "0")
        term = self.pick(f"x[{i}, {j}]", f"w[{j}]", f"x[{i}, k[{i}]]", "0.5", f"z[{i}]", f"y[{i}, {j}]", "s",
                         f"x[{i} - 1, {j}]", f"np.exp(x[{i}, {j}])", f"x[{i}].sum()", f"w[:{j}].sum()")
        if self.rng.random() < 0.15:
            return f"({term} if {self.condition(loops)} else {self.pick('0.0', '1.0', f'w[{j}]')})"
        if self.rng.random() < 0.3:
            return f"{term} {self.pick('+', '*', '-')} {self.pick('w[0]', f'x[{i}, {j}]', '2.0')}"
        return term

    def condition(self, loops: tuple[str, ...]) -> str:
        i, j = ("i" if "i" in loops else "0"), ("j" if "j" in loops else "0")
        one = self.pick(f"x[{i}, {j}] > 0", f"x[{i}, {j}] > s", f"{i} > 0", f"{j} % 2 == 0", f"k[{i}] == {j}", "n > m",
                        f"w[{j}] <= x[{i}, 0]", f"0 <= {i} - 1 < n")
        if self.rng.random() < 0.2:
            return f"{one} {self.pick('and', 'or')} {self.pick(f'{j} < m - 1', f'not x[{i}, 0] > 1')}"
        return one


def compiled(seed: int) -> tuple[str, Callable[..., Any]]:
    """(source, function) of a random reference; its source can be found by `inspect`."""
    text, name = Writer(seed).source(), f"<reference {seed}>"
    linecache.cache[name] = (len(text), None, text.splitlines(keepends=True), name)
    namespace: dict[str, Any] = {"np": np, "__name__": "random_reference"}
    exec(compile(text, name, "exec"), namespace)
    function: Callable[..., Any] = namespace["reference"]
    return text, function
