"""The dataset of a survey: Parquet tables in parts, each committed as a whole by a manifest that is replaced atomically.

``survey.json`` names the version of the schema and the parts that count. A part is one file in the folder of each table, and holds
the rows of whole repositories; a file that the manifest does not name was left by a survey that was killed. When a survey is
complete its parts become one, with the rows in order: the same content gives the same bytes, whoever did the work.
"""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from torchrepro_lint import __version__
from torchrepro_lint.engine.writing import write_atomically
from torchrepro_lint.interfaces.survey.task import Result
from torchrepro_lint.source.errors import UsageError

# The version of the schema: raised when a column changes its meaning or is removed, not for a new one.
SCHEMA = 1
MANIFEST = "survey.json"
_TEXT, _COUNT, _TEXTS = pa.string(), pa.int64(), pa.list_(pa.string())


def _structs(**fields: pa.DataType) -> pa.DataType:
    return pa.list_(pa.struct(list(fields.items())))


# The columns of each table; ``repository`` and ``digest`` say in each which content of which repository a row is about.
TABLES: Mapping[str, pa.Schema] = {
    name: pa.schema([("repository", _TEXT), ("digest", _TEXT), *columns.items()])
    for name, columns in {
        "runs": {
            "name": _TEXT, "kind": _TEXT, "revision": _TEXT, "status": _TEXT, "reason": _TEXT, "detail": _TEXT,
            "files": _COUNT, "bytes": _COUNT, "torch": _TEXT, "torch_decided_by": _TEXT, "frameworks": _TEXTS,
            "packages": _structs(name=_TEXT, files=_COUNT), "entry_points": _COUNT, "reproducible": _COUNT,
            "findings": _COUNT, "errors": _TEXTS, "wall_seconds": pa.float64(), "cpu_seconds": pa.float64(),
            "peak_bytes": _COUNT, "deadline_seconds": pa.float64(), "memory_limit": _COUNT, "version": _TEXT,
        },
        "findings": {
            "id": _TEXT, "code": _TEXT, "rule": _TEXT, "severity": _TEXT, "path": _TEXT, "row": _COUNT, "column": _COUNT,
            "cell": _COUNT, "message": _TEXT, "control": _TEXT, "entry_points": _TEXTS, "line": _TEXT, "fix": _TEXT,
        },
        "entry_points": {
            "id": _TEXT, "path": _TEXT, "function": _TEXT, "torch": _TEXT, "device": _TEXT, "matters": pa.bool_(),
            "uses_torch": pa.bool_(), "verdict": _TEXT, "unfollowed": _COUNT,
            "controls": _structs(control=_TEXT, state=_TEXT, says=_TEXT, because=_TEXT),
        },
        "gaps": {"kind": _TEXT, "what": _TEXT, "why": _TEXT},
        "operations": {
            "operation": _TEXT, "torch": _TEXT, "status": _TEXT, "calls": _COUNT,
            "releases": _structs(torch=_TEXT, status=_TEXT), "places": _TEXTS,
        },
    }.items()
}  # fmt: skip
# A part is written when it has the rows of so many repositories, or so many rows, or after so many seconds.
_MOST_REPOSITORIES = 256
_MOST_ROWS = 50_000
_MOST_SECONDS = 15.0
# The rows of a row group of the complete dataset.
_ROW_GROUP = 65_536


class KnownRun(NamedTuple):
    """What a survey knows of a repository already: the digest of its content, and the limits under which it failed, if it did."""

    digest: str
    failed: bool
    seconds: float
    memory: int


class Dataset:
    """A dataset that is written. Rows wait until there are enough for a part, or until ``flush``."""

    def __init__(self, folder: Path, options: Mapping[str, Any], resume: bool) -> None:
        """Open the dataset in a folder, or make it. Raises ``UsageError`` where there is one that is not to be gone on with."""
        self._folder, self._options = folder, dict(options)
        self._waiting: list[Result] = []
        self._rows = 0
        self._written = time.monotonic()
        self._parts: list[str] = []
        self.made_anew = False
        if (folder / MANIFEST).exists():
            self._take_over(resume)
        elif folder.is_dir() and any(folder.iterdir()):
            raise UsageError(f"{folder}: has files, but no survey; name an empty or a new folder")
        try:
            for table in TABLES:
                (folder / table).mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise UsageError(f"{folder}: cannot be written: {error.strerror}") from None
        self._commit(self._parts, complete=False)

    def _take_over(self, resume: bool) -> None:
        manifest = read_manifest(self._folder)
        if not resume and manifest["parts"]:
            raise UsageError(f"{self._folder}: has a survey; add --resume to go on with it, or name another folder")
        # Another version of the tool, or other options, would have found something else.
        self.made_anew = (manifest["version"], manifest["options"]) != (__version__, self._options)
        self._parts = [] if self.made_anew else list(manifest["parts"])

    def known(self) -> dict[str, KnownRun]:
        """The repositories that the dataset has, by their identity."""
        columns = ["repository", "digest", "status", "deadline_seconds", "memory_limit"]
        found: dict[str, KnownRun] = {}
        for part in self._parts:
            for row in pq.read_table(self._file("runs", part), columns=columns).to_pylist():
                limits = row["deadline_seconds"], row["memory_limit"]
                found[row["repository"]] = KnownRun(row["digest"], row["status"] == "failed", *limits)
        return found

    def add(self, result: Result) -> None:
        """Add the rows of a repository; what the dataset had of it before no longer counts."""
        self._waiting.append(result)
        self._rows += sum(map(len, result.rows.values()))
        late = time.monotonic() - self._written >= _MOST_SECONDS
        if late or len(self._waiting) >= _MOST_REPOSITORIES or self._rows >= _MOST_ROWS:
            self.flush()

    def flush(self) -> None:
        """Commit the rows that wait."""
        if not self._waiting:
            return
        part = self._fresh()
        for table, schema in TABLES.items():
            rows = [row for result in self._waiting for row in _rows_of(result, table)]
            self._write(table, part, schema, [pa.Table.from_pylist(rows, schema)])
        self._commit([*self._parts, part], complete=False)
        self._waiting, self._rows, self._written = [], 0, time.monotonic()

    def complete(self) -> None:
        """Make one part of all, with the rows sorted by repository, and without those that no longer count."""
        import duckdb

        self.flush()
        part = self._fresh()
        with duckdb.connect() as connection:
            connection.execute("SET threads = 1")
            connection.execute("SET autoinstall_known_extensions = false")
            for table, schema in TABLES.items():
                found = connection.sql(_current(self._folder, table, self._parts, ordered=True))
                # Called so before DuckDB 2.
                batches = found.to_arrow_reader if hasattr(found, "to_arrow_reader") else found.fetch_arrow_reader
                reader = batches(_ROW_GROUP)
                self._write(table, part, schema, (pa.Table.from_batches([batch]).cast(schema) for batch in reader))
        self._commit([part], complete=True)
        self._remove_others()

    def _fresh(self) -> str:
        """The name of a new part."""
        return f"part-{1 + max((int(part.rpartition('-')[2]) for part in self._parts), default=0):06d}"

    def _file(self, table: str, part: str) -> Path:
        return self._folder / table / f"{part}.parquet"

    def _write(self, table: str, part: str, schema: pa.Schema, groups: Iterable[pa.Table]) -> None:
        """Write a file of a part, in row groups; it counts once the manifest names it."""
        place = self._file(table, part)
        scratch = place.with_suffix(".writing")
        told = schema.with_metadata({"torchrepro_lint.schema": str(SCHEMA), "torchrepro_lint.version": __version__})
        try:
            with pq.ParquetWriter(scratch, told, compression="zstd") as writer:
                for group in groups:
                    writer.write_table(group.cast(told), row_group_size=_ROW_GROUP)
            os.replace(scratch, place)
        except OSError as error:
            raise UsageError(f"{place}: cannot be written: {error.strerror or error}") from None

    def _commit(self, parts: list[str], complete: bool) -> None:
        """Make these parts the ones that count."""
        told = {
            "schema": SCHEMA,
            "version": __version__,
            "options": self._options,
            "complete": complete,
            "parts": parts,
        }
        try:
            write_atomically((json.dumps(told, indent=2, sort_keys=True) + "\n").encode(), self._folder / MANIFEST)
        except OSError as error:
            raise UsageError(f"{self._folder}: cannot be written: {error.strerror}") from None
        self._parts = parts

    def _remove_others(self) -> None:
        """Remove the files that do not count."""
        for table in TABLES:
            for file in (self._folder / table).iterdir():
                if file.stem not in self._parts or file.suffix != ".parquet":
                    file.unlink()


def read_manifest(folder: Path) -> dict[str, Any]:
    """The manifest of a dataset. Raises ``UsageError`` where there is none that this version reads."""
    try:
        manifest = json.loads((folder / MANIFEST).read_bytes())
        schema, parts = manifest["schema"], manifest["parts"]
        if not all(isinstance(part, str) and part.removeprefix("part-").isdecimal() for part in parts):
            raise ValueError("no part of ours")
    except OSError:
        raise UsageError(f"{folder}: no survey is here; torchrepro-lint survey REPOS -o {folder} makes one") from None
    except (ValueError, KeyError, TypeError):
        raise UsageError(f"{folder / MANIFEST}: is not the manifest of a survey") from None
    if schema != SCHEMA:
        raise UsageError(f"{folder}: a survey of schema {schema}, and this version reads schema {SCHEMA}: make it anew")
    return dict(manifest)


def table_queries(folder: Path) -> dict[str, str]:
    """A query in SQL for each table of a dataset, which gives the rows that count. Raises ``UsageError``."""
    parts = read_manifest(folder)["parts"]
    return {table: _current(folder, table, parts) for table in TABLES}


def _current(folder: Path, table: str, parts: list[str], ordered: bool = False) -> str:
    """The rows of a table whose repository has no newer part; ``ordered`` by repository, each repository's as they were written."""
    if not parts:
        empty = ", ".join(f'NULL::{_sql_type(field.type)} AS "{field.name}"' for field in TABLES[table])
        return f"SELECT {empty} WHERE false"
    chosen = ", ".join(f'"{name}"' for name in TABLES[table].names)
    if len(parts) == 1 and not ordered:
        return f"SELECT {chosen} FROM {_scan(folder, table, parts)}"
    rows = f"SELECT {chosen}, {_PART} AS part, file_row_number AS place FROM {_scan(folder, table, parts)}"
    latest = f"SELECT repository, max({_PART}) AS part FROM {_scan(folder, 'runs', parts)} GROUP BY repository"
    order = " ORDER BY repository, place" if ordered else ""
    return f"SELECT {chosen} FROM ({rows}) JOIN ({latest}) USING (repository, part){order}"


# The part of a row, from the name of its file.
_PART = "parse_filename(filename, true)"


def _scan(folder: Path, table: str, parts: list[str]) -> str:
    names = ", ".join("'" + str(folder / table / f"{part}.parquet").replace("'", "''") + "'" for part in parts)
    return f"read_parquet([{names}], filename = true, file_row_number = true)"


def _sql_type(kind: pa.DataType) -> str:
    """The name of a type in SQL."""
    if pa.types.is_list(kind):
        return f"{_sql_type(kind.value_type)}[]"
    if pa.types.is_struct(kind):
        return f"STRUCT({', '.join(f'{chr(34)}{field.name}{chr(34)} {_sql_type(field.type)}' for field in kind)})"
    return {"string": "VARCHAR", "int64": "BIGINT", "double": "DOUBLE", "bool": "BOOLEAN"}[str(kind)]


def _rows_of(result: Result, table: str) -> Iterator[dict[str, Any]]:
    """The rows of a table, with the columns that name the repository."""
    named = {"repository": result.run["repository"], "digest": result.run["digest"]}
    if table == "runs":
        yield result.run
    else:
        yield from ({**named, **row} for row in result.rows.get(table, ()))
