"""What is wrong with the moments of a run, and what is missing from it: the rules in a few words each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.conditions import OPEN
from torchrepro_lint.catalogue.rows import FAMILIES, NOT_NEEDED_SINCE, VALUES, VARIABLE
from torchrepro_lint.determinism import enables, set_in
from torchrepro_lint.flags import (
    CUDNN_BENCHMARK,
    CUDNN_DETERMINISTIC,
    DETERMINISTIC,
    MAX_AUTOTUNE,
    WARN,
    is_off,
)
from torchrepro_lint.reached import device_of, is_convolution, on_request
from torchrepro_lint.source.files import release
from torchrepro_lint.timeline import Trouble
from torchrepro_lint.work import first_work

if TYPE_CHECKING:
    from torchrepro_lint.context import Context
    from torchrepro_lint.programs import Program
    from torchrepro_lint.trace.trace import Happening

_CODES = {"torch": "TRL101", "numpy": "TRL102", "python": "TRL103"}
_OVERRULES_TIMING_SINCE = (2, 10)


class Troubles:
    """Asked of one program."""

    def __init__(self, context: Context, program: Program) -> None:
        self._context = context
        self._program = program
        project, self._effects = context.project, program.effects
        self._enabled = enables(project, program)
        self._cudnn = self._enabled or enables(project, program, CUDNN_DETERMINISTIC)
        self._torch = release(context.catalogue.version)
        self._work = first_work(project, program)
        self._on_cuda = device_of(context, program) == "cuda"

    def of(self, lane: str, kind: str, what: str, order: int, happening: Happening) -> Trouble | None:
        """What is wrong with something that happens; None where nothing is."""
        found = ("", "")
        if kind == "draw":
            found = self._draw(what, order)
        elif kind == "entropy":
            found = ("TRL105", "a new seed in each run")
        elif kind == "operation":
            found = self._operation(happening)
        elif kind == "set":
            found = self._set(what, order)
        return Trouble(lane, *found) if found[0] else None

    def state(self, family: str) -> str:
        """What became of a generator; see ``Lane``."""
        effects = self._effects
        draws, seeds = effects.draws.get(family, ()), effects.seeds.get(family, ())
        if family == "own":
            return "unseeded" if draws else "seeded"
        if not seeds and family in effects.entropic:
            return "entropy"
        if not seeds:
            return "unknown" if effects.unknown_seeder else "unseeded"
        return "late" if draws and draws[0].order < seeds[0].order else "seeded"

    def missing(self) -> Iterator[Trouble]:
        """What the run lacks as a whole."""
        for family in FAMILIES:
            if family.key in self._effects.draws and self.state(family.key) == "unseeded":
                yield Trouble(family.key, _CODES[family.key], f"nothing seeds {family.owner}: {family.seeder}")
        waiting = set() if self._enabled else set(self._waiting())
        if waiting:
            who = "1 operation waits" if len(waiting) == 1 else f"{len(waiting)} operations wait"
            yield Trouble("flags", "TRL203", f"{who} for torch.use_deterministic_algorithms(True)")
        if self._needs_workspace() and not any(self._workspaces()):
            yield Trouble("variables", "TRL205", f'os.environ["{VARIABLE}"] = ":4096:8" before work on CUDA')

    def _draw(self, family: str, order: int) -> tuple[str, str]:
        effects = self._effects
        if family not in _CODES or effects.unknown_seeder:
            return ("TRL106", "starts from entropy") if family == "own" else ("", "")
        seeds = effects.seeds.get(family, ())
        if not seeds:
            return ("", "") if family in effects.entropic else (_CODES[family], "never seeded")
        return ("TRL104", "before it is seeded") if order < seeds[0].order else ("", "")

    def _operation(self, happening: Happening) -> tuple[str, str]:
        rows = {id(each.happening): each.row for each in on_request(self._context, self._program)}
        row = rows.get(id(happening))
        if row is None:
            return (
                "TRL402",
                "deterministic mode would stop here" if not self._enabled else "deterministic mode stops here",
            )
        if self._enabled or (self._cudnn and is_convolution(row)):
            return "", ""
        return "TRL203", "nothing asks for it"

    def _set(self, what: str, order: int) -> tuple[str, str]:
        values = [each.value for each in set_in(self._context.project, self._program, what) if each.order == order]
        value = values[0] if values else OPEN
        if value is OPEN:
            return "", ""
        if what == CUDNN_BENCHMARK and not is_off(value):
            return "TRL201", "picks algorithms by timing them"
        if what == CUDNN_DETERMINISTIC and is_off(value) and not self._enabled:
            return "TRL202", "allows nondeterministic convolutions"
        if what == DETERMINISTIC and (is_off(value) or value == WARN):
            return "TRL204", "off" if is_off(value) else "only warns"
        if (
            what == MAX_AUTOTUNE
            and not is_off(value)
            and not (self._enabled and self._torch >= _OVERRULES_TIMING_SINCE)
        ):
            return "TRL206", "picks kernels by timing them"
        if what == VARIABLE and self._needs_workspace():
            if value not in VALUES:
                return "TRL205", "not a value that torch accepts"
            if self._work is not None and self._work[0] < order:
                return "TRL205", "after work on CUDA has begun"
        return "", ""

    def _needs_workspace(self) -> bool:
        return self._enabled and self._on_cuda and self._torch < NOT_NEEDED_SINCE

    def _workspaces(self) -> Iterator[bool]:
        for touch in set_in(self._context.project, self._program, VARIABLE):
            yield touch.value is not None

    def _waiting(self) -> Iterator[str]:
        for each in on_request(self._context, self._program):
            if not (self._cudnn and is_convolution(each.row)):
                yield each.row.operation
