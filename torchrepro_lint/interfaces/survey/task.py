"""A task of a survey: one repository, unpacked, analysed as a project of its own, and told in rows of plain values.

A row is a dictionary by the columns of ``dataset.TABLES``, without those that name the repository. The rows depend on the
content of the repository alone, except for what ``runs`` says of time and memory.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from torchrepro_lint import __version__
from torchrepro_lint.config.roots import ConfigOptions
from torchrepro_lint.engine.import_closure import plan
from torchrepro_lint.engine.read_project import ReadOptions
from torchrepro_lint.interfaces.overview.records import EntryRecord, FindingRecord, OperationUse, Overview
from torchrepro_lint.interfaces.overview.survey import TRAINERS, Survey, survey
from torchrepro_lint.interfaces.survey.repositories import RefusedError, Repository, UnpackLimits
from torchrepro_lint.interfaces.survey.unpacking import content_digest, unpack
from torchrepro_lint.source.errors import OUT_OF_MEMORY, UsageError, escape_surrogates

# What the engine says of a file that takes too long, or whose own process ended, by the limit of processor time for one.
_TOO_LONG, _ENDED = "it takes longer than", "its process "
_OUT_OF_TIME = "its process was ended by SIGXCPU"
Row = dict[str, Any]
Rows = dict[str, list[Row]]
# Packages that train for the program, by the name under which they are counted.
FRAMEWORKS: Mapping[str, str] = {
    **{name: name for name in sorted(TRAINERS | {"horovod", "jax", "keras", "ray", "tensorflow"})},
    "lightning_fabric": "lightning",
    "pytorch_lightning": "lightning",
    "sb3_contrib": "stable_baselines3",
}


class TaskLimits(NamedTuple):
    """The limits of a task: seconds of processor time, bytes of memory of each of its processes, and of what is unpacked."""

    seconds: float = 300.0
    memory: int = 2 << 30
    unpack: UnpackLimits = UnpackLimits()


class Task(NamedTuple):
    """A repository to analyse. ``known`` is the digest of the content that needs no new analysis, if there is one."""

    repository: Repository
    known: str
    honour_settings: bool
    limits: TaskLimits


class Result(NamedTuple):
    """The row of a run, and the rows of the other tables; of content that is known the run says ``unchanged``, and no more."""

    run: Row
    rows: Rows


def analyse(task: Task, scratch: Path) -> Result:
    """The result of a task, which may write to the empty folder ``scratch``; the working directory becomes a folder in it.

    A repository that cannot be analysed has a run that says why.
    """
    run = blank_run(task)
    try:
        if task.repository.kind == "missing":
            raise RefusedError("missing", "no such folder, archive or git repository")
        run["digest"] = content_digest(task.repository, task.limits.unpack)
        if run["digest"] == task.known:
            return Result({**run, "status": "unchanged"}, {})
        return _analysed(task, scratch, run)
    except RefusedError as error:
        return _plain(failed(run, error.reason, str(error)))
    except UsageError as error:
        return _plain(failed(run, "settings", str(error)))
    except MemoryError:
        return _plain(failed(run, "memory", OUT_OF_MEMORY))
    except RecursionError:
        return _plain(failed(run, "nesting", "it is nested too deeply"))
    except OSError as error:
        return _plain(failed(run, "unreadable", f"cannot be read: {error.strerror or error}"))


def blank_run(task: Task) -> Row:
    """The row of a run of which nothing is known yet."""
    repository = task.repository
    return {
        "repository": repository.id,
        "name": repository.name,
        "kind": repository.kind,
        "revision": repository.revision,
        "status": "ok",
        **dict.fromkeys(("digest", "reason", "detail", "torch", "torch_decided_by"), ""),
        **dict.fromkeys(("files", "bytes", "entry_points", "reproducible", "findings", "peak_bytes"), 0),
        **dict.fromkeys(("wall_seconds", "cpu_seconds"), 0.0),
        **{name: [] for name in ("frameworks", "packages", "errors")},
        "deadline_seconds": task.limits.seconds,
        "memory_limit": task.limits.memory,
        "version": __version__,
    }


def failed(run: Row, reason: str, detail: str) -> Result:
    """The result of a repository that could not be analysed."""
    return Result({**run, "status": "failed", "reason": reason, "detail": detail}, {})


def _analysed(task: Task, scratch: Path, run: Row) -> Result:
    top = scratch / "repository"
    top.mkdir()
    unpacked = unpack(task.repository, top, task.limits.unpack)
    # It is the top of a repository, as in a checkout: what lies above it decides nothing.
    (top / ".git").mkdir(exist_ok=True)
    os.chdir(top)
    options = ConfigOptions(isolated=not task.honour_settings, top=os.getcwd())
    done = survey(plan((".",), options), "", task.honour_settings, _no_progress, ReadOptions(jobs=1))
    overview = done.overview
    entries = [_entry(each) for each in overview.entries]
    run |= {
        "revision": unpacked.revision,
        "files": overview.files,
        "bytes": unpacked.bytes,
        "torch": overview.aims[0].torch if overview.aims else "",
        "torch_decided_by": overview.aims[0].decided_by if overview.aims else "",
        "frameworks": sorted({FRAMEWORKS[name] for name in done.packages if name in FRAMEWORKS}),
        "packages": [{"name": name, "files": count} for name, count in sorted(done.packages.items())],
        "entry_points": sum(map(_counts, entries)),
        "reproducible": sum(_counts(entry) and entry["verdict"] == "reproducible" for entry in entries),
        "findings": len(overview.findings),
        **_trouble(done),
    }
    rows = {
        "findings": [_finding(each) for each in overview.findings],
        "entry_points": entries,
        "gaps": list(_gaps(overview, unpacked.left_out)),
        "operations": [_operation(each) for each in overview.uses],
    }
    return _plain(Result(run, rows))


def _no_progress(total: int) -> Callable[[], None]:  # noqa: ARG001  as ``Progress`` has it
    return lambda: None


def _trouble(done: Survey) -> Row:
    """What a run says of errors in single files: they cost those files and not the others."""
    errors = [error.removeprefix("./") for error in done.errors]
    # A file of which the parser could not get hold within the limits is told as one that cannot be parsed.
    errors += [
        f"{gap.what}: {gap.why}" for gap in done.overview.gaps if gap.kind == "syntax" and _is_of_limits(gap.why)
    ]
    if not errors:
        return {}
    causes = (("memory", OUT_OF_MEMORY), ("deadline", _OUT_OF_TIME))
    reason = next((reason for reason, told in causes if any(told in error for error in errors)), "files")
    return {"status": "partial", "reason": reason, "detail": errors[0], "errors": errors}


def _is_of_limits(why: str) -> bool:
    return OUT_OF_MEMORY in why or _TOO_LONG in why or _ENDED in why


def _columns(record: object, *names: str) -> Row:
    """The fields of a record that are columns of the same names."""
    return {name: getattr(record, name) for name in names}


def _entry(entry: EntryRecord) -> Row:
    return {
        **_columns(entry, "id", "path", "function", "torch", "device", "matters", "uses_torch"),
        "verdict": _verdict(entry),
        "unfollowed": len(entry.timeline.gaps),
        "controls": [_columns(cell, "control", "state", "says", "because") for cell in entry.cells],
    }


def _counts(entry: Row) -> bool:
    """Whether there is something to reproduce: the run uses torch, and saves or measures something."""
    return bool(entry["matters"] and entry["uses_torch"])


def _verdict(entry: EntryRecord) -> str:
    """The worst state of any control; a run whose controls are settled is reproducible only if all of its code is followed."""
    states = {cell.state for cell in entry.cells}
    if "bad" in states:
        return "to fix"
    if "risk" in states:
        return "depends"
    return "unknown" if "unknown" in states or entry.timeline.gaps else "reproducible"


def _finding(finding: FindingRecord) -> Row:
    return {
        **_columns(finding, "id", "code", "severity", "message", "control", "line"),
        **_columns(finding.place, "path", "row", "column", "cell"),
        "rule": finding.name,
        "entry_points": list(finding.entries),
        "fix": "" if finding.fix is None else "safe" if finding.fix.safe else "unsafe",
    }


def _gaps(overview: Overview, left_out: tuple[tuple[str, str], ...]) -> Iterator[Row]:
    yield from ({"kind": "left out", "what": what, "why": why} for what, why in left_out)
    yield from (_columns(gap, "kind", "what", "why") for gap in overview.gaps)


def _operation(use: OperationUse) -> Row:
    return {
        **_columns(use, "operation", "torch", "status"),
        "calls": len(use.places),
        "releases": [{"torch": version, "status": status} for version, status in use.releases],
        "places": [str(place) for place in use.places],
    }


def _plain(result: Result) -> Result:
    """A result whose texts are all valid Unicode: undecodable bytes of a path or a source are escaped."""
    return Result(_escaped(result.run), _escaped(result.rows))


def _escaped(value: Any) -> Any:
    if isinstance(value, str):
        return escape_surrogates(value)
    if isinstance(value, list):
        return [_escaped(each) for each in value]
    if isinstance(value, dict):
        return {key: _escaped(each) for key, each in value.items()}
    return value
