"""Contract and spec files. They are the user's own code and are executed; the candidate kernel never is."""

from __future__ import annotations

import hashlib
import importlib.util
import inspect
import linecache
import sys
import traceback
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any, Final

from warpproof.core import InputError, Span, Unsupported, WarpproofError
from warpproof.reference.contracts import Contract, Reference

SOURCE: Final = "__warpproof_source__"  # in a loaded module: the text that it was made from


def load_spec(path: Path | str, name: str = "reference") -> Reference:
    """The function `reference(**inputs) -> dict` that a spec file defines; InputError REF230/REF231."""
    module = _execute(Path(path))
    found = vars(module).get(name)
    if isinstance(found, Contract):
        return found.reference
    if not isinstance(found, FunctionType):
        raise InputError("REF231", f"{Path(path).name} defines no function {name!r}",
                         hint=f"a spec file has a plain function {name}(**inputs) that returns a dict of outputs")
    return found


def load_contract(path: Path | str, name: str | None = None) -> Contract:
    """The contract `name` of a file, or its only one; InputError REF230/REF231."""
    module = _execute(Path(path))
    found = {k: v for k, v in vars(module).items() if isinstance(v, Contract)}
    if name is not None:
        if name not in found:
            raise InputError("REF231", f"{Path(path).name} defines no contract {name!r}",
                             hint="it defines " + (", ".join(sorted(found)) or "none"))
        return found[name]
    if len(found) != 1:
        raise InputError("REF231", f"{Path(path).name} defines {len(found)} contracts",
                         hint="name one of " + ", ".join(sorted(found)) if found else
                         "decorate a function with @contract(kernel=…, grid=…, block=…)")
    return next(iter(found.values()))


def _execute(path: Path) -> ModuleType:
    """The module that the file makes when it runs; errors in it become REF230 with the line."""
    if not path.is_file():
        raise InputError("REF230", f"cannot read {str(path)!r}")
    path = path.resolve()
    unique = f"warpproof_user_{hashlib.sha256(str(path).encode()).hexdigest()[:12]}"
    loader = importlib.util.spec_from_file_location(unique, path)
    if loader is None or loader.loader is None:
        raise InputError("REF230", f"{path.name!r} is not a Python file", hint=_not_python(path))
    module = importlib.util.module_from_spec(loader)
    vars(module)[SOURCE] = _remember(path)
    before = sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        _run(loader.loader, module, path)
    finally:
        sys.dont_write_bytecode = before
    return module


def _not_python(path: Path) -> str:
    if path.suffix in (".cu", ".cuh", ".ptx"):
        return f"this is a kernel; give the contract first, as in: warpproof prove CONTRACT.py --kernel {path.name}"
    return "its name must end in .py"


def _remember(path: Path) -> str:
    """Keep the text that runs, so that messages can quote it when no file can be opened any more; the text."""
    linecache.cache.pop(str(path), None)  # a file of that name may have been read before, with another text
    lines = linecache.getlines(str(path))
    linecache.cache[str(path)] = (sum(map(len, lines)), None, lines, str(path))
    return "".join(lines)


def _run(loader: Any, module: ModuleType, path: Path) -> None:
    try:
        loader.exec_module(module)
    except (WarpproofError, Unsupported, MemoryError):
        raise
    except SyntaxError as e:
        raise InputError("REF230", f"{path.name} does not parse: {e.msg}",
                         Span(e.lineno or 1, e.offset or 1, 1, str(path))) from None
    except Exception as e:
        frames = [f for f in traceback.extract_tb(e.__traceback__) if f.filename == str(path)]
        span = Span(frames[-1].lineno or 1, 1, 1, str(path)) if frames else None
        raise InputError("REF230", f"{path.name} failed: {type(e).__name__}: {e}", span) from e


def source_of(reference: Reference) -> str:
    """The source text of the file that defines the reference, for error messages; empty when it is not at hand."""
    try:
        file = inspect.getsourcefile(inspect.unwrap(reference))
        return "".join(linecache.getlines(file)) if file else ""
    except (OSError, TypeError, UnicodeDecodeError):
        return ""
