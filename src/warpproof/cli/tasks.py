"""The jobs a worker can do, as JSON values in and out: first the user's own files, then the kernel's PTX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from warpproof.frontends import Job, PtxSource, Request, read_job
from warpproof.report import jsonable, to_dict

if TYPE_CHECKING:
    from warpproof import api

Stage = Callable[[str], None]
Finish = Callable[[PtxSource, Stage], dict[str, Any]]


def begin(job: Mapping[str, Any], on_stage: Stage, ask_for: Callable[[Request], None]) -> Finish:
    """Read and execute the user's own files for the task `prove`, `run` or `replay`; ask for the kernel they name.

    The prover is loaded only after the kernel was asked for. The rest of the work is done by what is returned.
    """
    plan = _plan(job, on_stage, ask_for)
    if job["task"] == "prove":
        return lambda source, stage: to_dict(plan.finish(source, stage))
    return lambda source, stage: dict(jsonable(plan.finish(source, stage)))


def perform(job: Mapping[str, Any], on_stage: Stage) -> dict[str, Any]:
    """All of the job in this process, not confined."""
    asked: list[Request] = []
    finish = begin(job, on_stage, asked.append)
    on_stage("compiling")
    return finish(asked[0].load(), on_stage)


def _plan(job: Mapping[str, Any], on_stage: Stage, ask_for: Callable[[Request], None]) -> api.Plan[Any]:
    if job["task"] == "replay":
        from warpproof import api

        plan = api.plan_replay(str(job["file"]), on_stage)
        ask_for(plan.request)
        return plan
    on_stage("reading the contract")
    fields = {name: job[name] for name in Job.__dataclass_fields__ if job.get(name) is not None}
    read = Job(**{**fields, "options": tuple(job.get("options", ()))})
    question = read_job(read)
    ask_for(question.request)
    from warpproof import api

    match job["task"]:
        case "prove":
            return api.plan_prove(read, on_stage, question)
        case "run":
            return api.plan_run(read, on_stage, question)
        case other:
            raise AssertionError(other)
