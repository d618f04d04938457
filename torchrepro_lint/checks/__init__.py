"""The one table of rules."""

from __future__ import annotations

from torchrepro_lint.checks import (
    cudnn_benchmark,
    dataloader,
    deterministic_algorithms,
    entropy,
    index_select,
    needs_flag,
    not_enabled,
    operations,
    optional_seed,
    partly_seeded,
    seeded_too_late,
    syntax_error,
    third_party,
    ties,
    uninitialised,
    unseeded,
    unused_seed_option,
)
from torchrepro_lint.rule import Rule

RULES: tuple[Rule, ...] = (
    Rule("TRL001", "syntax-error", "error", True, syntax_error.check),
    Rule("TRL101", "unseeded-torch", "warning", True, unseeded.torch),
    Rule("TRL102", "unseeded-numpy", "warning", True, unseeded.numpy),
    Rule("TRL103", "unseeded-python-random", "warning", True, unseeded.python),
    Rule("TRL104", "seeded-too-late", "warning", True, seeded_too_late.check),
    Rule("TRL105", "nondeterministic-seed", "error", True, entropy.seed),
    Rule("TRL106", "unseeded-generator", "warning", True, entropy.generator),
    Rule("TRL107", "optional-seed", "note", False, optional_seed.check),
    Rule("TRL109", "unused-seed-option", "warning", True, unused_seed_option.check),
    Rule("TRL110", "partly-seeded-function", "warning", True, partly_seeded.check),
    Rule("TRL111", "uninitialised-parameter", "warning", False, uninitialised.check),
    Rule("TRL201", "cudnn-benchmark", "warning", True, cudnn_benchmark.check),
    Rule("TRL203", "deterministic-algorithms-not-enabled", "warning", True, not_enabled.check),
    Rule("TRL204", "deterministic-algorithms-misused", "warning", True, deterministic_algorithms.check),
    Rule("TRL301", "dataloader-worker-init", "warning", True, dataloader.worker_init),
    Rule("TRL302", "dataloader-generator", "warning", True, dataloader.generator),
    Rule("TRL401", "index-select", "warning", True, index_select.check),
    Rule("TRL402", "no-deterministic-implementation", "error", True, operations.documented),
    Rule("TRL403", "needs-deterministic-flag", "note", False, needs_flag.check),
    Rule("TRL404", "undocumented-nondeterminism", "error", True, operations.undocumented),
    Rule("TRL405", "third-party-nondeterminism", "warning", True, third_party.check),
    Rule("TRL406", "tie-dependent-order", "note", False, ties.check),
)
