"""Litmus files: the notations of the public sets, and an error with a code and a place for everything else."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from warpproof.core import InputError, Unsupported
from warpproof.sync import MODELS, Scope, check, load_litmus, outcomes, read_litmus, read_nvlitmus
from warpproof.sync.program import Address, Atomic, Barrier, Fence, Load, Local, ProxyFence, Store

HEAD = "PTX t\n{ x=0; y=0; }\n"


def one(instruction: str, init: str = "x=0; y=0;") -> object:
    test = read_litmus(f"PTX t\n{{ {init} }}\nP0@cta 0,gpu 0 ;\n{instruction} ;\nexists (x == 0)\n")
    return test.threads[0].instructions[0].operation


@pytest.mark.parametrize(("text", "operation"), [
    ("ld.weak r0, x", Load(("r0",), Address("x"), "weak", None)),
    ("ld.global.cg.u32 %r0, [x+4]", Load(("r0",), Address("x", 4), "weak", None, width=4)),
    ("ld.volatile.shared r0, x", Load(("r0",), Address("x"), "relaxed", Scope.SYS)),
    ("ld.acquire.gpu.u64 r0, [x]", Load(("r0",), Address("x"), "acquire", Scope.GPU, width=8)),
    ("ld.global.relaxed.sys.u32 r0, [x]", Load(("r0",), Address("x"), "relaxed", Scope.SYS, width=4)),
    ("tld.weak r0, x", Load(("r0",), Address("x"), "weak", None, "texture")),
    ("ld r0, 1", Local("r0", "mov", 1)),
    ("ld r0, x", Load(("r0",), Address("x"), "weak", None)),
    ("ld.v2.u32 {r0, r1}, [x]", Load(("r0", "r1"), Address("x"), "weak", None, width=4)),
    ("st.release.cta x, -0x10", Store(Address("x"), (-16,), "release", Scope.CTA)),
    ("atom.add.acq_rel.gpu r1, [x], 1", Atomic("r1", "add", Address("x"), (1,), "acq_rel", Scope.GPU)),
    ("atom.acq_rel.gpu.add r1, x, 1", Atomic("r1", "add", Address("x"), (1,), "acq_rel", Scope.GPU)),
    ("atom.global.cas.b32 r1, [x], 0, 1", Atomic("r1", "cas", Address("x"), (0, 1), "relaxed", Scope.GPU, width=4)),
    ("red.relaxed.sys.add x, 1", Atomic(None, "add", Address("x"), (1,), "relaxed", Scope.SYS)),
    ("fence.gpu", Fence("acq_rel", Scope.GPU)),
    ("membar.gl", Fence("sc", Scope.GPU)),
    ("fence.proxy.async.shared::cta", ProxyFence("async")),
    ("fence.alias", ProxyFence("alias")),
    ("bar.cta.sync 1, 2, 3", Barrier("cta", True, True, instance=1, resource=2, quorum=3)),
    ("bar.sync 1, 64", Barrier("cta", True, True, resource=1, quorum=64)),
    ("barrier.cluster.arrive.relaxed.aligned", Barrier("cluster", True, False, orders=False)),
])
def test_instructions(text: str, operation: object) -> None:
    assert one(text) == operation


@pytest.mark.parametrize(("text", "code"), [
    ("ld.weak.gpu r0, x", "SYN202"), ("ld.relaxed r0, x", "SYN202"), ("ld.release.gpu r0, x", "SYN202"),
    ("st.acquire.gpu x, 1", "SYN202"), ("st.weak 5, 1", "SYN202"), ("st.weak x", "SYN202"),
    ("st.weak x, y1z", "SYN202"),
    ("atom.gpu r0, x, 1", "SYN202"), ("atom.add.sub.gpu r0, x, 1", "SYN202"), ("red.gpu.cas x, 0, 1", "SYN202"),
    ("atom.sc.gpu.add r0, x, 1", "SYN202"), ("fence.sc", "SYN202"), ("fence.weak.gpu", "SYN202"),
    ("membar.release.gl", "SYN202"), ("bar.cta.wait 1", "SYN202"), ("bar.cta.sync", "SYN202"),
    ("shfl r0, r1", "SYN202"),
    ("ld.global.nc.u32 r0, [x]", "SYN206"), ("fence.proxy.tensormap::generic.release.gpu", "SYN206"),
    ("ld.v2.u32 r0, [x]", "SYN202"), ("ld.bogus r0, x", "SYN202"), ("bne r0, 0, LC9", "SYN204"),
    ("goto nowhere", "SYN204"), ("ld.relaxed.gpu.sys r0, x", "SYN202"), ("bar.cta.sync r1", "SYN202"),
])
def test_wrong_instructions(text: str, code: str) -> None:
    with pytest.raises(InputError) as error:
        one(text)
    assert error.value.code == code
    assert error.value.span is not None
    assert error.value.span.line == 4
    assert text.split()[0] in error.value.render()


@pytest.mark.parametrize(("text", "code"), [
    ("", "SYN201"), ("C11 t\n{}\n", "SYN201"), ("PTX t\n", "SYN201"), ("PTX t\n{ x=0; ", "SYN201"),
    ("PTX t\n{ x=0; }\nexists (x == 0)", "SYN201"), (HEAD + "P0 ;\nld.weak r0, x ;\nexists (x==0)", "SYN201"),
    (HEAD + "P0@gpu 0 ;\nld.weak r0, x ;\nexists (x==0)", "SYN201"),
    (HEAD + "P0@cta 0 | P0@cta 1 ;\nexists (x==0)", "SYN201"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x | ld.weak r0, x ;\nexists (x==0)", "SYN201"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\n", "SYN203"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\nexists (q == 0)", "SYN203"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\nexists (P1:r0 == 0)", "SYN203"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\n~exists (P0:r9 == 1)", "SYN203"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\nlocations [P0:r1;] exists (x == 0)", "SYN203"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\nexists (x == 0", "SYN203"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\nexists (x == 0) exists (x == 1)", "SYN203"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\nfinal (x == 0)", "SYN203"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\nexists " + "(" * 500 + "x == 0", "SYN203"),
    (HEAD + "P0@cta 0,gpu 0 ;\nld.weak r0, x ;\nexists (x == 99999999999999999999999999)", "SYN203"),
    ("PTX t\n{ x=0; x=1; }\nP0@cta 0 ;\nexists (x==0)", "SYN201"),
    ("PTX t\n{ x=z; }\nP0@cta 0 ;\nexists (x==0)", "SYN201"),
    ("PTX t\n{ y @ generic aliases x; }\nP0@cta 0 ;\nexists (y==0)", "SYN201"),
    ("PTX t\n{ x=0; y @ warp aliases x; }\nP0@cta 0 ;\nexists (y==0)", "SYN201"),
    ("PTX t\n{ x=0; P7:r0=1; }\nP0@cta 0 ;\nexists (x==0)", "SYN201"),
])
def test_wrong_files(text: str, code: str) -> None:
    with pytest.raises(InputError) as error:
        read_litmus(text, "t.litmus")
    assert error.value.code == code
    assert error.value.render()


def test_traps_of_the_public_sets() -> None:
    """Quotes over lines, undeclared locations, empty cells, hexadecimal, `=` for `==`, conditions over lines."""
    test = read_litmus('PTX a name-with.dots\n"more\nthan {one} line" "two"\n(* comment; with | signs *)\n{\n'
                       "P0:r1=0x10; x = 3;\nP1:r2=0\n}\n P0@cta 0, gpu 0 | P1@cta 1, gpu 1 ;\n          | LC00: ;\n"
                       " st.weak z, r1 | ld.weak r2, x;\n"
                       "~exists\n (0:r1 = 16 /\\\n P1:r2 != 3 \\/ [z] == 0)\n")
    assert test.name == "a name-with.dots"
    assert [len(t.instructions) for t in test.threads] == [1, 2]
    assert test.quantifier == "~exists"
    assert not check(test).validated or check(test).allowed is False
    assert not check(test).allowed


def test_values() -> None:
    test = read_litmus("PTX t\n{ x=6; P0:r9=&x; }\nP0@cta 0,gpu 0 ;\nld.weak r0, [r9] ;\nmul r1, r0, 7 ;\n"
                       "div r2, r1, -4 ;\nsub r3, r2, r0 ;\nxor r4, r3, 1 ;\nor r5, r4, 2 ;\nand r6, r5, 0xf ;\n"
                       "atom.dec.u32 r7, [x], 3 ;\n"
                       "locations [P0:r1; P0:r2; P0:r3; P0:r6; P0:r7; x]\nexists (x == 0)\n")
    states, bounded = outcomes(test)
    assert not bounded
    (state,) = states
    assert [v for _, v in state] == [42, -10, -16, 3, 6, 3]


@pytest.mark.parametrize("code", ["add r1, r9, r9", "ld.weak r1, [r0]", "st.weak [r0], 1", "blt r9, 1, L0 ;\nL0:"])
def test_addresses_are_no_numbers(code: str) -> None:
    test = read_litmus(f"PTX t\n{{ x=0; P0:r9=&x; }}\nP0@cta 0,gpu 0 ;\n{code} ;\nexists (x == 0)\n")
    with pytest.raises(InputError) as error:
        check(test)
    assert error.value.code == "SYN205"


@pytest.mark.parametrize("cells", ["st.u64 [x], 1 | ld.u32 r0, [x]", "st.u32 [x], 1 | ld.u32 r0, [x+2]"])
def test_partial_overlap_is_not_answered(cells: str) -> None:
    test = read_litmus(f"{HEAD}P0@cta 0,gpu 0 | P1@cta 0,gpu 0 ;\n{cells} ;\nexists (P1:r0 == 1)\n")
    with pytest.raises(Unsupported, match="mixed sizes"):
        check(test)


def test_a_loop_that_writes_is_cut_and_said_so() -> None:
    test = read_litmus(f"{HEAD}P0@cta 0,gpu 0 ;\nL0: ;\natom.relaxed.gpu.add r0, x, 1 ;\nblt r0, 9, L0 ;\n"
                       "exists (x == 10)\n")
    answer = check(test)
    assert answer.bounded
    assert not answer.allowed
    assert not answer.conclusive


def test_time_limit() -> None:
    row = " | ".join("atom.relaxed.gpu.add r0, x, 1" for _ in range(7))
    head = " | ".join(f"P{i}@cta {i},gpu 0" for i in range(7))
    with pytest.raises(Unsupported, match="time"):
        check(read_litmus(f"{HEAD}{head} ;\n{row} ;\nforall (x == 7)\n"), limit_s=0.05)


def test_file_faults(tmp_path: Path) -> None:
    (tmp_path / "bad.litmus").write_bytes(b"PTX \xff")
    for path in (tmp_path / "bad.litmus", tmp_path / "none.litmus", tmp_path):
        with pytest.raises(InputError) as error:
            load_litmus(path)
        assert error.value.code == "SYN201"


SEED = ("PTX t\n{ x=0; s @ surface aliases x; P0:r1=&x; }\nP0@cta 0,gpu 0 | P1@warp 0,cta 0,gpu 0 ;\nst.weak x, 1 | "
        "ld.acquire.gpu r0, x ;\nbar.cta.sync 1 | bar.cta.sync 1 ;\nfilter (x == 1)\n"
        "exists (P1:r0 == 0 /\\ ~(x == 0))\n")


@given(st.integers(0, len(SEED)), st.integers(0, 12),
       st.text(alphabet="PTX{}();|:=@,.~/\\[]0123 xr\n\"*&-+abc", max_size=8))
def test_damaged_files_are_read_or_refused(at: int, length: int, put: str) -> None:
    try:
        test = read_litmus(SEED[:at] + put + SEED[at + length:])
        check(test, MODELS["8.6"], limit_s=2.0)
    except (InputError, Unsupported):
        pass


NV = """
.global x; .global f;
.surfref s virtually aliases x;
d0.b0.t0 {
  $0, 1;
  $1
  st.release.cta [f], 1;
}
d0.b0.t1 {
  ld.acquire.cta r0, [f] == 1; // the flag was seen
  ld r1, [x];
}
$2 (r1 == 1) as seen;
$$
st [x]   |                      | assert
sust [s] |                      | assert
sust [s] | fence.proxy.surface; | assert
sust [s] |                      | permit
"""


def test_the_mixed_proxy_notation() -> None:
    tests = read_nvlitmus(NV, "mp.test")
    assert [t.name for t in tests] == [f"mp-{i}-seen" for i in range(4)]
    assert [check(t).validated for t in tests] == [True, False, True, True]


@pytest.mark.parametrize("text", [
    "", "$$", NV.replace("as seen", ""), NV.replace("$2", "$7"), NV.replace(".surfref", ".x"),
    NV.replace("d0.b0.t1", "t1"),
])
def test_wrong_mixed_proxy_files(text: str) -> None:
    with pytest.raises(InputError) as error:
        read_nvlitmus(text)
    assert error.value.code == "SYN201"
