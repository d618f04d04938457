"""Mutations of flags of torch and cuDNN: off, wrong, or too late."""

from __future__ import annotations

from collections.abc import Iterator

from mutating import ENTRY, Files, Mutant, calls, changed, put, row_of, statements, with_row


def switch_benchmark_on(files: Files) -> Iterator[Mutant]:
    """TRL201: cuDNN picks algorithms by their time."""
    text = files[ENTRY]
    row = next(iter(calls(text, "torch.manual_seed", "seed_everything"))).lineno
    for new in ("torch.backends.cudnn.benchmark = True", "torch.backends.cudnn.flags(enabled=True, benchmark=True)"):
        kept = text.replace("torch.backends.cudnn.benchmark = False", "pass")
        yield Mutant(f"write {new}", changed(files, ENTRY, with_row(kept, row, new)), "TRL201", ENTRY, row)


def switch_cudnn_off(files: Files) -> Iterator[Mutant]:
    """TRL202: nondeterministic cuDNN, where nothing asks for more."""
    text = files[ENTRY]
    if "use_deterministic_algorithms" not in text:
        row = next(iter(calls(text, "torch.manual_seed", "seed_everything"))).lineno
        new = "torch.backends.cudnn.deterministic = False"
        yield Mutant(f"write {new}", changed(files, ENTRY, with_row(text, row, new)), "TRL202", ENTRY, row)


def switch_strict_mode(files: Files) -> Iterator[Mutant]:
    """TRL203 and TRL204: deterministic algorithms not asked for, or in a way that does nothing."""
    text = files[ENTRY]
    for statement in statements(text, "torch.use_deterministic_algorithms"):
        broken = changed(files, ENTRY, put(text, statement, "pass"))
        yield Mutant("ask for nothing", broken, "TRL203", ENTRY, row_of(text, "convolves"))
        for new in ("()", "(False)", "(True, warn_only=True)"):
            wrong = f"torch.use_deterministic_algorithms{new}"
            yield Mutant(wrong, changed(files, ENTRY, put(text, statement, wrong)), "TRL204", ENTRY, statement.lineno)
        for wrong in ("torch.set_deterministic(True)", "torch.set_deterministic_debug_mode(0)"):
            yield Mutant(wrong, changed(files, ENTRY, put(text, statement, wrong)), "TRL204", ENTRY, statement.lineno)


def workspace(files: Files) -> Iterator[Mutant]:
    """TRL205: cuBLAS without its workspace, with another, or too late."""
    text = files[ENTRY]
    line = 'os.environ["CUBLAS_WORKSPACE_CONFIG"] = ":4096:8"\n'
    if line in text:
        row = row_of(text, "torch.use_deterministic_algorithms")
        yield Mutant("no workspace", changed(files, ENTRY, text.replace(line, "\n")), "TRL205", ENTRY, row)
        other = changed(files, ENTRY, text.replace(":4096:8", ":1024:2"))
        yield Mutant("another workspace", other, "TRL205", ENTRY, row_of(text, "CUBLAS"))
        end = row_of(text, 'print("loss"')
        late = with_row(text.replace(line, "\n"), end, line.strip())
        yield Mutant("the workspace too late", changed(files, ENTRY, late), "TRL205", ENTRY, row_of(late, "CUBLAS"))


def autotune(files: Files) -> Iterator[Mutant]:
    """TRL206: kernels that are picked by their time, up to torch 2.9."""
    text = files[ENTRY]
    row = row_of(text, ".to(device)  #")
    if row:
        new = 'model = torch.compile(model, mode="max-autotune")'
        yield Mutant(new, changed(files, ENTRY, with_row(text, row + 1, new)), "TRL206", ENTRY, row + 1)
