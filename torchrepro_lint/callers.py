"""Who calls a function of the project, and what is passed for a parameter."""

from __future__ import annotations

from typing import TYPE_CHECKING

from torchrepro_lint.facts import Attribute, Call, Expression, Function, Param, Ref
from torchrepro_lint.walk import expressions, statements, within

if TYPE_CHECKING:
    from torchrepro_lint.names import Names

_Passed = tuple[str, Expression] | None


class Callers:
    """The calls of a project, found by the word that they call."""

    def __init__(self, names: Names) -> None:
        self._names = names
        self._by_word: dict[str, list[tuple[str, Call]]] = {}
        for path, facts in sorted(names.modules.files.items()):
            bodies = (facts.body, *(each.body for each in facts.functions), *(each.body for each in facts.classes))
            for body in bodies:
                for statement in statements(body):
                    for expression in expressions(statement):
                        for each in within(expression):
                            if type(each) is Call and (word := _word(each.func)):
                                self._by_word.setdefault(word, []).append((path, each))
        self._known: dict[tuple[str, str], list[_Passed]] = {}

    def passed(self, name: str, function: Function, param: Param, position: int) -> list[_Passed]:
        """What each call passes: the expression with its file, or None where the parameter is left out.

        Empty where nothing calls the function, or where a call may pass more than can be told.
        """
        key = (name, param.name)
        if key not in self._known:
            self._known[key] = []  # what leads back to itself tells nothing
            self._known[key] = self._passed(name, function, param, position)
        return self._known[key]

    def _passed(self, name: str, function: Function, param: Param, position: int) -> list[_Passed]:
        found: list[_Passed] = []
        index = position - bool(function.owner)
        for path, call in self._calls(name, function):
            keyword = next((arg for arg in call.args if arg.keyword == param.name), None)
            plain = [arg for arg in call.args if arg.keyword is None and not arg.star]
            if keyword is not None:
                found.append((path, keyword.value))
            elif any(arg.star for arg in call.args):
                return []
            elif param.kind != "kw" and index < len(plain):
                found.append((path, plain[index].value))
            else:
                found.append(None)
        return found

    def _calls(self, name: str, function: Function) -> list[tuple[str, Call]]:
        """The calls that run a function: of its own name, of its class for a constructor, of objects for ``forward``."""
        word = name.rpartition(".")[2].rpartition(":")[2]
        words = [word]
        if function.owner and word == "__init__":
            words.append(function.owner.rpartition(".")[2].rpartition(":")[2])
            words += self._names.heirs(f"{name.partition(':')[0]}{function.owner}")
        return [each for word in words for each in self._by_word.get(word, ()) if self._runs(*each, name)]

    def _runs(self, path: str, call: Call, name: str) -> bool:
        for target in self._names.names(path, call.func):
            if target == name:
                return True
            if self._names.classes(target) and name in self._names.methods(target, "__init__"):
                return True
        return False


def _word(func: Expression) -> str:
    match func:
        case Ref(roots=roots, path=path):
            return path[-1] if path else roots[0].rpartition(".")[2].lstrip(":?")
        case Attribute(name=word):
            return word
    return ""
