"""The jobs a worker can do, as JSON values in and out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from warpproof import api
from warpproof.report import jsonable, to_dict


def perform(job: Mapping[str, Any], on_stage: Callable[[str], None]) -> dict[str, Any]:
    """Do the job named by `task`: `prove`, `run` or `replay`."""
    match job["task"]:
        case "prove":
            return to_dict(api.prove(_job(job), on_stage))
        case "run":
            return dict(jsonable(api.run(_job(job), on_stage)))
        case "replay":
            return dict(jsonable(api.replay(str(job["file"]), on_stage)))
        case other:
            raise AssertionError(other)


def _job(job: Mapping[str, Any]) -> api.Job:
    fields = {name: job[name] for name in api.Job.__dataclass_fields__ if job.get(name) is not None}
    return api.Job(**{**fields, "options": tuple(job.get("options", ()))})
