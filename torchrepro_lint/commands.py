"""The commands beside ``check`` and ``report``: ``explain``, ``ops``, ``clean``, ``trace`` and ``server``. As in ``cli``, only click is imported here."""

from __future__ import annotations

from pathlib import Path

import click

_CONTEXT = {"help_option_names": ["-h", "--help"], "max_content_width": 120}


@click.command(context_settings=_CONTEXT)
@click.argument("message", required=False)
@click.argument("paths", nargs=-1, type=click.Path(readable=False))
@click.option("--torch-version", metavar="X.Y", help='The torch that the code runs with, or "minimum".')
@click.option("--output-format", type=click.Choice(("text", "json")), default="text")
def explain(message: str | None, paths: tuple[str, ...], torch_version: str | None, output_format: str) -> int:
    """Say what torch's error or warning about determinism means, where in PATHS (the current directory by default) it
    may come from, and what to write instead.

    MESSAGE is the error's text in quotes, a whole traceback, or the bare name; - or nothing reads standard input.
    """
    from torchrepro_lint.explaining import run_explain
    from torchrepro_lint.source.errors import UsageError

    try:
        return run_explain(message, paths, torch_version, output_format)
    except UsageError as error:
        raise click.ClickException(str(error)) from None


@click.command(context_settings=_CONTEXT)
@click.argument("name", required=False)
@click.option("--torch-version", metavar="X.Y", help='The torch to look at, or "minimum".')
@click.option("--output-format", type=click.Choice(("table", "json", "markdown", "html")), default="table")
@click.option("-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Write to a file.")
def ops(name: str | None, torch_version: str | None, output_format: str, output: Path | None) -> int:
    """Show how operations behave under torch.use_deterministic_algorithms(True) in the target torch.

    With NAME (F.interpolate, nn.Upsample, index_select, ...) one operation over all releases. HTML is one page of all
    operations and releases.
    """
    from torchrepro_lint.ops import run_ops
    from torchrepro_lint.source.errors import UsageError

    try:
        return run_ops(name, torch_version, output_format, output)
    except UsageError as error:
        raise click.ClickException(str(error)) from None


@click.command(context_settings=_CONTEXT)
@click.option("--cache-dir", metavar="PATH", help="The directory to clean, instead of the user's cache.")
def clean(cache_dir: str | None) -> int:
    """Remove what was kept of earlier runs, of all projects."""
    from torchrepro_lint.engine.store.cache import clean, directory
    from torchrepro_lint.terminal import note

    removed = clean(cache_dir)
    note(f"Removed the caches of {removed} project{'s' * (removed != 1)} below {directory(cache_dir)}")
    return 0


@click.command(context_settings=_CONTEXT)
@click.argument("entry", type=click.Path(readable=False))
@click.option("--torch-version", metavar="X.Y", help='The torch that the code runs with, or "minimum".')
@click.option("--device", type=click.Choice(("auto", "cuda", "mps", "cpu")), help="The device it will run on.")
@click.option("--parser", type=click.Choice(("auto", "libcst")), help="What reads the code; libcst is the reference.")
@click.option("--output-format", type=click.Choice(("text", "json")), default="text")
def trace(entry: str, torch_version: str | None, device: str | None, parser: str | None, output_format: str) -> int:
    """Show what a run of ENTRY does to generators, flags, environment variables and the device, in order, with the calls
    that lead there, and what is missing.

    ENTRY is a script, a notebook, or a file with commands of click and the like. It is read, never run.
    """
    from torchrepro_lint.arguments import Over
    from torchrepro_lint.source.errors import UsageError
    from torchrepro_lint.tracing import run_trace

    try:
        return run_trace(entry, Over(torch_version=torch_version, device=device, parser=parser), output_format)
    except UsageError as error:
        raise click.ClickException(str(error)) from None


@click.command(context_settings=_CONTEXT)
# Some editors add these.
@click.option("--stdio", is_flag=True, hidden=True, expose_value=False)
@click.option("--clientProcessId", type=int, hidden=True, expose_value=False)
def server() -> int:
    """Serve an editor as a language server, over standard input and output; needs the extra lsp."""
    try:
        from torchrepro_lint.server.service import serve
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in ("pygls", "lsprotocol"):
            raise
        raise click.ClickException("server needs pygls; install torchrepro-lint[lsp]") from None
    return serve()
