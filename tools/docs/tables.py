"""Parts of pages that are written from the program: between ``<!-- written by tools.docs: NAME -->`` and ``<!-- end -->``.

``rules`` is the table of all rules, ``commands`` that of all commands and ``options`` their options, ``action`` the inputs of the
GitHub action, and ``statuses`` what operations may do.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import click

_PART = re.compile(
    r"(?P<head>^<!-- written by tools\.docs: (?P<name>\w+) -->\n)(?P<text>.*?)(?P<tail>^<!-- end -->$)",
    re.MULTILINE | re.DOTALL,
)
FAMILIES = {
    "TRL0": (
        "The tool itself",
        "What the tool says about its own work: files that it cannot read, and comments that hide no finding.",
    ),
    "TRL1": (
        "Seeds",
        "Random numbers that are drawn without a seed, before it, or with a seed that changes between runs.",
    ),
    "TRL2": ("Switches", "Settings of cuDNN, cuBLAS and torch that choose between fast and repeatable kernels."),
    "TRL3": ("Data loading", "Loaders, samplers and splits whose order or workers follow no seed of their own."),
    "TRL4": ("Operations", "Operations without a deterministic kernel in the release of torch that you use."),
    "TRL5": ("Order and environment", "Results that depend on the order of a set, a directory or threads."),
}


def written(page: str) -> str:
    """The page with these parts written anew; raises ``KeyError`` for a part that nothing writes."""
    return _PART.sub(lambda match: f"{match['head']}\n{_text(match['name'])}\n{match['tail']}", page)


def _text(name: str) -> str:
    writers = {
        "rules": _rules,
        "commands": _commands,
        "options": _options,
        "action": _action,
        "statuses": _statuses,
    }
    return writers[name]()


def _rules() -> str:
    """A heading and a table for each family."""
    from torchrepro_lint.checks import RULES
    from torchrepro_lint.checks.pages import pages

    of = {page.code: page for page in pages()}
    parts = []
    for family, (title, text) in FAMILIES.items():
        rows = [
            f"| [{rule.code}](../rules/{rule.code}-{rule.name}.md) | {rule.name} | {rule.severity} "
            f"| {'on' if rule.default else 'off'} | {_fix(of[rule.code].text)} | {of[rule.code].summary} |"
            for rule in RULES
            if rule.code.startswith(family)
        ]
        table = "\n".join(["| code | name | severity | default | fix | reports |", "|---|---|---|---|---|---|", *rows])
        parts.append(f"## {title}\n\n{text}\n\n{table}\n")
    return "\n".join(parts)


def _fix(page: str) -> str:
    """How safe the fix of a rule is, by the section of its page."""
    section = page.partition("\n## Fix\n")[2].partition("\n## ")[0]
    if section.strip().startswith("None"):
        return "no"
    kinds = [kind for kind in ("safe", "unsafe") if re.search(rf"\b{kind}\b", section, re.IGNORECASE)]
    return " or ".join(kinds) or "yes"


def _commands() -> str:
    """What each command is for."""
    from torchrepro_lint.interfaces.cli.app import EVERY_COMMAND

    rows = [
        f"| [`{_program(name)}`](#{name.replace(' ', '-')}) | {_purpose(each)} |"
        for name, each in EVERY_COMMAND.items()
    ]
    return "\n".join(["| command | what it does |", "|---|---|", *rows, ""])


def _program(name: str) -> str:
    return "torchrepro-lint" if name == "check" else f"torchrepro-lint {name}"


def _purpose(command: click.Command) -> str:
    """The first paragraph of a command's help."""
    return " ".join((command.help or "").partition("\n\n")[0].split())


def _options() -> str:
    """A section for each command: its usage, its help and its options."""
    from torchrepro_lint.interfaces.cli.app import EVERY_COMMAND

    return "\n".join(_section(name, command) for name, command in EVERY_COMMAND.items())


def _section(name: str, command: click.Command) -> str:
    import click

    with click.Context(command, info_name=_program(name), **command.context_settings) as context:
        usage = " ".join([_program(name), *command.collect_usage_pieces(context)])
        groups = _groups(command, context)
    head = [f"## {name}", "", f"`{usage}`", "", f"{_purpose(command)}", ""]
    return "\n".join([*head, *(_group(title if len(groups) > 1 else "", rows) for title, rows in groups.items())])


def _group(title: str, rows: list[str]) -> str:
    head = [f"**{title}**", ""] if title else []
    return "\n".join([*head, "| option | what it does |", "|---|---|", *rows, ""])


def _groups(command: click.Command, context: click.Context) -> dict[str, list[str]]:
    """The rows of a command's options, below the headings of its help."""
    found: dict[str, list[str]] = {}
    for parameter in command.get_params(context):
        names, text = parameter.get_help_record(context) or ("", "")
        if parameter.param_type_name == "option" and names:
            row = f"| `{_cell(names)}` | {_cell(text)} |"
            found.setdefault(getattr(parameter, "group", "") or "Miscellaneous", []).append(row)
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _action() -> str:
    """The inputs of the GitHub action."""
    import yaml  # type: ignore[import-untyped, unused-ignore]

    action = yaml.safe_load((Path(__file__).parents[2] / "action.yml").read_text(encoding="utf-8"))
    rows = [
        f"| `{name}` | {_default(each.get('default', ''))} | {each['description']} |"
        for name, each in action["inputs"].items()
    ]
    return "\n".join(["| input | default | what it is |", "|---|---|---|", *rows, ""])


def _default(value: str) -> str:
    return f"`{value}`" if value else ""


def _statuses() -> str:
    """What an operation may do in deterministic mode."""
    from torchrepro_lint.catalogue.release_history import STATUSES

    rows = [f"| {each.mark} | {each.label} | {each.meaning} |" for each in STATUSES.values()]
    return "\n".join(["| sign | word | what the operation does |", "|---|---|---|", *rows, ""])
