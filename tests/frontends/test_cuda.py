"""CUDA C++ to PTX."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from warpproof.core import InputError
from warpproof.frontends import compile_cuda, entry_names, load_kernel

pytest.importorskip("cuda.bindings.nvrtc")

SCALE = 'extern "C" __global__ void scale(float* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2.0f; }\n'


@pytest.fixture(autouse=True, scope="module")
def _cache(tmp_path_factory: pytest.TempPathFactory) -> None:
    patch = pytest.MonkeyPatch()
    patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
    yield
    patch.undo()


def refused(source: Path | str, **how: object) -> InputError:
    with pytest.raises(InputError) as caught:
        compile_cuda(source, **how)  # type: ignore[arg-type]
    return caught.value


def test_gives_ptx_with_line_information(tmp_path: Path) -> None:
    file = tmp_path / "scale.cu"
    file.write_text(SCALE)
    ptx = compile_cuda(file)
    assert ptx.kernel == "scale"
    assert ptx.file == "scale.ptx"
    assert entry_names(ptx.text) == ("scale",)
    assert ".target sm_80" in ptx.text
    assert '"scale.cu"' in ptx.text
    assert ".loc" in ptx.text
    assert str(tmp_path) not in ptx.text
    assert ptx.sources == {"scale.cu": SCALE}
    assert ptx.origin.startswith("nvrtc 1")


def test_target_and_options() -> None:
    assert ".target sm_90a" in compile_cuda(SCALE, arch="sm_90a").text
    ptx = compile_cuda('extern "C" __global__ void k(float* x) { *x = N; }', options=("-DN=3", "--std=c++20")).text
    assert "0f40400000" in ptx or "1077936128" in ptx


def test_compiling_twice_gives_the_same_text() -> None:
    assert compile_cuda(SCALE) == compile_cuda(SCALE)


@pytest.mark.parametrize(("name", "part"), [
    ("plain", "plain"), ("cpp", "_Z3cppPf"), ("_Z3cppPf", "_Z3cppPf"), ("ns::inner", "_ZN2ns5innerEPf"),
    ("inner", "_ZN2ns5innerEPf"), ("tmpl<3>", "_Z4tmplILi3EEvPf"), ("ns::two<float, 4>", "3two"),
])
def test_kernels_are_found_by_every_kind_of_name(name: str, part: str) -> None:
    source = """
        extern "C" __global__ void plain(float* x) { *x = 1; }
        __global__ void cpp(float* x) { *x = 1; }
        namespace ns {
        __global__ void inner(float* x) { *x = 1; }
        template <class T, int N> __global__ void two(T* x) { *x = N; }
        }
        template <int N> __global__ void tmpl(float* x) { *x = N; }
    """
    ptx = compile_cuda(source, kernel=name)
    assert part in ptx.kernel
    assert ptx.kernel in entry_names(ptx.text)
    assert ptx.names == {name: ptx.kernel}


def test_no_or_several_kernels_of_a_name() -> None:
    two = "__global__ void f(int* x) { *x = 1; }\n__global__ void f(float* x) { *x = 1; }\n"
    assert refused(two).code == "CUD705"
    both = refused(two, kernel="f")
    assert both.code == "CUD705"
    assert "_Z1fPi" in both.message
    missing = refused(two, kernel="g")
    assert missing.code == "CUD704"
    assert "_Z1fPf" in missing.message
    assert refused("__device__ int unused;").code == "CUD704"
    assert refused(two, kernel="f<3>").code in ("CUD704", "CUD701")


@pytest.mark.parametrize("name", ["", "f;", "f\n", "f{}", '"', "x" * 2000 + "<>", "é<1>", "f<1>\0"])
def test_names_that_are_no_names(name: str) -> None:
    assert refused(SCALE, kernel=name).code == "CUD704"


def test_errors_are_shown_as_the_compiler_wrote_them() -> None:
    error = refused('extern "C" __global__ void k(float* x) {\n  x[0] = foo;\n}', name="mine.cu")
    assert error.code == "CUD701"
    assert 'mine.cu(2): error: identifier "foo" is undefined\n    x[0] = foo;\n           ^' in error.message


def test_host_code_gets_a_hint() -> None:
    error = refused(SCALE + "int main() { scale<<<1, 1>>>(0, 1); }")
    assert error.code == "CUD701"
    assert "__CUDACC_RTC__" in error.hint


def test_host_headers_are_tolerated() -> None:
    source = """
        #include <cuda_runtime.h>
        #include <cstdint>
        #include <cfloat>
        #include <climits>
        #include <math.h>
        extern "C" __global__ void k(float* x, uint32_t n, int64_t* y) {
            constexpr float top = INFINITY;
            x[0] = n == 0 ? top : n == INT_MAX ? FLT_MAX : NAN;
            *y = LLONG_MIN;
        }
    """
    assert compile_cuda(source).kernel == "k"


def test_bundled_headers_are_found(tmp_path: Path) -> None:
    source = """
        #include <cuda_fp16.h>
        #include <mma.h>
        #include <cooperative_groups.h>
        extern "C" __global__ void k(half* x) {
            cooperative_groups::this_thread_block().sync();
            x[0] = __float2half(__half2float(x[0]) + 1.0f);
        }
    """
    first = compile_cuda(source)
    assert "bar.sync" in first.text or "barrier.sync" in first.text
    assert compile_cuda(source) == first


def test_headers_beside_the_source_are_found(tmp_path: Path) -> None:
    (tmp_path / "mine.cuh").write_text("#define TWO 2.0f\n")
    (tmp_path / "k.cu").write_text('#include "mine.cuh"\nextern "C" __global__ void k(float* x) { *x = TWO; }\n')
    assert compile_cuda(tmp_path / "k.cu").kernel == "k"
    error = refused('#include "nowhere.h"\n' + SCALE)
    assert error.code == "CUD701"
    assert "-I" in error.hint


@pytest.mark.parametrize("arch", ["", "sm_70", "sm_12", "sm_999", "sm_80 ", "gfx90", "80", "sm_80\n-x",
                                  "sm_" + "9" * 99])
def test_unknown_targets(arch: str) -> None:
    assert refused(SCALE, arch=arch).code == "CUD703"


@pytest.mark.parametrize("option", ["", "x.cu", "-", "-G", "--gpu-architecture=sm_50", "-arch=sm_90", "-DA -DB", "-D\0",
                                    "--dlto", "-lineinfo", 7])
def test_options_that_cannot_be_used(option: object) -> None:
    assert refused(SCALE, options=(option,)).code == "CUD707"


def test_source_is_compiled_not_run(tmp_path: Path) -> None:
    # A constant evaluator that does not end must be cut by the compiler, and a #error is only a message.
    assert refused("#error no\n" + SCALE).code == "CUD701"
    loop = "constexpr int f() { int i = 0; while (true) ++i; return i; }\nconstexpr int v = f();\n"
    assert refused(loop + SCALE).code == "CUD701"


def test_missing_wheel_names_the_pip_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cuda.bindings.nvrtc", None)
    error = refused(SCALE)
    assert error.code == "CUD702"
    assert "pip install" in error.hint


def test_every_example_compiles() -> None:
    folder = Path(__file__).parents[2] / "examples"
    files = sorted(folder.glob("**/*.cu"))
    assert len(files) > 25
    for file in files:
        names = re.findall(r"__global__ void (?:__launch_bounds__\(\d+\)\s)?(\w+)\(", file.read_text("utf-8"))
        ptx = load_kernel(file, names[0] if len(names) > 1 else None)
        assert file.stem.startswith(ptx.kernel) or len(names) > 1
        assert ptx.log == ""
