"""The same reference under real NumPy, in float64: the expected values of a replay."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from warpproof.core import InputError
from warpproof.reference.manifest import Launch, Param
from warpproof.reference.tracing import bind, check_names


def evaluate(
    reference: Callable[..., Any], launch: Launch, sizes: Mapping[str, int], inputs: Mapping[str, Any],
) -> dict[str, npt.NDArray[Any]]:
    """The compared outputs at concrete sizes and inputs; reals in float64, integers in the buffer's type.

    `inputs` gives every input array (logical shape, any float type; bf16 as the values, not bits) and scalar that is
    not a size. Raises InputError REF240 when the reference fails, REF242 when its outputs do not fit the launch.
    """
    values: dict[str, Any] = dict(sizes)
    shapes = launch.concrete(sizes, {k: v for k, v in inputs.items() if np.ndim(v) == 0}).shapes
    for p in launch.params:
        if p.kind == "ptr_null" or p.name in sizes:
            continue
        if p.kind == "ptr_out":
            values[p.name] = np.full(shapes[p.name], np.nan)
        elif p.name in inputs:
            values[p.name] = _argument(p, inputs[p.name], shapes.get(p.name))
        elif p.init_zero or p.scratch:
            values[p.name] = np.zeros(shapes[p.name], np.float64 if not p.is_integer else _numpy(p.dtype))
        else:
            raise InputError("REF244", f"no value for the input {p.name!r}")
    with np.errstate(all="ignore"):
        try:
            returned = reference(**bind(reference, launch, values))
        except (InputError, MemoryError):
            raise
        except Exception as e:
            raise InputError("REF240", f"the reference raised {type(e).__name__}: {e}") from e
    check_names(returned, [p.name for p in launch.outputs])
    return {p.name: _result(p, returned[p.name], shapes[p.name]) for p in launch.outputs}


def _numpy(dtype: str) -> np.dtype[Any]:
    return np.dtype("bool" if dtype == "bool" else {"i": "int", "u": "uint"}[dtype[0]] + dtype[1:])


def _argument(p: Param, value: Any, shape: tuple[int, ...] | None) -> Any:
    if shape is None:
        return int(value) if p.is_integer else float(value)
    out = np.array(value, dtype=_numpy(p.dtype) if p.is_integer else np.float64)
    if out.shape != shape:
        raise InputError("REF244", f"the input {p.name!r} has the shape {out.shape}, not {shape}")
    out.setflags(write=False)
    return out


def _result(p: Param, value: Any, shape: tuple[int, ...]) -> npt.NDArray[Any]:
    out = np.asarray(value)
    if out.shape != shape:
        raise InputError("REF242", f"output {p.name!r} has the shape {out.shape}, the launch says {shape}")
    if out.dtype.kind not in "biuf" and out.dtype.name not in ("bfloat16", "float8_e4m3fn", "float8_e5m2"):
        raise InputError("REF242", f"output {p.name!r} has elements of type {out.dtype}, which are no real numbers")
    return out.astype(_numpy(p.dtype)) if p.is_integer else out.astype(np.float64)
