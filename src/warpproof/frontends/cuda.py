"""CUDA C++ to PTX by NVRTC, the run-time compiler of the `nvidia-cuda-nvrtc` wheel. No GPU or toolkit is needed."""

from __future__ import annotations

import importlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from warpproof.core import InputError
from warpproof.frontends.headers import (
    PRELUDE,
    PRELUDE_NAME,
    SHIMS,
    bundled_directory,
    bundled_headers,
    included,
    wanted_headers,
)
from warpproof.frontends.source import PtxSource, read_source, select_entry

INSTALL_HINT: Final = "pip install 'warpproof[cuda]'  (cuda-bindings and nvidia-cuda-nvrtc; no GPU needed)"
_ARCH: Final = re.compile(r"(?:sm|compute)_(\d{2,3})([af]?)")
_OPTION: Final = re.compile(r"-[\w-][\x21-\x7e]{0,200}")
_RESERVED: Final = re.compile(r"--?(gpu-architecture|arch|lineinfo|generate-line-info|G|device-debug|dlto|ltoir"
                              r"|optix-ir|ptx|output-file|o|time|ftime)\b.*")


def nvrtc_version() -> str:
    """The version of the NVRTC that would compile, such as `13.5`; InputError CUD702 if there is none."""
    return _Compiler().version


def compile_cuda(source: Path | str, *, arch: str = "sm_80", kernel: str | None = None,
                 options: Sequence[str] = (), name: str = "kernel.cu", headers: Mapping[str, str] | None = None
                 ) -> PtxSource:
    """The PTX of one kernel of a CUDA C++ file (a Path) or text (a str, then called `name`), with line information.

    `kernel` is an `extern "C"` name, a C++ identifier, a mangled name or a name expression such as
    `ns::scale<float, 4>`; None takes the only kernel. `headers` are all that it may include, by name; None has them
    looked for beside the source, in -I folders and among those bundled with the compiler. Raises InputError CUD701
    with the compiler's own text, and other CUD7xx for a missing wheel, an unknown target, name or option.
    """
    text = read_source(source) if isinstance(source, Path) else source
    file = source.name if isinstance(source, Path) else name
    if "\0" in text:
        raise InputError("CUD706", f"{file} holds a NUL character")
    compiler = _Compiler()
    flags = [f"--gpu-architecture={compiler.architecture(arch)}", "-lineinfo", f"--pre-include={PRELUDE_NAME}"]
    flags += checked_options(options)
    if not any(re.match(r"--?std\b", flag) for flag in flags):
        flags.append("--std=c++17")
    if headers is None:
        headers = _headers(text, source.resolve().parent if isinstance(source, Path) else None, options)
    expression = _expression(kernel)
    ptx, lowered, log = compiler.compile(text, file, flags, expression, headers)
    ptx = _without_places(ptx)
    if expression is None or lowered is None:
        lowered = select_entry(ptx, kernel, file)
    return PtxSource(ptx, str(Path(file).with_suffix(".ptx")), lowered, arch, f"nvrtc {compiler.version}",
                     {kernel or lowered: lowered}, {file: text}, log)


def library_headers(names: Sequence[str], taken: Sequence[str] = ()) -> dict[str, str]:
    """The headers of these names that are bundled with the compiler, with all that they include."""
    return bundled_headers(names, _Compiler().headers(), taken) if names else {}


def _headers(text: str, folder: Path | None, options: Sequence[str]) -> dict[str, str]:
    own = included(text, folder, options)
    return {**library_headers(wanted_headers(own), list(own.texts)), **own.texts}


def checked_options(options: Sequence[str]) -> list[str]:
    """The options, if each is one compiler option that leaves target, line information and output alone (CUD707)."""
    for option in options:
        if not isinstance(option, str) or not _OPTION.fullmatch(option) or _RESERVED.fullmatch(option):
            raise InputError("CUD707", f"compiler option {option!r} cannot be used",
                             hint="one option per entry, such as -DN=4 or --use_fast_math; the target comes from `sm`")
    return list(options)


def _expression(kernel: str | None) -> str | None:
    """The C++ name expression to be lowered, None for a plain name that can be found in the PTX."""
    if kernel is None or re.fullmatch(r"[\w$]+(::\w+)*", kernel):
        return None
    if len(kernel) > 1000 or not re.fullmatch(r"[\w:<>,&*()\-+. ]+", kernel):
        raise InputError("CUD704", f"{kernel[:80]!r} is not a kernel name or a C++ name expression")
    return kernel


def _without_places(ptx: str) -> str:
    """The PTX with file names in `.file` relative to the current folder: it does not depend on where it was made."""
    folder = re.escape(str(Path.cwd()).rstrip("/"))
    return re.sub(rf'^(\s*\.file\s+\d+\s+"){folder}/', r"\1", ptx, flags=re.MULTILINE)


class _Compiler:
    """NVRTC through cuda-bindings; making one raises InputError CUD702 if a wheel is missing."""

    def __init__(self) -> None:
        try:
            self._nvrtc: Any = importlib.import_module("cuda.bindings.nvrtc")
            status, major, minor = self._nvrtc.nvrtcVersion()
        except Exception as error:  # the loader's own exception types differ between releases of cuda-bindings
            raise InputError("CUD702", f"CUDA C++ needs NVRTC, which cannot be loaded: {error}",
                             hint=INSTALL_HINT) from None
        self._check(status)
        self.version = f"{major}.{minor}"

    def _check(self, status: Any) -> None:
        if int(status) != 0:
            raise InputError("CUD702", f"NVRTC answered {getattr(status, 'name', status)}", hint=INSTALL_HINT)

    def architecture(self, arch: str) -> str:
        """`compute_XX` for `sm_XX`, if this NVRTC knows it (CUD703)."""
        match = _ARCH.fullmatch(arch) if isinstance(arch, str) else None
        status, known = self._nvrtc.nvrtcGetSupportedArchs()
        self._check(status)
        if match is None or int(match.group(1)) not in known:
            names = ", ".join(f"sm_{n}" for n in known)
            raise InputError("CUD703", f"NVRTC {self.version} does not compile for {arch!r}; it knows {names}",
                             hint="for sm_50 to sm_72 compile with CUDA 12 and pass the .ptx")
        return f"compute_{match.group(1)}{match.group(2)}"

    def headers(self) -> Path:
        """The folder of the headers bundled in this NVRTC."""
        install = getattr(self._nvrtc, "nvrtcInstallBundledHeaders", None)

        def into(folder: str) -> str:
            if install is None:
                return "this cuda-bindings has no nvrtcInstallBundledHeaders"
            status, *_ = install(folder.encode(), 0)
            return "" if int(status) == 0 else str(getattr(status, "name", status))

        return bundled_directory(self.version, into)

    def compile(self, text: str, file: str, flags: Sequence[str], expression: str | None, headers: Mapping[str, str]
                ) -> tuple[str, str | None, str]:
        """(PTX, lowered name of `expression`, log); CUD701 with the log as the compiler wrote it."""
        nvrtc = self._nvrtc
        texts = {**headers, **SHIMS, PRELUDE_NAME: PRELUDE}
        status, program = nvrtc.nvrtcCreateProgram(
            text.encode(), file.encode(), len(texts), [b.encode("utf-8", "surrogateescape") for b in texts.values()],
            [n.encode("utf-8", "surrogateescape") for n in texts])
        self._check(status)
        try:
            if expression is not None:
                self._check(nvrtc.nvrtcAddNameExpression(program, expression.encode())[0])
            (status,) = nvrtc.nvrtcCompileProgram(program, len(flags), [f.encode() for f in flags])
            log = self._text(nvrtc.nvrtcGetProgramLogSize, nvrtc.nvrtcGetProgramLog, program)
            if int(status) != 0:
                raise _refusal(file, log or str(getattr(status, "name", status)), expression)
            ptx = self._text(nvrtc.nvrtcGetPTXSize, nvrtc.nvrtcGetPTX, program)
            lowered = None
            if expression is not None:
                status, name = nvrtc.nvrtcGetLoweredName(program, expression.encode())
                self._check(status)
                lowered = name.decode()
            return ptx, lowered, log
        finally:
            nvrtc.nvrtcDestroyProgram(program)

    def _text(self, size: Any, get: Any, program: Any) -> str:
        status, length = size(program)
        self._check(status)
        buffer = b" " * length
        self._check(get(program, buffer)[0])
        return str(buffer.rstrip(b"\0 \n"), errors="replace")


def _refusal(file: str, log: str, expression: str | None) -> InputError:
    if "__nv_name_map" in log and expression is not None:
        return InputError("CUD704", f"{file} holds no kernel {expression!r}; the compiler says\n{log}")
    hint = ""
    if "open source file" in log:
        hint = "only CUDA's own headers and those within the source's folder are found; add other folders with -I"
    elif "host variable" in log or "<<<" in log or "a host function" in log:
        hint = "only device code is compiled; put host code under #ifndef __CUDACC_RTC__"
    return InputError("CUD701", f"the compiler refused {file}\n{log}", hint=hint)
