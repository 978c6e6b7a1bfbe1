"""References as people write them for the kernels of everyday work, with the launch facts they need."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from agreement import buffer, launch_of

from warpproof.reference import Launch

Sizes = Mapping[str, int]
CASES: dict[str, Case] = {}


@dataclass(frozen=True)
class Case:
    """A reference, its launch, and sizes at which it is compared with NumPy."""

    reference: Callable[..., Any]
    launch: Launch
    samples: Sequence[Sizes]
    scalars: Mapping[str, float] = field(default_factory=dict)


def case(
    ins: Mapping[str, str], outs: Mapping[str, str], samples: Sequence[Sizes], *where: str, **scalars: float
) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Register a reference. Buffers are `name: "dtype dim dim …"`, an input's range as `dtype[lo,hi]`."""

    def register(f: Callable[..., Any]) -> Callable[..., Any]:
        names = list(samples[0])
        params = [_buffer(n, text, "ptr_in") for n, text in ins.items()]
        params += [_buffer(n, text, "ptr_out") for n, text in outs.items()]
        params += [{"name": n, "kind": "scalar", "dtype": "f32"} for n in scalars]
        limits = [f"{n} <= 1000" for n in names]
        CASES[f.__name__] = Case(f, launch_of(params, names, [*where, *limits]), samples, scalars)
        return f

    return register


def _buffer(name: str, text: str, kind: str) -> dict[str, Any]:
    dtype, *dims = text.split(" ")
    dtype, _, limits = dtype.partition("[")
    extra = {"range": limits[:-1].split(",")} if limits else {}
    return buffer(name, *dims, kind=kind, dtype=dtype, **extra)


# ---------------------------------------------------------------------- normalisation
@case({"x": "f32 N C H W"}, {"mean": "f32 C", "var": "f32 C", "y": "f32 N C H W"},
      [{"N": 2, "C": 3, "H": 2, "W": 2}, {"N": 1, "C": 1, "H": 1, "W": 1}],
      "N >= 1", "C >= 1", "H >= 1", "W >= 1", eps=0.125)
def batchnorm_training(x, eps, **sizes):
    mean = x.mean(axis=(0, 2, 3))
    var = x.var(axis=(0, 2, 3))
    y = (x - mean[None, :, None, None]) / np.sqrt(var[None, :, None, None] + eps)
    return {"mean": mean, "var": var, "y": y}


@case({"x": "f32 N C H W"}, {"mean": "f32 C", "var": "f32 C"},
      [{"N": 2, "C": 3, "H": 2, "W": 2}, {"N": 1, "C": 1, "H": 1, "W": 1}],
      "N >= 1", "C >= 1", "H >= 1", "W >= 1")
def batchnorm_loops(x, N, C, H, W):
    mean = np.zeros(C)
    var = np.zeros(C)
    for c in range(C):
        s = 0.0
        s2 = 0.0
        for n in range(N):
            for h in range(H):
                for w in range(W):
                    s += x[n, c, h, w]
                    s2 += x[n, c, h, w] ** 2
        mean[c] = s / (N * H * W)
        var[c] = s2 / (N * H * W) - mean[c] ** 2
    return {"mean": mean, "var": var}


@case({"x": "f32 N C H W", "g": "f32 C", "b": "f32 C"}, {"y": "f32 N C H W"},
      [{"N": 2, "C": 4, "H": 2, "W": 3, "G": 2}, {"N": 1, "C": 3, "H": 1, "W": 1, "G": 1}],
      "N >= 1", "C >= 1", "H >= 1", "W >= 1", "G >= 1", "C % G == 0", eps=0.25)
def groupnorm(x, g, b, N, C, H, W, G, eps):
    xg = x.reshape(N, G, C // G, H, W)
    mu = xg.mean(axis=(2, 3, 4), keepdims=True)
    var = xg.var(axis=(2, 3, 4), keepdims=True)
    y = ((xg - mu) / np.sqrt(var + eps)).reshape(N, C, H, W)
    return {"y": y * g[:, None, None] + b.reshape(1, C, 1, 1)}


@case({"x": "f32 N C HW"}, {"y": "f32 N C HW"},
      [{"N": 2, "C": 4, "HW": 3, "G": 2}], "N >= 1", "HW >= 1", "G >= 1", "C >= 1", "C % G == 0")
def groupnorm_flat(x, N, C, HW, G):
    flat = x.reshape(N * G, -1)
    flat = flat - flat.mean(1, keepdims=True)
    flat = flat / np.sqrt((flat * flat).mean(1, keepdims=True) + 1e-5)
    return {"y": flat.reshape(x.shape)}


@case({"x": "f32 rows n", "r": "f32 rows n", "w": "f32 n"}, {"h": "f32 rows n", "y": "f32 rows n"},
      [{"rows": 2, "n": 3}, {"rows": 1, "n": 1}], "n >= 1", eps=0.5)
def rmsnorm_residual(x, r, w, eps, **_):
    h = x + r
    inv = 1.0 / np.sqrt(np.mean(h * h, axis=-1, keepdims=True) + eps)
    return {"h": h, "y": h * inv * w}


@case({"x": "f32 rows n"}, {"y": "f32 rows n"}, [{"rows": 2, "n": 3}, {"rows": 3, "n": 1}], "n >= 1")
def softmax_by_rows(x, rows, n):
    y = np.zeros((rows, n))
    for r in range(rows):
        e = np.exp(x[r] - np.max(x[r]))
        y[r] = e / e.sum()
    return {"y": y}


@case({"x": "f32 rows n"}, {"y": "f32 rows"}, [{"rows": 2, "n": 3}, {"rows": 1, "n": 1}], "n >= 1")
def logsumexp_by_rows(x, rows, n):
    y = np.empty(rows)
    for r in range(rows):
        m = -np.inf
        for j in range(n):
            m = max(m, x[r, j])
        s = 0
        for j in range(n):
            s += np.exp(x[r, j] - m)
        y[r] = m + np.log(s)
    return {"y": y}


# ---------------------------------------------------------------------- convolution and pooling
@case({"x": "f32 N C H W", "w": "f32 K C R S"}, {"y": "f32 N K H-R+1 W-S+1"},
      [{"N": 1, "C": 2, "H": 4, "W": 3, "K": 2, "R": 3, "S": 2}],
      "R >= 1", "S >= 1", "H >= R", "W >= S")
def conv2d_valid(x, w, N, C, H, W, K, R, S):
    OH, OW = H - R + 1, W - S + 1
    y = np.zeros((N, K, OH, OW))
    for r in range(R):
        for s in range(S):
            y += np.einsum("nchw,kc->nkhw", x[:, :, r : r + OH, s : s + OW], w[:, :, r, s])
    return {"y": y}


@case({"x": "f32 N C H W", "w": "f32 K C R S"},
      {"y": "f32 N K (H+2*p-d*(R-1)-1)//t+1 (W+2*p-d*(S-1)-1)//t+1"},
      [{"N": 1, "C": 2, "H": 5, "W": 4, "K": 2, "R": 2, "S": 3, "p": 1, "t": 2, "d": 1},
       {"N": 1, "C": 1, "H": 5, "W": 6, "K": 1, "R": 3, "S": 2, "p": 0, "t": 1, "d": 2}],
      "R >= 1", "S >= 1", "p >= 0", "t >= 1", "d >= 1", "H + 2*p >= d*(R-1)+1", "W + 2*p >= d*(S-1)+1")
def conv2d_strided(x, w, N, C, H, W, K, R, S, p, t, d):
    xp = np.pad(x, ((0, 0), (0, 0), (p, p), (p, p)))
    OH = (H + 2 * p - d * (R - 1) - 1) // t + 1
    OW = (W + 2 * p - d * (S - 1) - 1) // t + 1
    y = np.zeros((N, K, OH, OW))
    for r in range(R):
        for s in range(S):
            window = xp[:, :, r * d : r * d + t * (OH - 1) + 1 : t, s * d : s * d + t * (OW - 1) + 1 : t]
            y += np.einsum("nchw,kc->nkhw", window, w[:, :, r, s])
    return {"y": y}


@case({"x": "f32 N C H W", "w": "f32 C R S"}, {"y": "f32 N C H W"},
      [{"N": 1, "C": 2, "H": 4, "W": 3, "R": 3, "S": 1}, {"N": 1, "C": 1, "H": 1, "W": 2, "R": 5, "S": 3}],
      "R >= 1", "S >= 1", "R % 2 == 1", "S % 2 == 1")
def depthwise_same(x, w, N, C, H, W, R, S):
    xp = np.pad(x, ((0, 0), (0, 0), (R // 2, R // 2), (S // 2, S // 2)))
    y = np.zeros_like(x)
    for r in range(R):
        for s in range(S):
            y = y + xp[:, :, r : r + H, s : s + W] * w[None, :, r, s, None, None]
    return {"y": y}


@case({"x": "f32 N C H W", "w": "f32 C 3 3"}, {"y": "f32 N C H W"},
      [{"N": 1, "C": 2, "H": 4, "W": 3}, {"N": 1, "C": 1, "H": 1, "W": 1}])
def depthwise_fixed(x, w, N, C, H, W):
    xp = np.pad(x, [(0, 0), (0, 0), (1, 1), (1, 1)], mode="constant")
    return {"y": sum(w[:, r, s].reshape(C, 1, 1) * xp[..., r : r + H, s : s + W] for r in range(3) for s in range(3))}


@case({"x": "f32 C H W"}, {"cols": "f32 C*R*S (H-R+1)*(W-S+1)"},
      [{"C": 2, "H": 3, "W": 4, "R": 2, "S": 3}, {"C": 1, "H": 2, "W": 2, "R": 1, "S": 2}],
      "R >= 1", "S >= 1", "H >= R", "W >= S")
def im2col_loops(x, C, H, W, R, S):
    OH, OW = H - R + 1, W - S + 1
    cols = np.zeros((C, R, S, OH, OW))
    for r in range(R):
        for s in range(S):
            cols[:, r, s] = x[:, r : r + OH, s : s + OW]
    return {"cols": cols.reshape(C * R * S, OH * OW)}


@case({"x": "f32 C H W"}, {"cols": "f32 C*R*S (H-R+1)*(W-S+1)"},
      [{"C": 2, "H": 3, "W": 4, "R": 2, "S": 3}, {"C": 1, "H": 2, "W": 2, "R": 1, "S": 2}],
      "C >= 1", "R >= 1", "S >= 1", "H >= R", "W >= S")
def im2col_windows(x, C, H, W, R, S):
    v = np.lib.stride_tricks.sliding_window_view(x, (R, S), axis=(1, 2))
    return {"cols": v.transpose(0, 3, 4, 1, 2).reshape(C * R * S, -1)}


@case({"x": "f32 C H W"}, {"y": "f32 C (H-k)//s+1 (W-k)//s+1"},
      [{"C": 2, "H": 5, "W": 6, "k": 3, "s": 2}, {"C": 1, "H": 2, "W": 3, "k": 2, "s": 1}],
      "k >= 1", "s >= 1", "H >= k", "W >= k")
def maxpool_windows(x, C, H, W, k, s):
    v = np.lib.stride_tricks.sliding_window_view(x, (k, k), axis=(1, 2))[:, ::s, ::s]
    return {"y": v.max(axis=(-1, -2))}


@case({"x": "f32 C H W"}, {"y": "f32 C (H-k)//s+1 (W-k)//s+1", "a": "f32 C (H-k)//s+1 (W-k)//s+1"},
      [{"C": 2, "H": 5, "W": 6, "k": 3, "s": 2}, {"C": 1, "H": 2, "W": 3, "k": 2, "s": 1}],
      "k >= 1", "s >= 1", "H >= k", "W >= k")
def pools_by_loops(x, C, H, W, k, s):
    OH, OW = (H - k) // s + 1, (W - k) // s + 1
    y = np.full((C, OH, OW), -np.inf)
    a = np.zeros((C, OH, OW))
    for r in range(k):
        for c in range(k):
            window = x[:, r : r + s * OH : s, c : c + s * OW : s]
            y = np.maximum(y, window)
            a += window / (k * k)
    return {"y": y, "a": a}


@case({"x": "f32 C H W"}, {"y": "f32 C H//2 W//2"},
      [{"C": 2, "H": 4, "W": 6}, {"C": 1, "H": 2, "W": 2}], "H % 2 == 0", "W % 2 == 0", "H >= 2", "W >= 2")
def maxpool_reshape(x, C, H, W):
    return {"y": x.reshape(C, H // 2, 2, W // 2, 2).max(axis=(2, 4))}


@case({"x": "f32 C H W"}, {"y": "f32 C H//2 W//2"},
      [{"C": 2, "H": 4, "W": 6}, {"C": 1, "H": 2, "W": 2}], "H % 2 == 0", "W % 2 == 0", "H >= 2", "W >= 2")
def avgpool_slices(x, C, H, W):
    return {"y": 0.25 * (x[:, ::2, ::2] + x[:, 1::2, ::2] + x[:, ::2, 1::2] + x[:, 1::2, 1::2])}


@case({"x": "f32 C H W"}, {"y": "f32 C (H-k)//s+1 (W-k)//s+1"},
      [{"C": 2, "H": 5, "W": 6, "k": 3, "s": 2}, {"C": 1, "H": 2, "W": 3, "k": 2, "s": 1}],
      "k >= 1", "s >= 1", "H >= k", "W >= k", "C >= 1")
def avgpool_by_pixel(x, C, H, W, k, s):
    OH, OW = (H - k) // s + 1, (W - k) // s + 1
    y = np.zeros((C, OH, OW))
    for i in range(OH):
        for j in range(OW):
            y[:, i, j] = x[:, i * s : i * s + k, j * s : j * s + k].mean(axis=(1, 2))
    return {"y": y}


@case({"x": "f32 n", "w": "f32 k"}, {"y": "f32 n"}, [{"n": 5, "k": 3}, {"n": 1, "k": 1}, {"n": 2, "k": 4}],
      "k >= 1", "n >= 1")
def causal_conv1d(x, w, n, k):
    xp = np.pad(x, (k - 1, 0))
    return {"y": sum_taps(xp, w, n, k)}


def sum_taps(xp, w, n, k):
    acc = np.zeros(n)
    for t in range(k):
        acc += w[t] * xp[t : t + n]
    return acc


@case({"x": "f32 n", "w": "f32 k"}, {"y": "f32 n-k+1"}, [{"n": 5, "k": 3}, {"n": 1, "k": 1}], "k >= 1", "n >= k")
def correlate(x, w, n, k):
    return {"y": np.lib.stride_tricks.sliding_window_view(x, k) @ w}


# ---------------------------------------------------------------------- stencils
@case({"x": "f32 H W"}, {"y": "f32 H W"}, [{"H": 3, "W": 4}, {"H": 1, "W": 1}, {"H": 2, "W": 3}], "H >= 1", "W >= 1")
def stencil5_padded(x, H, W):
    p = np.pad(x, 1)
    return {"y": p[:-2, 1:-1] + p[2:, 1:-1] + p[1:-1, :-2] + p[1:-1, 2:] - 4 * x}


@case({"x": "f32 H W"}, {"y": "f32 H W"}, [{"H": 3, "W": 4}, {"H": 2, "W": 2}, {"H": 5, "W": 3}], "H >= 2", "W >= 2")
def stencil5_interior(x, H, W):
    y = np.zeros_like(x)
    y[1:-1, 1:-1] = x[:-2, 1:-1] + x[2:, 1:-1] + x[1:-1, :-2] + x[1:-1, 2:] - 4 * x[1:-1, 1:-1]
    return {"y": y}


@case({"x": "f32 H W"}, {"y": "f32 H W"}, [{"H": 3, "W": 4}, {"H": 1, "W": 1}, {"H": 2, "W": 3}], "H >= 1", "W >= 1")
def stencil5_accumulated(x, H, W):
    out = -4.0 * x
    out[1:] += x[:-1]
    out[:-1] += x[1:]
    out[:, 1:] += x[:, :-1]
    out[:, :-1] += x[:, 1:]
    return {"y": out}


@case({"x": "f32 D H W"}, {"y": "f32 D H W"}, [{"D": 3, "H": 3, "W": 4}, {"D": 2, "H": 2, "W": 2}],
      "D >= 2", "H >= 2", "W >= 2")
def stencil7_copy(x, D, H, W):
    y = x.copy()
    c = slice(1, -1)
    y[c, c, c] = (x[c, c, c] + x[:-2, c, c] + x[2:, c, c] + x[c, :-2, c] + x[c, 2:, c] + x[c, c, :-2] + x[c, c, 2:]) / 7
    return {"y": y}


@case({"x": "f32 H W"}, {"y": "f32 H W"}, [{"H": 3, "W": 4}, {"H": 1, "W": 1}], "H >= 1", "W >= 1")
def stencil_periodic(x, H, W):
    return {"y": np.roll(x, 1, 0) + np.roll(x, -1, axis=0) + np.roll(x, 1, axis=1) + np.roll(x, (0, -1), axis=(0, 1))}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 5}, {"n": 1}, {"n": 2}], "n >= 1")
def stencil_clamped(x, n):
    i = np.arange(n)
    left, right = np.maximum(i - 1, 0), np.minimum(i + 1, n - 1)
    return {"y": 0.5 * x + 0.25 * (x[left] + x[right])}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 5}, {"n": 3}], "n >= 3")
def stencil_by_loop(x, n):
    y = np.zeros(n)
    y[0] = x[0]
    y[n - 1] = x[n - 1]
    for i in range(1, n - 1):
        y[i] = (x[i - 1] + x[i] + x[i + 1]) / 3.0
    return {"y": y}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 5}, {"n": 1}], "n >= 1")
def stencil_edge_pad(x, n):
    p = np.pad(x, 1, mode="edge")
    return {"y": p[:-2] + p[1:-1] + p[2:]}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 5}, {"n": 2}], "n >= 2")
def stencil_reflect_pad(x, n):
    p = np.pad(x, (1, 1), mode="reflect")
    return {"y": p[:-2] + p[2:]}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 5}, {"n": 1}], "n >= 1")
def stencil_wrap_pad(x, n):
    p = np.pad(x, 1, mode="wrap")
    return {"y": p[:-2] + p[2:]}


@case({"x": "f32 n"}, {"y": "f32 n-1"}, [{"n": 5}, {"n": 1}], "n >= 1")
def differences(x, n):
    return {"y": np.diff(x)}


# ---------------------------------------------------------------------- attention, embeddings
@case({"x": "f32 T D", "c": "f32 T D//2", "s": "f32 T D//2"}, {"y": "f32 T D"},
      [{"T": 2, "D": 4}, {"T": 1, "D": 2}], "D % 2 == 0", "D >= 2")
def rope_halves(x, c, s, T, D):
    a, b = x[..., : D // 2], x[..., D // 2 :]
    return {"y": np.concatenate([a * c - b * s, b * c + a * s], axis=-1)}


@case({"x": "f32 T D", "c": "f32 T D//2", "s": "f32 T D//2"}, {"y": "f32 T D"},
      [{"T": 2, "D": 4}, {"T": 1, "D": 2}], "D % 2 == 0", "D >= 2")
def rope_interleaved(x, c, s, T, D):
    y = np.empty_like(x)
    y[:, 0::2] = x[:, 0::2] * c - x[:, 1::2] * s
    y[:, 1::2] = x[:, 1::2] * c + x[:, 0::2] * s
    return {"y": y}


@case({"x": "f32 T D", "c": "f32 T D//2", "s": "f32 T D//2"}, {"y": "f32 T D"},
      [{"T": 2, "D": 4}, {"T": 1, "D": 2}], "T >= 1", "D % 2 == 0", "D >= 2")
def rope_stacked(x, c, s, T, D):
    x2 = x.reshape(T, -1, 2)
    return {"y": np.stack([x2[..., 0] * c - x2[..., 1] * s, x2[..., 0] * s + x2[..., 1] * c], axis=-1).reshape(T, D)}


@case({"x": "f32 T D", "c": "f32 T D", "s": "f32 T D"}, {"y": "f32 T D"},
      [{"T": 2, "D": 4}, {"T": 1, "D": 2}], "D % 2 == 0", "D >= 2")
def rope_rotate_half(x, c, s, T, D):
    x1, x2 = np.split(x, 2, axis=-1)
    return {"y": x * c + np.concatenate((-x2, x1), axis=-1) * s}


@case({"q": "f32 S d", "k": "f32 S d", "v": "f32 S d"}, {"o": "f32 S d"}, [{"S": 3, "d": 2}, {"S": 1, "d": 1}],
      "S >= 1", "d >= 1")
def attention_causal(q, k, v, S, d):
    scores = q @ k.T / np.sqrt(d)
    scores = np.where(np.tril(np.ones((S, S), dtype=bool)), scores, -np.inf)
    e = np.exp(scores - scores.max(axis=-1, keepdims=True))
    return {"o": (e / e.sum(axis=-1, keepdims=True)) @ v}


@case({"q": "f32 B H S d", "k": "f32 B G S d", "v": "f32 B G S d"}, {"o": "f32 B H S d"},
      [{"B": 1, "H": 4, "G": 2, "S": 3, "d": 2}, {"B": 2, "H": 1, "G": 1, "S": 1, "d": 1}],
      "S >= 1", "d >= 1", "G >= 1", "H >= 1", "H % G == 0")
def attention_grouped(q, k, v, B, H, G, S, d):
    kk = np.repeat(k, H // G, axis=1)
    vv = np.repeat(v, H // G, axis=1)
    s = np.einsum("bhid,bhjd->bhij", q, kk) * (1.0 / math.sqrt(d))
    i = np.arange(S)
    s = np.where(i[:, None] >= i[None, :], s, -np.inf)
    p = np.exp(s - s.max(-1, keepdims=True))
    p /= p.sum(-1, keepdims=True)
    return {"o": np.einsum("bhij,bhjd->bhid", p, vv)}


@case({"table": "f32 V D", "ids": "i32[0,V] B T"}, {"y": "f32 B T D"},
      [{"V": 3, "D": 2, "B": 2, "T": 2}, {"V": 1, "D": 1, "B": 1, "T": 1}], "V >= 1")
def embedding(table, ids, **_):
    return {"y": table[ids]}


@case({"x": "f32 N C", "t": "i32[0,C] N"}, {"loss": "f32 N"}, [{"N": 3, "C": 4}, {"N": 1, "C": 1}], "C >= 1")
def cross_entropy(x, t, N, C):
    m = x.max(axis=1)
    lse = m + np.log(np.exp(x - m[:, None]).sum(axis=1))
    return {"loss": lse - x[np.arange(N), t]}


@case({"x": "f32 N C", "t": "i32[-1,C] N"}, {"loss": "f32 N"}, [{"N": 3, "C": 4}, {"N": 2, "C": 1}], "C >= 1")
def cross_entropy_ignored(x, t, N, C):
    z = np.log(np.exp(x).sum(axis=1))
    safe = np.where(t < 0, 0, t)
    picked = np.take_along_axis(x, safe[:, None], axis=1)[:, 0]
    return {"loss": np.where(t == -1, 0.0, z - picked)}


@case({"x": "f32 T E"}, {"w": "f32 T", "i": "i32 T"}, [{"T": 2, "E": 3}, {"T": 1, "E": 1}], "E >= 1")
def top1_gate(x, T, E):
    p = np.exp(x - x.max(-1, keepdims=True))
    p = p / p.sum(-1, keepdims=True)
    i = np.argmax(p, axis=-1)
    return {"w": np.take_along_axis(p, i[:, None], axis=-1)[:, 0], "i": i.astype(np.int32)}


@case({"x": "f32 T E"}, {"w": "f32 T E"}, [{"T": 2, "E": 3}, {"T": 1, "E": 1}], "E >= 1")
def top1_onehot(x, T, E):
    i = x.argmax(axis=1)
    return {"w": np.where(np.arange(E)[None, :] == i[:, None], x, 0.0)}


@case({"x": "f32 n", "p": "i32[0,n] n"}, {"y": "f32 n"}, [{"n": 4}, {"n": 1}], "n >= 1")
def gather_take(x, p, n):
    return {"y": np.take(x, p) + np.take(x, p, axis=0, mode="clip")}


# ---------------------------------------------------------------------- masks, scans, selections
@case({"x": "f32 n m", "mask": "bool n m"}, {"y": "f32 n m"}, [{"n": 2, "m": 3}, {"n": 1, "m": 1}], c=-1.5)
def masked_fill(x, mask, c, **_):
    y = x.copy()
    y[mask] = c
    return {"y": y}


@case({"x": "f32 n m", "mask": "u8[0,2] n m"}, {"y": "f32 n m", "z": "bool n m"},
      [{"n": 2, "m": 3}, {"n": 1, "m": 1}], c=-1.5)
def masked_where(x, mask, c, **_):
    return {"y": np.where(mask, c, x), "z": (x > 0) & ~mask.astype(bool)}


@case({"x": "f32 n m"}, {"y": "f32 n m"}, [{"n": 2, "m": 3}, {"n": 1, "m": 1}])
def relu_by_mask(x, **_):
    y = np.array(x)
    neg = y < 0
    y[neg] = 0.01 * y[neg]
    return {"y": y}


@case({"x": "f32 n m"}, {"y": "f32 n m"}, [{"n": 2, "m": 3}, {"n": 1, "m": 1}])
def leaky_by_product(x, **_):
    return {"y": x * np.where(x > 0, 1.0, 0.1) + (x > 0) * x}


@case({"x": "f32 rows n"}, {"y": "f32 rows n"}, [{"rows": 2, "n": 4}, {"rows": 1, "n": 1}])
def cumsum_loop(x, rows, n):
    y = np.zeros((rows, n))
    acc = np.zeros(rows)
    for j in range(n):
        acc = acc + x[:, j]
        y[:, j] = acc
    return {"y": y}


@case({"x": "f32 rows n"}, {"y": "f32 rows n"}, [{"rows": 2, "n": 4}, {"rows": 1, "n": 1}], "n >= 1")
def cumsum_previous(x, rows, n):
    y = np.zeros((rows, n))
    y[:, 0] = x[:, 0]
    for j in range(1, n):
        y[:, j] = y[:, j - 1] + x[:, j]
    return {"y": y}


@case({"x": "f32 rows n"}, {"y": "f32 rows n"}, [{"rows": 2, "n": 4}, {"rows": 1, "n": 1}], "n >= 1")
def cumsum_exclusive(x, rows, n):
    c = np.cumsum(x, axis=1)
    return {"y": np.concatenate([np.zeros((rows, 1)), c[:, :-1]], axis=1)}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 4}, {"n": 1}])
def cumprod_and_max(x, n):
    return {"y": np.cumprod(x) + np.maximum.accumulate(x) - np.minimum.accumulate(x)}


@case({"x": "f32 rows n"}, {"v": "f32 rows", "i": "i64 rows"}, [{"rows": 3, "n": 4}, {"rows": 1, "n": 1}], "n >= 1")
def argmax_pair(x, **_):
    return {"v": x.max(axis=1), "i": x.argmax(axis=1)}


@case({"x": "f32 rows n"}, {"v": "f32 rows", "i": "i32 rows"}, [{"rows": 3, "n": 4}, {"rows": 1, "n": 1}], "n >= 1")
def argmax_loop(x, rows, n):
    v = np.zeros(rows)
    i = np.zeros(rows, dtype=np.int32)
    for r in range(rows):
        best, at = x[r, 0], 0
        for j in range(1, n):
            if x[r, j] > best:
                best, at = x[r, j], j
        v[r] = best
        i[r] = at
    return {"v": v, "i": i}


@case({"x": "i32[0,B] n"}, {"h": "i32 B"}, [{"n": 5, "B": 3}, {"n": 1, "B": 1}], "B >= 1")
def histogram_by_comparison(x, n, B):
    return {"h": (x[None, :] == np.arange(B)[:, None]).sum(axis=1).astype(np.int32)}


@case({"x": "i32[0,B] n"}, {"h": "i32 B"}, [{"n": 5, "B": 3}, {"n": 1, "B": 1}], "B >= 1")
def histogram_by_bin(x, n, B):
    h = np.zeros(B, dtype=np.int32)
    for b in range(B):
        h[b] = np.count_nonzero(x == b)
    return {"h": h}


@case({"x": "f32 n", "seg": "i32[0,S] n"}, {"y": "f32 S"}, [{"n": 5, "S": 3}, {"n": 1, "S": 1}], "S >= 1")
def segment_sum(x, seg, n, S):
    return {"y": np.where(seg[None, :] == np.arange(S)[:, None], x, 0.0).sum(axis=1)}


# ---------------------------------------------------------------------- resampling, layout
@case({"x": "f32 C H W"}, {"y": "f32 C 2*H 2*W"}, [{"C": 2, "H": 2, "W": 3}, {"C": 1, "H": 1, "W": 1}])
def upsample_nearest(x, **_):
    return {"y": x.repeat(2, axis=1).repeat(2, axis=2)}


@case({"x": "f32 C H W"}, {"y": "f32 C OH OW"},
      [{"C": 2, "H": 2, "W": 3, "OH": 5, "OW": 4}, {"C": 1, "H": 1, "W": 1, "OH": 2, "OW": 1}],
      "H >= 1", "W >= 1", "OH >= 1", "OW >= 1")
def upsample_nearest_ratio(x, C, H, W, OH, OW):
    i = np.arange(OH) * H // OH
    j = np.arange(OW) * W // OW
    return {"y": x[:, i[:, None], j]}


@case({"x": "f32 H W"}, {"y": "f32 2*H 2*W"}, [{"H": 2, "W": 3}, {"H": 1, "W": 1}], "H >= 1", "W >= 1")
def upsample_bilinear(x, H, W):
    def axis(n):
        i = np.arange(2 * n)
        lo = np.maximum(i - 1, 0) // 2
        hi = np.minimum(lo + 1, n - 1)
        frac = np.where(i == 0, 0.0, np.where(i % 2 == 0, 0.75, 0.25))
        return lo, hi, frac

    r0, r1, fr = axis(H)
    c0, c1, fc = axis(W)
    top = x[r0][:, c0] * (1 - fc) + x[r0][:, c1] * fc
    low = x[np.ix_(r1, c0)] * (1 - fc) + x[np.ix_(r1, c1)] * fc
    return {"y": top * (1 - fr[:, None]) + low * fr[:, None]}


@case({"x": "f32 H W"}, {"y": "f32 2*H 2*W"}, [{"H": 2, "W": 3}, {"H": 1, "W": 1}], "H >= 1", "W >= 1")
def upsample_bilinear_half_pixel(x, H, W):
    def coordinates(n):
        pos = np.clip((np.arange(2 * n) + 0.5) / 2 - 0.5, 0, n - 1)
        lo = np.floor(pos).astype(np.int64)
        return lo, np.minimum(lo + 1, n - 1), pos - lo

    y0, y1, fy = coordinates(H)
    x0, x1, fx = coordinates(W)
    rows = x[y0] * (1 - fy)[:, None] + x[y1] * fy[:, None]
    return {"y": rows[:, x0] * (1 - fx) + rows[:, x1] * fx}


@case({"x": "f32 B C H W"}, {"y": "f32 B H*W C"}, [{"B": 2, "C": 3, "H": 2, "W": 2}])
def nchw_to_tokens(x, B, C, H, W):
    return {"y": x.reshape(B, C, H * W).transpose(0, 2, 1)}


@case({"x": "f32 B C*r*r H W"}, {"y": "f32 B C H*r W*r"}, [{"B": 1, "C": 2, "H": 2, "W": 3, "r": 2}], "r >= 1")
def pixel_shuffle(x, B, C, H, W, r):
    t = x.reshape(B, C, r, r, H, W)
    return {"y": t.transpose(0, 1, 4, 2, 5, 3).reshape(B, C, H * r, W * r)}


@case({"x": "f32 B S H*d"}, {"y": "f32 B H S d"}, [{"B": 1, "S": 3, "H": 2, "d": 2}], "H >= 1", "d >= 1")
def split_heads(x, B, S, H, d):
    return {"y": np.swapaxes(x.reshape(B, S, H, d), 1, 2)}


@case({"x": "f32 n m"}, {"y": "f32 m n"}, [{"n": 2, "m": 3}])
def transpose_loop(x, n, m):
    y = np.zeros((m, n))
    for i in range(n):
        for j in range(m):
            y[j, i] = x[i, j]
    return {"y": y}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 4}, {"n": 1}])
def reverse(x, n):
    y = np.empty(n)
    for i in range(n):
        y[n - 1 - i] = x[i]
    return {"y": y + x[::-1] + np.flip(x) + x[-1::-1]}


# ---------------------------------------------------------------------- products
@case({"A": "f32 M K", "B": "f32 K N"}, {"C": "f32 M N"}, [{"M": 2, "N": 3, "K": 2}, {"M": 1, "N": 1, "K": 1}])
def matmul_loops(A, B, M, N, K):
    C = np.zeros((M, N))
    for i in range(M):
        for j in range(N):
            acc = 0.0
            for k in range(K):
                acc += A[i, k] * B[k, j]
            C[i, j] = acc
    return {"C": C}


@case({"A": "f32 M K", "B": "f32 K N"}, {"C": "f32 M N"}, [{"M": 2, "N": 3, "K": 2}, {"M": 1, "N": 1, "K": 1}])
def matmul_in_place(A, B, M, N, K):
    C = np.zeros((M, N))
    for i in range(M):
        for j in range(N):
            for k in range(K):
                C[i, j] += A[i, k] * B[k, j]
    return {"C": C}


@case({"A": "f32 M K", "B": "f32 K N"}, {"P": "f32 s M N", "C": "f32 M N"},
      [{"M": 2, "N": 2, "K": 4, "s": 2}, {"M": 1, "N": 1, "K": 2, "s": 1}], "s >= 1", "K % s == 0")
def splitk(A, B, M, N, K, s):
    step = K // s
    P = np.zeros((s, M, N))
    for t in range(s):
        P[t] = A[:, t * step : (t + 1) * step] @ B[t * step : (t + 1) * step]
    return {"P": P, "C": P.sum(axis=0)}


@case({"A": "i8[-128,128] M K", "B": "i8[-128,128] N K"}, {"C": "i32 M N"}, [{"M": 2, "N": 2, "K": 3}])
def int8_matmul(A, B, **_):
    return {"C": A.astype(np.int32) @ B.astype(np.int32).T}


@case({"A": "i8[-128,128] M K", "B": "i8[-128,128] N K", "sa": "f32 M", "sb": "f32 N"}, {"C": "f32 M N"},
      [{"M": 2, "N": 2, "K": 3}])
def int8_matmul_scaled(A, B, sa, sb, **_):
    acc = np.einsum("mk,nk->mn", A.astype(np.int32), B.astype(np.int32))
    return {"C": acc.astype(np.float32) * sa[:, None] * sb}


@case({"x": "f32 T D", "g": "f32 T D"}, {"y": "f32 T D"}, [{"T": 2, "D": 3}])
def swiglu(x, g, **_):
    return {"y": g / (1 + np.exp(-g)) * x}


@case({"x": "f32 T 2*D"}, {"y": "f32 T D"}, [{"T": 2, "D": 3}, {"T": 1, "D": 1}])
def swiglu_packed(x, T, D):
    a, b = np.split(x, 2, axis=1)
    return {"y": a * b * (1.0 / (1.0 + np.exp(-a)))}


@case({"q": "u8 rows n//2", "s": "f32 rows", "z": "f32 rows"}, {"y": "f32 rows n"},
      [{"rows": 2, "n": 4}, {"rows": 1, "n": 2}], "n % 2 == 0", "n >= 2")
def int4_stack(q, s, z, rows, n):
    nib = np.stack([q & 0xF, q >> 4], axis=-1).reshape(rows, n)
    return {"y": (nib.astype(np.float32) - z[:, None]) * s[:, None]}


@case({"q": "u32 rows n//8", "s": "f32 rows n//g"}, {"y": "f32 rows n"},
      [{"rows": 2, "n": 16, "g": 8}], "n % 8 == 0", "g >= 8", "g % 8 == 0", "n % g == 0", "n >= 8")
def int4_words(q, s, rows, n, g):
    nib = (q[:, :, None] >> (4 * np.arange(8, dtype=np.uint32))) & 15
    w = nib.reshape(rows, n).astype(np.float64) - 8.0
    return {"y": w * np.repeat(s, g, axis=1)}


@case({"q": "i8[-128,128] n"}, {"y": "f32 2*n"}, [{"n": 3}, {"n": 1}], "n >= 1")
def int4_signed(q, n):
    y = np.zeros(2 * n)
    lo = q.astype(np.int32) & 15
    y[0::2] = np.where(lo >= 8, lo - 16, lo)
    y[1::2] = q >> 4
    return {"y": y}


@case({"x": "f32 n", "y": "f32 n"}, {"s": "f32 1", "m": "f32 1"}, [{"n": 4}, {"n": 1}], "n >= 1")
def dot_and_max(x, y, n):
    s = np.zeros(1)
    for i in range(n):
        s[0] += x[i] * y[i]
    return {"s": s, "m": np.array([x.max()])}


@case({"x": "f32 n"}, {"y": "f32 n//b"}, [{"n": 6, "b": 2}, {"n": 3, "b": 3}], "b >= 1", "n % b == 0")
def block_sums(x, n, b):
    y = np.zeros(n // b)
    for i in range(n // b):
        for j in range(b):
            y[i] += x[i * b + j]
    return {"y": y}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 4}, {"n": 1}])
def while_in_python(x, n):
    i, total = 0, 0
    while i < 3:
        total = total + x**i
        i += 1
    return {"y": total}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 4}, {"n": 1}], "n >= 1")
def branch_on_size(x, n):
    if n > 0:
        y = x * 2
    else:
        y = x
    return {"y": y if x.ndim == 1 else None}


@case({"x": "f32 n", "a": "f32 n"}, {"y": "f32 n"}, [{"n": 4}, {"n": 1}])
def elementwise_loop(x, a, n):
    y = np.zeros(n)
    for i in range(n):
        v = x[i]
        if v > 0:
            v = a[i] * v
        y[i] = v
    return {"y": y}


@case({"x": "f32 n", "a": "f32 n"}, {"y": "f32 n"}, [{"n": 4}, {"n": 1}])
def conditional_expression(x, a, n):
    y = np.zeros(n)
    for i in range(n):
        y[i] = x[i] if x[i] > a[i] else a[i] - 1
    return {"y": y}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 4}, {"n": 1}])
def comprehension(x, n):
    return {"y": np.array([x[i] * 2 for i in range(n)])}


@case({"x": "f32 rows n"}, {"y": "f32 rows"}, [{"rows": 2, "n": 3}, {"rows": 1, "n": 1}])
def iterate_rows(x, rows, n):
    y = np.zeros(rows)
    for i, row in enumerate(x):
        y[i] = row.sum()
    return {"y": y}


@case({"x": "f32 rows n", "idx": "i32[0,n] rows"}, {"y": "f32 rows n"}, [{"rows": 2, "n": 3}, {"rows": 1, "n": 1}])
def put_along(x, idx, rows, n):
    y = np.zeros((rows, n))
    np.put_along_axis(y, idx[:, None], 1.0, axis=1)
    return {"y": y * x}


@case({"x": "f32 rows n", "idx": "i32[0,n] rows"}, {"y": "f32 rows n"}, [{"rows": 2, "n": 3}, {"rows": 1, "n": 1}])
def one_hot_assignment(x, idx, rows, n):
    y = np.zeros((rows, n))
    y[np.arange(rows), idx] = 1.0
    return {"y": y - x}


@case({"x": "f32 n", "y": "f32 n"}, {"o": "f32 n n"}, [{"n": 3}, {"n": 1}])
def outer_products(x, y, n):
    return {"o": np.outer(x, y) + np.subtract.outer(x, y) + np.multiply.outer(x, y)}


@case({"x": "f32 n m"}, {"y": "f32 n m", "s": "f32 1"}, [{"n": 2, "m": 3}])
def masked_arithmetic(x, **_):
    y = x.copy()
    y[y > 1] -= 1
    y[x < 0] = np.exp(x[x < 0]) * 2 - 1
    return {"y": y, "s": np.reshape(x[x > 0].sum(), (1,))}


@case({"x": "f32 C H W", "w": "f32 R S"}, {"y": "f32 C H W"},
      [{"C": 1, "H": 3, "W": 2, "R": 3, "S": 3, "p": 1}, {"C": 1, "H": 1, "W": 1, "R": 2, "S": 1, "p": 2}],
      "R >= 1", "S >= 1", "p >= 0")
def convolution_guarded(x, w, C, H, W, R, S, p):
    y = np.zeros((C, H, W))
    for c in range(C):
        for h in range(H):
            for v in range(W):
                acc = 0.0
                for r in range(R):
                    for s in range(S):
                        ih, iw = h + r - p, v + s - p
                        if 0 <= ih < H and 0 <= iw < W:
                            acc += x[c, ih, iw] * w[r, s]
                y[c, h, v] = acc
    return {"y": y}


@case({"x": "f32 H W"}, {"y": "f32 H W"}, [{"H": 3, "W": 4, "p": 1}], "p >= 0")
def box_sum_continue(x, H, W, p):
    y = np.zeros((H, W))
    for h in range(H):
        for w in range(W):
            for r in range(2 * p + 1):
                if h + r - p < 0 or h + r - p >= H:
                    continue
                y[h, w] += x[h + r - p, w]
    return {"y": y}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 4}])
def helper_returns(x, n):
    def leaky(v):
        if v > 0:
            return v
        elif v > -1:
            return 0.5 * v
        return -0.5 + 0.0 * v

    y = np.zeros(n)
    for i in range(n):
        y[i] = leaky(x[i])
    return {"y": y}


@case({"x": "f32 n", "k": "i32[0,3] n"}, {"y": "f32 n", "c": "i32 n"}, [{"n": 6}])
def branches_on_integers(x, k, n):
    y = np.zeros(n)
    c = np.zeros(n, dtype=np.int32)
    for i in range(n):
        if k[i] == 0:
            y[i] = x[i]
        elif k[i] == 1:
            y[i] = -x[i]
            c[i] = 1
        else:
            y[i] = 7
            c[i] = k[i] + 5
        if not (x[i] > 0) and i % 2 == 0:
            y[i] += 1
    return {"y": y, "c": c}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 4}, {"n": 5}])
def even_and_odd(x, n):
    y = np.empty(n)
    for i in range(n):
        if i % 2 == 0:
            y[i] = x[i]
        else:
            y[i] = x[i - 1] if i > 0 else 0.0
    return {"y": y}


@case({"x": "f32 n"}, {"s": "f32 1", "c": "i32 1"}, [{"n": 4}, {"n": 5}])
def conditional_accumulation(x, n):
    total, count = 0.0, 0
    for i in range(n):
        if x[i] > 0:
            total += x[i]
            count += 1
    s = np.zeros(1)
    c = np.zeros(1, dtype=np.int32)
    s[0] = total
    c[0] = count
    return {"s": s, "c": c}


@case({"a": "f32 M K", "b": "f32 K N"}, {"c": "f32 M N"}, [{"M": 2, "N": 2, "K": 3}], "M >= 1", "N >= 1")
def matmul_by_generators(a, b, M, N, K):
    return {"c": np.array([[sum(a[i, k] * b[k, j] for k in range(K)) for j in range(N)] for i in range(M)])}


@case({"a": "f32 M K", "b": "f32 M K"}, {"c": "f32 M"}, [{"M": 2, "K": 3}], "M >= 1", "K >= 1")
def rows_by_zip(a, b, M, K):
    return {"c": np.stack([np.max(u * v) for u, v in zip(a, b)]) + np.array([max(u) for u in a])}


@case({"x": "f32 n m"}, {"y": "f32 n m"}, [{"n": 3, "m": 4}])
def summed_area(x, n, m):
    y = np.cumsum(np.cumsum(x, axis=0), axis=1)
    return {"y": y}


@case({"x": "f32 B n"}, {"y": "f32 B n"}, [{"B": 2, "n": 4}], "n >= 1")
def scan_in_rows(x, B, n):
    y = np.zeros((B, n))
    for b in range(B):
        y[b, 0] = x[b, 0]
        for j in range(1, n):
            y[b, j] = np.maximum(y[b, j - 1], x[b, j])
    return {"y": y}


@case({"x": "f32 B n"}, {"y": "f32 B n"}, [{"B": 2, "n": 4}], "n >= 1")
def scan_backwards(x, B, n):
    y = x.copy()
    for j in range(n - 2, -1, -1):
        y[:, j] += y[:, j + 1]
    return {"y": y}


@case({"x": "f32 B n"}, {"m": "f32 B", "i": "i64 B"}, [{"B": 3, "n": 4}], "n >= 1")
def argmin_last(x, B, n):
    m, p = np.zeros(B), np.zeros(B, dtype=np.int64)
    for b in range(B):
        best, at = 1e9, -1
        for j in range(n):
            if x[b, j] <= best:
                best = x[b, j]
                at = 2 * j + 1
        m[b], p[b] = best, at
    return {"m": m, "i": p}


@case({"x": "f32 n"}, {"y": "f32 n"}, [{"n": 4}])
def welford_free(x, n):
    y = np.zeros(n)
    total = 0.0
    square = 0.0
    for i in range(n):
        total = total + x[i]
        square = square + x[i] * x[i]
        y[i] = square - total * total / (i + 1)
    return {"y": y}
