"""What is to be judged, as the user names it: the files of the question, and the kernel that is asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from warpproof.core import InputError
from warpproof.frontends.intake import Request, split_kernel
from warpproof.frontends.triton import TritonLaunch
from warpproof.reference import Launch, load_contract, load_launch, load_spec


@dataclass(frozen=True, slots=True)
class Job:
    """What is to be proved: a contract file, or a spec, a kernel and a launch file; and how.

    `kernel` beside a contract replaces the one the contract names. Paths are as the user wrote them.
    """

    contract: str | None = None
    spec: str | None = None
    kernel: str | None = None
    launch: str | None = None
    kernel_name: str | None = None
    arch: str | None = None
    options: tuple[str, ...] = ()
    timeout_s: float = 100.0
    seed: int = 0
    sample: int = 0


@dataclass(frozen=True, slots=True)
class Question:
    """A job whose own files were read and executed: launch and reference; its kernel was not looked at yet."""

    launch: Launch
    reference: Callable[..., Mapping[str, Any]]
    request: Request


def read_job(job: Job) -> Question:
    """Execute the contract or spec file and read the launch; InputError for what is wrong with them."""
    launch, reference, path, name = _parts(job)
    options = (*launch.options.options, *job.options)
    request = Request(str(path), name, job.arch or launch.sm, options, _specialisation(launch))
    return Question(launch, reference, request)


def _specialisation(launch: Launch) -> TritonLaunch:
    """What a front end that specialises kernels has to know of the launch."""
    given = launch.options
    counts = {"num_warps": given.num_warps, "num_stages": given.num_stages, "num_ctas": given.num_ctas}
    return TritonLaunch(
        tuple((p.name, p.dtype, p.kind.startswith("ptr")) for p in launch.params if p.kind != "ptr_null"),
        given.constexprs, given.divisible_by_16, {k: v for k, v in counts.items() if v is not None},
    )


def _parts(job: Job) -> tuple[Launch, Callable[..., Mapping[str, Any]], Path, str | None]:
    given, named = split_kernel(job.kernel) if job.kernel else (None, None)
    if job.contract is not None:
        file, _, which = job.contract.partition("::")
        contract = load_contract(file, which or None)
        path = contract.kernel_path if given is None else Path(given)
        name = job.kernel_name or named or contract.kernel_name
        return contract.launch, contract.reference, path, name
    if given is None or job.spec is None or job.launch is None:
        raise InputError("CLI601", "give a contract, or all of spec, kernel and launch")
    launch = load_launch(Path(job.launch))
    return launch, load_spec(job.spec), Path(given), job.kernel_name or named or launch.kernel or None
