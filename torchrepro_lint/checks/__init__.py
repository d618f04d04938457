"""The rules: the table that lists each one with its check.

- ``Rule`` and ``Finding`` of ``rule``: the records that each check and the engine share.
- ``render``, ``find``, ``pages`` and ``url`` of ``pages``: the documentation of rules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from torchrepro_lint.checks.rule import Rule

    RULES: tuple[Rule, ...]


# Why the rules that have no fixer have none: the end of "there is no fix: …".
_UNFIXED = {
    "TRL001": "a syntax error has to be corrected by hand",
    "TRL003": "only the author knows what runs there",
    "TRL107": "only the author can choose the default seed",
    "TRL108": "only the author can choose the seed of the environment",
    "TRL109": "only the author knows what the option should seed",
    "TRL111": "only the author knows what the tensor should hold",
    "TRL112": "the state has to be saved with the checkpoint first, which only the author can do",
    "TRL113": "only the author knows how many steps the budget of time was meant for",
    "TRL206": "turning the timing off costs speed, and only a measurement shows how much",
    "TRL304": "passing a generator to the dataset takes several edits; torch 1.9 and later seed numpy in workers",
    "TRL306": "only the author knows how many workers the first run had",
    "TRL403": "the program turns deterministic algorithms on, not the library that it calls",
    "TRL406": "only the author knows which of equal values should win",
    "TRL501": "the variable has to be set before Python starts, outside the program",
    "TRL505": "taking results in the order of submission changes how the program waits for them",
    "TRL506": "only the author knows how each task gets a seed of its own",
}


def __getattr__(name: str) -> tuple[Rule, ...]:
    if name != "RULES":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    table = globals()[name] = _table()
    return table


def _table() -> tuple[Rule, ...]:
    from torchrepro_lint.checks import (
        autotuned,
        completion_order,
        concurrent_draws,
        cublas_workspace,
        cudnn_benchmark,
        cudnn_nondeterministic,
        dataloader,
        dataset_numpy,
        deterministic_algorithms,
        directory_listing,
        entropy,
        environments,
        hash_seed,
        hash_value,
        index_select,
        needs_flag,
        not_enabled,
        not_followed,
        operations,
        optional_seed,
        partly_seeded,
        resumed,
        seeded_too_late,
        splits,
        syntax_error,
        third_party,
        ties,
        uninitialised,
        unordered_iteration,
        unseeded,
        unused_seed_option,
        unused_suppression,
        wall_clock,
        worker_count,
        worker_init,
    )
    from torchrepro_lint.checks.rule import Rule

    return (
        Rule("TRL001", "syntax-error", "error", True, syntax_error.check, _UNFIXED["TRL001"]),
        Rule("TRL002", "unused-suppression", "warning", False, unused_suppression.check),
        Rule("TRL003", "not-followed", "note", False, not_followed.check, _UNFIXED["TRL003"]),
        Rule("TRL101", "unseeded-torch", "warning", True, unseeded.torch),
        Rule("TRL102", "unseeded-numpy", "warning", True, unseeded.numpy),
        Rule("TRL103", "unseeded-python-random", "warning", True, unseeded.python),
        Rule("TRL104", "seeded-too-late", "warning", True, seeded_too_late.check),
        Rule("TRL105", "nondeterministic-seed", "error", True, entropy.seed),
        Rule("TRL106", "unseeded-generator", "warning", True, entropy.generator),
        Rule("TRL107", "optional-seed", "note", True, optional_seed.check, _UNFIXED["TRL107"]),
        Rule("TRL108", "unseeded-environment", "warning", True, environments.check, _UNFIXED["TRL108"]),
        Rule("TRL109", "unused-seed-option", "warning", True, unused_seed_option.check, _UNFIXED["TRL109"]),
        Rule("TRL110", "partly-seeded-function", "warning", True, partly_seeded.check),
        Rule("TRL111", "uninitialised-memory", "warning", True, uninitialised.check, _UNFIXED["TRL111"]),
        Rule("TRL112", "resume-without-rng-state", "note", True, resumed.check, _UNFIXED["TRL112"]),
        Rule("TRL113", "wall-clock-decides", "warning", True, wall_clock.check, _UNFIXED["TRL113"]),
        Rule("TRL201", "cudnn-benchmark", "warning", True, cudnn_benchmark.check),
        Rule("TRL202", "cudnn-nondeterministic", "warning", True, cudnn_nondeterministic.check),
        Rule("TRL203", "deterministic-algorithms-not-enabled", "warning", True, not_enabled.check),
        Rule("TRL204", "deterministic-algorithms-misused", "warning", True, deterministic_algorithms.check),
        Rule("TRL205", "cublas-workspace", "error", True, cublas_workspace.check),
        Rule("TRL206", "autotuned-kernels", "warning", True, autotuned.check, _UNFIXED["TRL206"]),
        Rule("TRL301", "dataloader-worker-init", "warning", True, dataloader.worker_init),
        Rule("TRL302", "dataloader-generator", "warning", True, dataloader.generator),
        Rule("TRL303", "random-split-generator", "warning", True, splits.check),
        Rule("TRL304", "dataset-numpy-rng", "warning", True, dataset_numpy.check, _UNFIXED["TRL304"]),
        Rule("TRL305", "dataloader-out-of-order", "error", True, worker_count.out_of_order),
        Rule("TRL306", "machine-dependent-workers", "note", False, worker_count.machine_dependent, _UNFIXED["TRL306"]),
        Rule("TRL307", "worker-init-reseeds", "error", True, worker_init.check),
        Rule("TRL401", "index-select", "warning", True, index_select.check),
        Rule("TRL402", "no-deterministic-implementation", "error", True, operations.documented),
        Rule("TRL403", "needs-deterministic-flag", "note", False, needs_flag.check, _UNFIXED["TRL403"]),
        Rule("TRL404", "undocumented-nondeterminism", "error", True, operations.undocumented),
        Rule("TRL405", "third-party-nondeterminism", "warning", True, third_party.check),
        Rule("TRL406", "tie-dependent-order", "note", False, ties.check, _UNFIXED["TRL406"]),
        Rule("TRL501", "pythonhashseed-in-process", "warning", True, hash_seed.check, _UNFIXED["TRL501"]),
        Rule("TRL502", "unordered-iteration", "warning", True, unordered_iteration.check),
        Rule("TRL503", "unsorted-directory-listing", "warning", True, directory_listing.check),
        Rule("TRL504", "hash-dependent-value", "warning", True, hash_value.check),
        Rule("TRL505", "completion-order", "warning", True, completion_order.check, _UNFIXED["TRL505"]),
        Rule("TRL506", "concurrent-draws", "warning", True, concurrent_draws.check, _UNFIXED["TRL506"]),
    )
