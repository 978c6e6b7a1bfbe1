"""Profiles of other tools, and libseccomp as a second compiler under proof."""

from __future__ import annotations

import ctypes
import ctypes.util
import json
import os
import random
from pathlib import Path
from typing import Any

import pytest

from warpproof.core import InputError
from warpproof.sandbox import (
    I386,
    NATIVE,
    Call,
    Policy,
    Rule,
    compile_policy,
    decode,
    describe,
    encode,
    firecracker_policy,
    inspect,
    load_filter,
    load_profile,
    number_of,
    oci_policy,
    parse_action,
    parse_test,
    read_groups,
    systemd_policy,
)
from warpproof.sandbox.obligations import equals_policy

KILL, THREAD, ALLOW = (parse_action(a) for a in ("kill_process", "kill_thread", "allow"))
DOCKER = {
    "defaultAction": "SCMP_ACT_ERRNO", "defaultErrnoRet": 1,
    "archMap": [{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_X86", "SCMP_ARCH_X32"]}],
    "syscalls": [
        {"names": ["read", "write", "futex_time64"], "action": "SCMP_ACT_ALLOW"},
        {"names": ["personality"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 8, "op": "SCMP_CMP_EQ"}]},
        {"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{"index": 0, "value": 40, "op": "SCMP_CMP_NE"}]},
        {"names": ["clone"], "action": "SCMP_ACT_ALLOW", "excludes": {"caps": ["CAP_SYS_ADMIN"]},
         "args": [{"index": 0, "value": 2114060288, "op": "SCMP_CMP_MASKED_EQ"}]},
        {"names": ["clone3"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38, "excludes": {"caps": ["CAP_SYS_ADMIN"]}},
        {"names": ["clone", "clone3", "mount"], "action": "SCMP_ACT_ALLOW", "includes": {"caps": ["CAP_SYS_ADMIN"]}},
        {"names": ["kill"], "action": "SCMP_ACT_ALLOW", "includes": {"arches": ["s390"]}},
        {"names": ["lseek"], "action": "SCMP_ACT_ALLOW",
         "args": [{"index": 2, "value": 0, "op": "SCMP_CMP_EQ"}, {"index": 2, "value": 1, "op": "SCMP_CMP_EQ"}]},
    ],
}
READ = {"names": ["read"], "action": "SCMP_ACT_ALLOW"}
FIRECRACKER = {"vmm": {"default_action": "trap", "filter_action": "allow", "filter": [
    {"syscall": "epoll_ctl", "comment": "events"},
    {"syscall": "futex", "args": [{"index": 1, "type": "dword", "op": "eq", "val": 129}]},
    {"syscall": "futex", "args": [{"index": 1, "type": "dword", "op": "eq", "val": 128}]},
    {"syscall": "mmap", "args": [{"index": 2, "type": "qword", "op": {"masked_eq": 4}, "val": 0},
                                 {"index": 3, "type": "dword", "op": "eq", "val": 34}]},
]}, "api": {"default_action": {"errno": 1}, "filter_action": "allow", "filter": [{"syscall": "read"}]}}
GROUPS = """\
@default
    # System calls that are always permitted
    exit
    exit_group
@basic-io
    # Basic IO
    read
    write
@small
    @basic-io
    lseek
"""


def decided(policy: Policy, name: str, *args: int, arch: int = NATIVE) -> str:
    a, b, c, d, e, f = (*args, *(0,) * (6 - len(args)))
    return describe(policy.decide(Call(number_of(name), arch, (a, b, c, d, e, f))))


def test_docker() -> None:
    made = oci_policy(DOCKER)
    assert decided(made, "read") == "allow"
    assert decided(made, "mount") == "errno(EPERM)"
    assert decided(made, "personality", 8) == "allow"
    assert decided(made, "personality", 9) == "errno(EPERM)"
    assert decided(made, "socket", 40) == "errno(EPERM)"
    assert decided(made, "clone", 0x10000) == "allow"
    assert decided(made, "clone", 0x10000000) == "errno(EPERM)"
    assert decided(made, "clone3") == "errno(ENOSYS)"
    assert decided(made, "kill") == "errno(EPERM)"
    assert [decided(made, "lseek", 0, 0, w) for w in (0, 1, 2)] == ["allow", "allow", "errno(EPERM)"]
    assert any("futex_time64" in n for n in made.notes)
    assert any("SCMP_ARCH_X32" in n for n in made.notes)
    assert equals_policy(compile_policy(made), made).status == "proved"
    admin = oci_policy(DOCKER, ["CAP_SYS_ADMIN"])
    assert decided(admin, "mount") == decided(admin, "clone3") == "allow"
    facts = [p.fact for p in inspect([compile_policy(made)], made).passages]
    assert facts[0] == "abi"
    assert "namespace" not in facts
    assert "mount" in [p.fact for p in inspect([compile_policy(admin)], admin).passages]


def test_oci_inside_a_runtime_configuration() -> None:
    inner = {"defaultAction": "SCMP_ACT_KILL_PROCESS", "architectures": ["SCMP_ARCH_X86_64"],
             "syscalls": [{"names": ["read"], "action": "SCMP_ACT_ALLOW"}]}
    made = oci_policy({"linux": {"seccomp": inner}})
    assert decided(made, "read", arch=I386) == "kill_thread"
    assert decided(made, "write") == "kill_process"


@pytest.mark.parametrize("change", [
    {"defaultAction": "SCMP_ACT_MAYBE"}, {"syscalls": 3}, {"defaultErrnoRet": -1}, {"defaultErrnoRet": 5000},
    {"syscalls": [READ | {"args": [{"index": 0, "value": 1, "op": "SCMP_EQ"}]}]},
    {"syscalls": [READ | {"args": [{"index": 0, "value": "1", "op": "SCMP_CMP_EQ"}]}]},
    {"syscalls": [READ | {"args": [{"index": 6, "value": 1, "op": "SCMP_CMP_EQ"}]}]},
    {"syscalls": [READ, READ | {"action": "SCMP_ACT_LOG"}]},
])
def test_no_oci_profile(change: dict[str, object]) -> None:
    with pytest.raises(InputError) as error:
        oci_policy(DOCKER | change)
    assert error.value.code in ("BOX608", "BOX603")


@pytest.mark.parametrize("seed", range(6))
def test_damaged_profiles_are_input_errors(seed: int) -> None:
    """Values of other types anywhere in a profile: a policy or an InputError, nothing else."""
    rng = random.Random(seed)
    refused = 0
    for _ in range(60):
        for original, read in ((DOCKER, oci_policy), (FIRECRACKER, firecracker_policy)):
            data = json.loads(json.dumps(original))
            damage(data, rng)
            try:
                read(data)
            except InputError:
                refused += 1
    assert refused > 10


def damage(data: Any, rng: random.Random) -> None:
    """Replace one value somewhere inside."""
    places = list(data) if isinstance(data, dict) else list(range(len(data)))
    place = rng.choice(places)
    inner = data[place]
    if isinstance(inner, dict | list) and inner and rng.random() < 0.8:
        damage(inner, rng)
    else:
        data[place] = rng.choice((None, 3, -1, True, 1 << 70, "x", [], {}, ["x"], {"caps": 3}, [3], {"x": "y"}, 1.5))


def test_firecracker() -> None:
    made = firecracker_policy(FIRECRACKER, "vmm")
    assert decided(made, "epoll_ctl") == "allow"
    assert [decided(made, "futex", 0, op) for op in (128, 129, 0, 128 | 1 << 32)] == ["allow", "allow", "trap", "allow"]
    assert decided(made, "mmap", 0, 0, 3, 34) == "allow"
    assert decided(made, "mmap", 0, 0, 7, 34) == "trap"
    assert decided(made, "read", arch=I386) == "kill_process"
    assert equals_policy(compile_policy(made), made).status == "proved"
    assert decided(firecracker_policy(FIRECRACKER, "api"), "write") == "errno(EPERM)"
    for thread in (None, "vcpu"):
        with pytest.raises(InputError):
            firecracker_policy(FIRECRACKER, thread)


def test_systemd() -> None:
    groups = read_groups(GROUPS)
    assert groups["@small"] == ("@basic-io", "lseek")
    unit = "[Service]\nSystemCallFilter=@small \\\n  fstat\nSystemCallFilter=~lseek\nSystemCallErrorNumber=EPERM\n"
    made = systemd_policy(unit, groups)
    assert [decided(made, n) for n in ("read", "exit", "fstat", "lseek")] == ["allow", "allow", "allow", "errno(EPERM)"]
    assert decided(made, "read", arch=I386) == "allow"
    native = systemd_policy(unit + "SystemCallArchitectures=native\n", groups)
    assert decided(native, "read", arch=I386) == "kill_thread"
    denied = systemd_policy("SystemCallFilter=~@basic-io open:ENOENT\n", groups)
    assert [decided(denied, n) for n in ("read", "open", "close")] == ["kill_process", "errno(ENOENT)", "allow"]
    emptied = systemd_policy("SystemCallFilter=open\nSystemCallFilter=\nSystemCallFilter=~open\n", groups)
    assert decided(emptied, "close") == "allow"
    for text, code in (("[Service]\nType=simple\n", "BOX608"), ("SystemCallFilter=@mount\n", "BOX609")):
        with pytest.raises(InputError) as error:
            systemd_policy(text, groups)
        assert error.value.code == code


def test_files(tmp_path: Path) -> None:
    program = compile_policy(oci_policy(DOCKER))
    raw, text, profile, thread, unit, groups = (tmp_path / n for n in ("f.bpf", "f.asm", "p.json", "t.json", "u", "g"))
    raw.write_bytes(encode(program))
    text.write_text("ret allow ; everything\n", encoding="utf-8")
    profile.write_text(json.dumps(DOCKER), encoding="utf-8")
    thread.write_text(json.dumps(FIRECRACKER), encoding="utf-8")
    unit.write_text("SystemCallFilter=@small\n", encoding="utf-8")
    groups.write_text(GROUPS, encoding="utf-8")
    assert load_filter(str(raw)) == (program, None)
    assert len(load_filter(str(text))[0]) == 1
    assert decided(load_profile(str(profile), ["CAP_SYS_ADMIN"]), "mount") == "allow"
    assert load_profile(f"{thread}::api").name == "Firecracker api"
    assert decided(load_profile(str(unit), groups=str(groups)), "read") == "allow"
    for name, code in ((str(tmp_path), "BOX600"), (str(tmp_path / "no"), "BOX600")):
        with pytest.raises(InputError) as error:
            load_filter(name)
        assert error.value.code == code
    profile.write_text('{"a": 1}', encoding="utf-8")
    with pytest.raises(InputError):
        load_profile(str(profile))


LIBRARY = ctypes.util.find_library("seccomp") or ""


class Comparison(ctypes.Structure):
    _fields_ = [("arg", ctypes.c_uint), ("op", ctypes.c_int), ("a", ctypes.c_uint64), ("b", ctypes.c_uint64)]


OPERATORS = {"!=": 1, "<": 2, "<=": 3, "==": 4, ">=": 5, ">": 6}


@pytest.mark.skipif(not LIBRARY, reason="libseccomp is not installed")
@pytest.mark.parametrize("optimise", [1, 2])
@pytest.mark.parametrize("seed", range(2))
def test_libseccomp_compiles_to_the_policy(seed: int, optimise: int, tmp_path: Path) -> None:
    """Its filter, exported as bytes, is proved equal to the policy; and not to one that kills the whole process for
    other architectures, which is not its default."""
    rng = random.Random(seed)
    library = ctypes.CDLL(LIBRARY)
    library.seccomp_init.restype = ctypes.c_void_p
    context = ctypes.c_void_p(library.seccomp_init(ctypes.c_uint32(KILL)))
    assert library.seccomp_attr_set(context, 8, ctypes.c_uint32(optimise)) == 0
    numbers = rng.sample(range(330), 80)
    rules = [Rule(tuple(numbers[:60]), ALLOW)]
    for number in numbers[60:]:
        op = rng.choice(tuple(OPERATORS))
        test = parse_test(f"arg{rng.randrange(6)}:64 {op} {rng.getrandbits(rng.choice((8, 40, 63))) + 1}")
        rules.append(Rule((number,), ALLOW, (test,)))
    for rule in rules:
        for number in rule.calls:
            compared = [Comparison(t.argument, OPERATORS[t.op], t.value, 0) for t in rule.when]
            array = (Comparison * len(compared))(*compared)
            assert library.seccomp_rule_add_array(context, ctypes.c_uint32(ALLOW), number, len(compared), array) == 0
    path = tmp_path / "filter"
    with path.open("wb") as file:
        assert library.seccomp_export_bpf(context, file.fileno()) == 0
    library.seccomp_release(context)
    program = decode(path.read_bytes())
    assert os.path.getsize(path) == 8 * len(program)
    rules.append(Rule((0xFFFFFFFF,), KILL))  # no x32 call to libseccomp
    assert equals_policy(program, Policy("p", tuple(rules), KILL, THREAD, THREAD)).status == "proved"
    outcome = equals_policy(program, Policy("p", tuple(rules), KILL, KILL, KILL))
    assert outcome.detail == "the filter gives kill_thread, the policy kill_process"
