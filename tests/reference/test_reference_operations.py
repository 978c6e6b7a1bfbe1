"""Every traced NumPy operation against real NumPy, at all indices of small shapes."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from agreement import assert_agrees, buffer, launch_of
from hypothesis import given, settings
from hypothesis import strategies as st

# name -> (function of x [n, m], y [n, m], v [m], k integer [n, m], output shape)
ELEMENTWISE: dict[str, Callable[..., Any]] = {
    "add": lambda x, y, v, k: x + y,
    "broadcast": lambda x, y, v, k: x * v - v[None, :] + x[:, :1],
    "scalar": lambda x, y, v, k: 2 * x - 1.5 + np.float32(0.1) * y,
    "divide": lambda x, y, v, k: x / (1 + y * y),
    "floor_divide": lambda x, y, v, k: (x // (1 + y * y)) + np.floor_divide(k, 3),
    "remainder": lambda x, y, v, k: x % 1.5 + np.mod(k, 7) + k % -4,
    "power": lambda x, y, v, k: x**2 + x**3 + (1 + y * y) ** 0.5 + (1 + x * x) ** -1.5 + np.power(k, 2) + 2.0**x,
    "negative": lambda x, y, v, k: -x + abs(y) + np.fabs(x) + (-k),
    "exp": lambda x, y, v, k: np.exp(x / 4) + np.exp2(y) + np.expm1(x),
    "log": lambda x, y, v, k: np.log(1 + x * x) + np.log2(1 + y * y) + np.log1p(x * x) + np.log10(2 + y * y),
    "sqrt": lambda x, y, v, k: np.sqrt(x * x + 1) + np.square(y) + np.reciprocal(1 + x * x),
    "trigonometry": lambda x, y, v, k: (
        np.sin(x) + np.cos(y) + np.tanh(x) + np.sinh(x / 4) + np.cosh(y / 4) + np.tan(x / 8)
    ),
    "maximum": lambda x, y, v, k: np.maximum(x, y) + np.minimum(x, v) + np.fmax(x, 0) + np.fmin(k, 5),
    "clip": lambda x, y, v, k: np.clip(x, -1, 1) + np.clip(k, 10, None) + y.clip(0, 1) + np.clip(x, None, 0.5),
    "where": lambda x, y, v, k: np.where(x > y, x, -y) + np.where(k >= 50, 1, 2) + np.where(x == y, k, 0),
    "sign": lambda x, y, v, k: np.sign(x) + np.sign(k - 50) + np.floor(x) + np.ceil(y),
    "logic": lambda x, y, v, k: np.where(
        np.logical_and(x > 0, ~(y > 0)) | (x < -1), x, np.where((k > 3) ^ (y > 0), y, 0)
    ),
    "comparisons": lambda x, y, v, k: (x < y) * 1.0 + (x <= y) * 2.0 + (x != y).astype(float) + (k == 5) * 3.0,
    "bits": lambda x, y, v, k: (k & 15) + (k | 6) + (k ^ 9) + (k >> 2) + (k << 3) + (k & 0b1010110) + (~k),
    "integers": lambda x, y, v, k: (k * 3 + 1 - k // 2) / 2,
    "asarray": lambda x, y, v, k: (
        np.asarray(x, np.float64) + k.astype(np.float32) + np.array(y, dtype=np.float16, copy=True)
    ),
    "isfinite": lambda x, y, v, k: np.where(np.isfinite(x), x, 0) + np.where(np.isnan(y), 0, y),
    "masked": lambda x, y, v, k: np.exp(np.where(x > 0, x, -np.inf)) + np.maximum(np.where(y > 0, y, -np.inf), -3),
    "linspace": lambda x, y, v, k: x * np.arange(v.shape[0]) + np.arange(x.shape[0])[:, None],
    "constants": lambda x, y, v, k: x * np.array([1.0, 2.0, 3.0])[1] + np.array([[1, 2], [3, 4]])[1, 0] + math.pi,
    "full": lambda x, y, v, k: np.zeros_like(x) + np.ones(x.shape) + np.full(x.shape, 2.5) + np.full_like(k, 3),
    "eye": lambda x, y, v, k: x @ np.eye(v.shape[0]) + x @ np.eye(v.shape[0], k=1),
    "reductions": lambda x, y, v, k: (
        x.sum(axis=1, keepdims=True) + x.mean(0) + x.max(axis=0) - y.min(axis=-1, keepdims=True) + v.sum() + np.mean(y)
    ),
    "var": lambda x, y, v, k: x.var(axis=1, keepdims=True) + np.std(y, axis=0) + np.var(x, axis=(0, 1)) + x.std(),
    "ddof": lambda x, y, v, k: np.var(np.concatenate([x, y]), axis=0, ddof=1) + x * 0,
    "multiaxis": lambda x, y, v, k: x * np.sum(y, axis=(0, 1)) + np.max(x) - np.min(y, axis=None, keepdims=True),
    "prod": lambda x, y, v, k: np.prod(x / 2, axis=1, keepdims=True) + y,
    "anyall": lambda x, y, v, k: (
        np.where(np.any(x > 1, axis=1), 1, 0)[:, None] + np.where(np.all(x < 1.5, axis=0), y, x)
    ),
    "intsum": lambda x, y, v, k: x / (1.0 + k.sum(axis=1, keepdims=True)) + k.max() + np.count_nonzero(x > 0),
    "argmax": lambda x, y, v, k: np.argmax(x, axis=1)[:, None] + y * 0 + np.argmin(y, axis=0) + x.argmax(),
    "cumsum": lambda x, y, v, k: np.cumsum(x, axis=1) + y.cumsum(axis=0) + np.cumprod(x / 2, axis=1),
    "softmax": lambda x, y, v, k: (
        np.exp(x - x.max(axis=1, keepdims=True)) / np.exp(x - x.max(1, keepdims=True)).sum(1, keepdims=True)
    ),
    "norm": lambda x, y, v, k: np.linalg.norm(x) + np.linalg.norm(y, axis=1, keepdims=True) + x,
    "matmul": lambda x, y, v, k: (x @ y.T) @ y + (x @ v)[:, None] + np.dot(x, v)[:, None] + np.matmul(v, y.T)[:, None],
    "einsum": lambda x, y, v, k: (
        np.einsum("ij,kj->ik", x, y) @ y
        + np.einsum("ij,j->i", x, v)[:, None]
        + np.einsum("ij->", x)
        + np.einsum("ij,ij->ij", x, y)
        + np.einsum("ij", x)
    ),
    "outer": lambda x, y, v, k: (
        np.outer(x[:, 0], v) + np.inner(x, v)[:, None] + np.vdot(x, y) + np.add.outer(x[:, 0], v)
    ),
    "tensordot": lambda x, y, v, k: np.tensordot(x, y, axes=([1], [1])) @ y + np.tensordot(x, v, 1)[:, None],
    "slices": lambda x, y, v, k: x[::-1] + y[:, ::-1] + x[-1] + y[0, ...] + x[:, -1:] + x[0:1, None, 0],
    "gather": lambda x, y, v, k: (
        x[np.arange(x.shape[0])[:, None], np.arange(v.shape[0])[::-1]] + v[np.arange(v.shape[0])]
    ),
    "concatenate": lambda x, y, v, k: (
        np.concatenate([x, y], axis=0)[: x.shape[0]]
        + np.stack([x, y], axis=1)[:, 1]
        + np.stack([x, y])[0]
        + np.concatenate((x[:, :1], y, x), axis=1)[:, 1 : 1 + y.shape[1]]
    ),
    "vhstack": lambda x, y, v, k: np.vstack([v, x])[1:] + np.hstack([x, y])[:, v.shape[0] :],
    "pad": lambda x, y, v, k: (
        np.pad(x, 1)[:-2, 2:]
        + np.pad(y, ((1, 0), (0, 2)))[:-1, 2:]
        + np.pad(x, ((0, 1), (2, 0)), constant_values=7.0)[1:, : v.shape[0]]
    ),
    "reshape": lambda x, y, v, k: (
        x.reshape(-1).reshape(x.shape)
        + y.reshape(x.shape[0], v.shape[0], 1)[:, :, 0]
        + np.ravel(x)[0]
        + np.reshape(y, (1, *x.shape))[0]
        + x.T.reshape(-1)[0]
        + x.flatten()[-1]
    ),
    "transpose": lambda x, y, v, k: x.T.T + np.transpose(y, (1, 0)).T + np.swapaxes(x, 0, 1).T + np.moveaxis(y, 0, 1).T,
    "squeeze": lambda x, y, v, k: (
        np.squeeze(x[None], 0) + np.expand_dims(y, 1)[:, 0] + np.expand_dims(v, (0,)) + y[..., None][..., 0]
    ),
    "broadcast_to": lambda x, y, v, k: np.broadcast_to(v, x.shape) + np.broadcast_to(x[:, :1], x.shape),
    "flip": lambda x, y, v, k: np.flip(x) + np.flip(y, axis=1) + np.fliplr(x) + np.flipud(y),
    "roll": lambda x, y, v, k: np.roll(x, 1, axis=1) + np.roll(y, -1, axis=0) + np.roll(v, 2),
    "repeat": lambda x, y, v, k: (
        np.repeat(x, 2, axis=1)[:, ::2] + np.tile(y, (1, 2))[:, v.shape[0] :] + np.repeat(v, 3)[::3]
    ),
    "tril": lambda x, y, v, k: np.tril(x) + np.triu(y, 1) + np.tril(x, -1) + np.tri(x.shape[0], v.shape[0]),
    "take": lambda x, y, v, k: np.take(x, np.arange(v.shape[0])[::-1], axis=1) + np.take(v, 0),
    "diagonal": lambda x, y, v, k: np.diag(v).diagonal() + x + np.trace(np.diag(v)),
    "split": lambda x, y, v, k: np.split(np.concatenate([x, y]), [x.shape[0]])[1],
    "iterate": lambda x, y, v, k: sum(a for a in np.stack([x, y])),
    "builtins": lambda x, y, v, k: (
        x * max(x.shape[0], 3) + min(len(v), 2) + float(x.shape[1]) + abs(-y.shape[0]) + len(v)
    ),
    "reduce": lambda x, y, v, k: np.add.reduce(x, axis=0) + np.maximum.reduce(y, axis=1, keepdims=True),
}


def _fresh(x: Any, y: Any, v: Any, k: Any) -> Any:
    out = np.zeros(x.shape)
    out[:, 1:] = x[:, :-1]
    out[0] += y[0]
    out[:, ::-1] *= 2
    out[-1, :] = v
    row = out[0]
    row += 1
    out.T[0, :] -= y[:, 0]
    return out


def _masked_store(x: Any, y: Any, v: Any, k: Any) -> Any:
    out = np.array(x, np.float64)
    out[out > 1] = 1
    out[k < 50] = -2.0
    return out


def _empty(x: Any, y: Any, v: Any, k: Any) -> Any:
    out = np.empty(x.shape)
    out[:, 0] = 1
    out[:, 1:] = x[:, 1:]
    return out


def _helper(x: Any, y: Any, v: Any, k: Any) -> Any:
    def gelu(z: Any, c: float = 0.5) -> Any:
        return c * z * (1 + np.tanh(z))

    return scaled(gelu(x)) + (lambda z: np.exp(z))(y / 4)


def scaled(z: Any) -> Any:
    return np.sqrt(1 + z * z)


def _loops(x: Any, y: Any, v: Any, k: Any) -> Any:
    total = np.zeros(x.shape)
    for i in range(3):
        for j in range(2):
            if i == j:
                continue
            total = total + x * i + y * j
    return total


def _symbolic_sum(x: Any, y: Any, v: Any, k: Any) -> Any:
    total = np.zeros(x.shape[0])
    for j in range(x.shape[1]):
        total = total + x[:, j] * v[j]
    return y + total[:, None]


def _symbolic_scalar(x: Any, y: Any, v: Any, k: Any) -> Any:
    total = 0.0
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            total += x[i, j] * y[i, j]
    return y * total


def _symbolic_grown(x: Any, y: Any, v: Any, k: Any) -> Any:
    total = 0
    best = -np.inf
    for j in range(x.shape[1]):
        total = total + x[:, j]
        best = np.maximum(best, y[:, j])
    return x + total[:, None] * best[:, None]


def _symbolic_scatter(x: Any, y: Any, v: Any, k: Any) -> Any:
    out = np.zeros(x.shape)
    for j in range(1, x.shape[1]):
        scale = v[j] * 2
        out[:, j] = x[:, j - 1] * scale
    return out


def _symbolic_in_place(x: Any, y: Any, v: Any, k: Any) -> Any:
    out = np.array(y, np.float64)
    for j in range(0, 2 * x.shape[1], 2):
        out += x[:, j // 2][:, None]
        out[0] += 1
    return out


STATEMENTS = {
    f.__name__.strip("_"): f
    for f in (
        _fresh,
        _masked_store,
        _empty,
        _helper,
        _loops,
        _symbolic_sum,
        _symbolic_scalar,
        _symbolic_grown,
        _symbolic_scatter,
        _symbolic_in_place,
    )
}
ALL = {**ELEMENTWISE, **STATEMENTS}
LAUNCH = launch_of(
    [
        buffer("x", "n", "m"),
        buffer("y", "n", "m"),
        buffer("v", "m"),
        buffer("k", "n", "m", dtype="i32", range=["0", "100"]),
        buffer("out", "n", "m", kind="ptr_out", dtype="f32"),
    ],
    ["n", "m"],
    ["n >= 2", "m >= 3", "n <= 1000", "m <= 1000"],
)
_TRACED: dict[str, Any] = {}


def _reference(f: Callable[..., Any]) -> Callable[..., Any]:
    def reference(x: Any, y: Any, v: Any, k: Any, n: Any, m: Any) -> Any:
        return {"out": f(x, y, v, k) + 0.0 * x}

    return reference


@pytest.mark.parametrize("name", sorted(ALL))
def test_operation_agrees_with_numpy(name: str) -> None:
    traced = assert_agrees(_reference(ALL[name]), LAUNCH, [{"n": 2, "m": 3}, {"n": 3, "m": 4}])
    _TRACED[name] = traced


@settings(max_examples=40, deadline=None, derandomize=True)
@given(st.sampled_from(sorted(ALL)), st.integers(2, 5), st.integers(3, 6), st.integers(0, 2**32))
def test_operation_agrees_at_drawn_shapes(name: str, n: int, m: int, seed: int) -> None:
    assert_agrees(_reference(ALL[name]), LAUNCH, [{"n": n, "m": m}], seed, traced=_TRACED.get(name))
