"""Queries over the dataset of a survey, by DuckDB: the tables that ``survey show``, ``survey report`` and ``survey compare`` print.

Each answer is in an order that depends on the data alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple

import duckdb

from torchrepro_lint.interfaces.overview.controls import CONTROLS, STATES
from torchrepro_lint.interfaces.survey.dataset import table_queries
from torchrepro_lint.source.errors import UsageError

Value = Any


class Table(NamedTuple):
    """A table of values, for a person; ``shares`` are the columns that are parts of one."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[Value, ...], ...]
    shares: frozenset[str] = frozenset()


class Summary(NamedTuple):
    """What a page on a survey says: single figures by name, tables by name, and what made the survey."""

    figures: Mapping[str, Value]
    tables: Mapping[str, Table]
    versions: tuple[str, ...]


# Entry points whose run uses torch, and saves or measures something: the others have nothing to reproduce.
_MATTERING = "FROM entry_points WHERE matters AND uses_torch"
_REPRODUCIBLE = "count(*) FILTER (verdict = 'reproducible')"
_FIGURES = f"""SELECT
  (SELECT count(*) FROM runs) AS repositories,
  (SELECT count(*) FROM runs WHERE status = 'failed') AS failed,
  (SELECT count(*) FROM runs WHERE status = 'partial') AS partial,
  (SELECT coalesce(sum(files), 0)::BIGINT FROM runs) AS files,
  (SELECT count(*) {_MATTERING}) AS entry_points,
  (SELECT count(*) {_MATTERING} AND verdict = 'reproducible') AS reproducible,
  (SELECT count(*) FROM findings) AS findings,
  (SELECT coalesce(sum(cpu_seconds), 0) FROM runs) AS cpu_seconds,
  (SELECT coalesce(max(peak_bytes), 0)::BIGINT FROM runs) AS peak_bytes"""
_VERDICTS = f"""SELECT verdict, count(*) AS "entry points", count(*) / sum(count(*)) OVER () AS share {_MATTERING}
GROUP BY verdict ORDER BY list_position(['reproducible', 'unknown', 'depends', 'to fix'], verdict)"""
_RULES = """SELECT code, any_value(rule) AS rule, count(*) AS findings, count(DISTINCT repository) AS repositories,
  count(DISTINCT repository) / (SELECT count(*) FROM runs WHERE status <> 'failed') AS share
FROM findings GROUP BY code ORDER BY repositories DESC, findings DESC, code"""
_TORCH = f"""SELECT torch, count(DISTINCT repository) AS repositories, count(*) AS "entry points",
  {_REPRODUCIBLE} AS reproducible, {_REPRODUCIBLE} / count(*) AS share {_MATTERING}
GROUP BY torch ORDER BY try_cast(string_split(torch, '.') AS INTEGER[]), torch"""
_FRAMEWORK = f"""SELECT framework, count(DISTINCT repository) AS repositories, count(*) AS "entry points",
  {_REPRODUCIBLE} AS reproducible, {_REPRODUCIBLE} / count(*) AS share
FROM entry_points JOIN (
  SELECT repository, unnest(if(len(frameworks) = 0, ['none of these'], frameworks)) AS framework FROM runs
) USING (repository) WHERE matters AND uses_torch GROUP BY framework ORDER BY "entry points" DESC, framework"""
_FAILURES = """SELECT status, reason, count(*) AS repositories, min(repository) AS example, arg_min(detail, repository) AS detail
FROM runs WHERE reason <> '' GROUP BY status, reason ORDER BY repositories DESC, status, reason"""
_BY_STATE = ", ".join(f"count(*) FILTER (state = '{state.key}') AS \"{state.word}\"" for state in STATES.values())
_TITLES = ", ".join(f"('{each.key}', '{each.title}', {number})" for number, each in enumerate(CONTROLS))
_CONTROLS = f"""SELECT title AS control, {_BY_STATE} FROM (SELECT unnest(controls, recursive := true) {_MATTERING})
JOIN (VALUES {_TITLES}) AS titles(control, title, place) USING (control) GROUP BY title, place ORDER BY place"""
_RANKED = """SELECT repository, name, torch, entry_points AS "entry points", reproducible, reproducible / entry_points AS share,
  findings FROM runs WHERE entry_points > 0"""
_WORST = f'{_RANKED} ORDER BY share, "entry points" DESC, findings DESC, repository'
_BEST = f'{_RANKED} AND reproducible > 0 ORDER BY share DESC, "entry points" DESC, findings, repository'
_PACKAGES = """SELECT name AS package, count(*) AS repositories, sum(files)::BIGINT AS files
FROM (SELECT unnest(packages, recursive := true) FROM (SELECT packages FROM runs)) GROUP BY name
ORDER BY repositories DESC, files DESC, package"""
_OPERATIONS = """SELECT operation, status, count(DISTINCT repository) AS repositories, sum(calls)::BIGINT AS calls
FROM operations WHERE status NOT IN ('', 'none') GROUP BY operation, status
ORDER BY repositories DESC, calls DESC, operation, status"""
_GAPS = """SELECT kind, count(*) AS gaps, count(DISTINCT repository) AS repositories FROM gaps WHERE kind NOT IN ('rule', 'package')
GROUP BY kind ORDER BY gaps DESC, kind"""


def _histogram(value: str, edges: tuple[float, ...], where: str, unit: float = 1.0) -> str:
    """The number of runs in each class of a value: class ``i`` is from ``edges[i]`` to the next edge, without that."""
    rows = ", ".join(f"({number}, {low * unit}, {high * unit})" for number, (low, high) in enumerate(_classes(edges)))
    return (
        f"SELECT low / {unit} AS low, count(runs.repository) AS repositories FROM (VALUES {rows}) AS classes(number, low, high) "
        f"LEFT JOIN (SELECT repository, {value} AS value FROM runs WHERE {where}) AS runs ON value >= low AND value < high "
        "GROUP BY number, low ORDER BY number"
    )


def _classes(edges: tuple[float, ...]) -> list[tuple[float, float]]:
    return list(zip(edges, (*edges[1:], 1e18), strict=True))


_DISTRIBUTIONS = {
    "findings per repository": _histogram("findings", (0, 1, 2, 5, 10, 20, 50, 100, 200), "status <> 'failed'"),
    "share of reproducible entry points per repository": _histogram(
        "reproducible / entry_points", (0, 0.0001, 0.25, 0.5, 0.75, 1), "entry_points > 0"
    ),
    "seconds of processor time per repository": _histogram("cpu_seconds", (0, 0.5, 1, 2, 5, 10, 30, 60, 120), "true"),
    "megabytes of memory per repository": _histogram("peak_bytes", (0, 64, 128, 256, 512, 1024, 2048), "true", 1 << 20),
}


class SurveyTables:
    """The tables of a dataset, open for queries. Raises ``UsageError`` where a folder has none."""

    def __init__(self, folder: Path) -> None:
        queries = table_queries(folder)
        self._connection = connected()
        for table, query in queries.items():
            self._connection.execute(f"CREATE VIEW {table} AS {query}")

    def __enter__(self) -> SurveyTables:  # noqa: PYI034  `Self` is newer than Python 3.10
        return self

    def __exit__(
        self, _kind: type[BaseException] | None, _error: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self._connection.close()

    def asked(self, query: str) -> Table:
        """The answer to a query of the user. Raises ``UsageError`` for one that DuckDB does not accept."""
        try:
            return self._table("", query)
        except duckdb.Error as error:
            raise UsageError(f"--sql: {str(error).strip().splitlines()[0]}") from None

    def shown(self, limit: int) -> tuple[Table, ...]:
        """The tables for a terminal, none longer than ``limit``."""
        figures = self._table("", _FIGURES)
        summary = Table("Survey", ("what", "number"), tuple(zip(figures.columns, figures.rows[0], strict=True))[:7])
        return (
            summary._replace(rows=tuple((name.replace("_", " "), value) for name, value in summary.rows)),
            self._table("Entry points by verdict", _VERDICTS),
            self._table("Most frequent rules", _RULES, limit),
            self._table("Reproducible entry points by target torch", _TORCH, limit),
            self._table("Reproducible entry points by framework", _FRAMEWORK, limit),
            self._table("What failed, or in part", _FAILURES, limit),
        )

    def summary(self, most: int = 20) -> Summary:
        """What a page says; tables of repositories have at most ``most`` rows."""
        figures = self._table("", _FIGURES)
        tables = {
            "verdicts": self._table("Entry points by verdict", _VERDICTS),
            "controls": self._table("States of the controls", _CONTROLS),
            "rules": self._table("Most frequent rules", _RULES),
            "torch": self._table("By target torch", _TORCH),
            "framework": self._table("By framework", _FRAMEWORK),
            "operations": self._table("Operations that vary or raise", _OPERATIONS, most),
            "packages": self._table("Packages that are imported most", _PACKAGES, most),
            "worst": self._table("Worst repositories", _WORST, most),
            "best": self._table("Best repositories", _BEST, most),
            "failures": self._table("What failed, or in part", _FAILURES),
            "gaps": self._table("What was not analysed", _GAPS),
            **{title: self._table(title, query) for title, query in _DISTRIBUTIONS.items()},
        }
        versions = self._table("", "SELECT DISTINCT version FROM runs ORDER BY version")
        return Summary(
            dict(zip(figures.columns, figures.rows[0], strict=True)), tables, tuple(row[0] for row in versions.rows)
        )

    def _table(self, title: str, query: str, limit: int | None = None) -> Table:
        return answered(self._connection, title, query, limit)


def connected() -> duckdb.DuckDBPyConnection:
    """A connection to a database in memory, which fetches nothing from the network."""
    connection = duckdb.connect()
    connection.execute("SET autoinstall_known_extensions = false; SET autoload_known_extensions = false")
    return connection


def answered(connection: duckdb.DuckDBPyConnection, title: str, query: str, limit: int | None = None) -> Table:
    """The answer to a query as a table, cut after ``limit`` rows."""
    cursor = connection.execute(query)
    columns = tuple(column[0] for column in cursor.description or ())
    rows = cursor.fetchall() if limit is None else cursor.fetchmany(limit)
    return Table(title, columns, tuple(rows), frozenset({"share"}))


# The repositories of two surveys that are the same: by path, else by a name that each has once.
_PAIRS = """CREATE TABLE pairs AS
WITH by_path AS (SELECT o.repository AS old, n.repository AS new FROM old_runs o JOIN new_runs n USING (repository)),
  left_old AS (SELECT name, any_value(repository) AS old FROM old_runs WHERE repository NOT IN (SELECT old FROM by_path)
    GROUP BY name HAVING count(*) = 1),
  left_new AS (SELECT name, any_value(repository) AS new FROM new_runs WHERE repository NOT IN (SELECT new FROM by_path)
    GROUP BY name HAVING count(*) = 1)
SELECT old, new FROM by_path UNION ALL SELECT old, new FROM left_old JOIN left_new USING (name)"""
_RANK = "CASE state " + " ".join(f"WHEN '{each.key}' THEN {each.rank}" for each in STATES.values()) + " END"
_CELLS = """CREATE TABLE {side}_cells AS SELECT repository, path, function, control, {rank} AS rank
FROM (SELECT repository, path, function, unnest(controls, recursive := true) FROM {side}_entry_points WHERE matters AND uses_torch)"""
_CHANGED_CELLS = """CREATE TABLE changed AS SELECT pairs.new AS repository, n.control, sign(n.rank - o.rank)::INTEGER AS change
FROM pairs JOIN old_cells o ON o.repository = pairs.old
JOIN new_cells n ON n.repository = pairs.new AND n.path = o.path AND n.function = o.function AND n.control = o.control
WHERE n.rank <> o.rank"""
# Findings by rule, file and line, as a multiset.
_CHANGED_FINDINGS = """CREATE TABLE moved AS SELECT repository, code, rule, sum(count)::BIGINT AS change FROM (
  SELECT pairs.new AS repository, code, rule, path, line, count(*) AS count
  FROM pairs JOIN new_findings f ON f.repository = pairs.new GROUP BY ALL
  UNION ALL
  SELECT pairs.new AS repository, code, rule, path, line, -count(*) AS count
  FROM pairs JOIN old_findings f ON f.repository = pairs.old GROUP BY ALL
) GROUP BY repository, code, rule, path, line HAVING change <> 0"""
_OVERALL = """SELECT 'repositories in both' AS what, (SELECT count(*) FROM pairs) AS old, (SELECT count(*) FROM pairs) AS new
UNION ALL SELECT 'repositories in only one', (SELECT count(*) FROM old_runs WHERE repository NOT IN (SELECT old FROM pairs)),
  (SELECT count(*) FROM new_runs WHERE repository NOT IN (SELECT new FROM pairs))
UNION ALL SELECT 'failed', (SELECT count(*) FROM old_runs WHERE status = 'failed'), (SELECT count(*) FROM new_runs WHERE status = 'failed')
UNION ALL SELECT 'entry points', (SELECT sum(entry_points) FROM old_runs JOIN pairs ON old = repository),
  (SELECT sum(entry_points) FROM new_runs JOIN pairs ON new = repository)
UNION ALL SELECT 'reproducible entry points', (SELECT sum(reproducible) FROM old_runs JOIN pairs ON old = repository),
  (SELECT sum(reproducible) FROM new_runs JOIN pairs ON new = repository)
UNION ALL SELECT 'findings', (SELECT sum(findings) FROM old_runs JOIN pairs ON old = repository),
  (SELECT sum(findings) FROM new_runs JOIN pairs ON new = repository)"""
_BY_REPOSITORY = """WITH cells AS (SELECT repository, count(*) FILTER (change > 0) AS better, count(*) FILTER (change < 0) AS worse
    FROM changed GROUP BY repository),
  findings AS (SELECT repository, coalesce(sum(change) FILTER (change > 0), 0)::BIGINT AS fresh,
    -coalesce(sum(change) FILTER (change < 0), 0)::BIGINT AS gone FROM moved GROUP BY repository),
  both_runs AS (SELECT n.repository, o.reproducible AS before, n.reproducible AS after, o.status AS was, n.status AS is_now
    FROM pairs JOIN old_runs o ON o.repository = old JOIN new_runs n ON n.repository = new)
SELECT repository, coalesce(better, 0) AS "controls better", coalesce(worse, 0) AS "controls worse",
  before AS "reproducible before", after AS "reproducible now", coalesce(fresh, 0) AS "new findings", coalesce(gone, 0) AS "findings gone",
  if(was = is_now, is_now, was || ' → ' || is_now) AS status
FROM both_runs LEFT JOIN cells USING (repository) LEFT JOIN findings USING (repository) WHERE {condition}
ORDER BY {order}, repository"""
# Controls decide first, since a finding that is gone may be one that a failure hides.
_SCORE = ("coalesce(better, 0) - coalesce(worse, 0)", "coalesce(gone, 0) - coalesce(fresh, 0)")
_BY_CONTROL = """SELECT control, count(*) FILTER (change > 0) AS better, count(*) FILTER (change < 0) AS worse
FROM changed GROUP BY control ORDER BY worse DESC, better DESC, control"""
_BY_RULE = """SELECT code, rule, coalesce(sum(change) FILTER (change > 0), 0)::BIGINT AS "new findings",
  -coalesce(sum(change) FILTER (change < 0), 0)::BIGINT AS "findings gone"
FROM moved GROUP BY code, rule ORDER BY "new findings" DESC, "findings gone" DESC, code"""


def compared(old: Path, new: Path, limit: int) -> tuple[Table, ...]:
    """What changed from one survey to another, no table longer than ``limit``. Raises ``UsageError``."""
    with connected() as connection:
        for side, folder in (("old", old), ("new", new)):
            for table, query in table_queries(folder).items():
                connection.execute(f"CREATE VIEW {side}_{table} AS {query}")
            connection.execute(_CELLS.format(side=side, rank=_RANK))
        for query in (_PAIRS, _CHANGED_CELLS, _CHANGED_FINDINGS):
            connection.execute(query)
        score, descending = ", ".join(_SCORE), ", ".join(f"{part} DESC" for part in _SCORE)
        asked = (
            ("Both surveys", _OVERALL, None),
            ("Worse repositories", _BY_REPOSITORY.format(condition=f"({score}) < (0, 0)", order=score), limit),
            ("Better repositories", _BY_REPOSITORY.format(condition=f"({score}) > (0, 0)", order=descending), limit),
            ("Controls of entry points that are in both", _BY_CONTROL, limit),
            ("Findings by rule", _BY_RULE, limit),
        )
        return tuple(answered(connection, title, query, most) for title, query, most in asked)
