"""Types by annotation: what annotations say of a value, and what instances of a class are.

Quoted annotations, unions, containers and jaxtyping's shapes are read, and the classes and constants of other
libraries.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.dataflow.types.lattice import NONE, TEXT, UNKNOWN, AbstractValue, join_all, tensor
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.text import PARSER_ERRORS, parse
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Collection,
    Constant,
    Expression,
    Operation,
    Ref,
    Subscript,
    SyntaxTree,
)
from torchrepro_lint.syntax.qualified_names import class_of, in_project, is_object, last_word, path_of, split_last
from torchrepro_lint.syntax.visitor import declared_attributes

if TYPE_CHECKING:
    from torchrepro_lint.dataflow.types.context import TypeInference


_TENSOR_CLASSES = {
    "Float": ("float32", "floating"),
    "Double": ("float64", "floating"),
    "Half": ("float16", "floating"),
    "BFloat16": ("bfloat16", "floating"),
    "Long": ("int64", "integer"),
    "Int": ("int32", "integer"),
    "Short": ("int16", "integer"),
    "Char": ("int8", "integer"),
    "Byte": ("uint8", "integer"),
    "Bool": ("bool", "bool"),
}

DTYPES = {
    **dict.fromkeys(("float32", "float"), ("float32", "floating")),
    **dict.fromkeys(("float64", "double"), ("float64", "floating")),
    **dict.fromkeys(("float16", "half"), ("float16", "floating")),
    "bfloat16": ("bfloat16", "floating"),
    **dict.fromkeys(("int64", "long", "int_", "intp", "longlong"), ("int64", "integer")),
    **dict.fromkeys(("int32", "int", "intc"), ("int32", "integer")),
    **dict.fromkeys(("int16", "short"), ("int16", "integer")),
    "int8": ("int8", "integer"),
    "uint8": ("uint8", "integer"),
    **dict.fromkeys(("uint16", "uint32", "uint64"), ("", "integer")),
    **dict.fromkeys(("bool", "bool_"), ("bool", "bool")),
    **dict.fromkeys(("complex64", "cfloat", "complex128", "cdouble", "complex32"), ("", "complex")),
}

_CLASSES: dict[str, AbstractValue] = {
    **{f"builtins.{word}": AbstractValue(word) for word in ("set", "frozenset", "list", "tuple", "dict", "int", "float", "bool", "bytes")},
    "builtins.str": TEXT,
    "builtins.range": AbstractValue("iterator", contents=AbstractValue("int")),
    **{f"typing.{word}": AbstractValue("set") for word in ("Set", "MutableSet", "AbstractSet")},
    **{f"collections.abc.{word}": AbstractValue("set") for word in ("Set", "MutableSet")},
    "typing.FrozenSet": AbstractValue("frozenset"),
    "weakref.WeakSet": AbstractValue("set"),
    "typing.List": AbstractValue("list"),
    "typing.Tuple": AbstractValue("tuple"),
    "typing.Dict": AbstractValue("dict"),
    **{f"collections.{word}": AbstractValue("dict") for word in ("OrderedDict", "defaultdict", "Counter")},
    **{f"typing.{word}": AbstractValue("dict") for word in ("OrderedDict", "DefaultDict", "Counter")},
    **{f"typing.{word}": AbstractValue("iterator") for word in ("Iterator", "Iterable", "Generator")},
    **{f"collections.abc.{word}": AbstractValue("iterator") for word in ("Iterator", "Iterable", "Generator")},
    **{f"pathlib.{word}": AbstractValue("path") for word in ("Path", "PosixPath", "WindowsPath", "PurePath", "PurePosixPath")},
    **{f"numpy.{word}": AbstractValue("ndarray") for word in ("ndarray", "array")},
    "numpy.typing.NDArray": AbstractValue("ndarray"),
    "pandas.DataFrame": AbstractValue("dataframe"),
    "pandas.Series": AbstractValue("series"),
    "pandas.core.frame.DataFrame": AbstractValue("dataframe"),
    "pandas.core.series.Series": AbstractValue("series"),
    "torch.Tensor": AbstractValue("tensor"),
    "torch._tensor.Tensor": AbstractValue("tensor"),
    "torch.nn.Parameter": AbstractValue("parameter"),
    "torch.nn.parameter.Parameter": AbstractValue("parameter"),
    "torch.Generator": AbstractValue("generator", name="torch.Generator"),
    "numpy.random.Generator": AbstractValue("generator", name="numpy.random.Generator"),
    "numpy.random.RandomState": AbstractValue("generator", name="numpy.random.RandomState"),
    "random.Random": AbstractValue("generator", name="random.Random"),
    "torch.utils.data.DataLoader": AbstractValue("loader", name="torch.utils.data.DataLoader"),
    "torch.utils.data.dataloader.DataLoader": AbstractValue("loader", name="torch.utils.data.DataLoader"),
    "torch.device": AbstractValue("device"),
    "torch.dtype": AbstractValue("dtype"),
    "torch.Size": AbstractValue("tuple", contents=AbstractValue("int")),
}  # fmt: skip
_DATASETS = ("torch.utils.data.", "torchvision.datasets.", "torchaudio.datasets.", "torchtext.datasets.")
# Modules whose classes are abstract: many types fit them.
_ABSTRACT = (
    *(
        "typing",
        "typing_extensions",
        "collections.abc",
        "numbers",
        "os",
        "numpy.typing",
        "abc",
        "torch.jit.annotations",
    ),
)
_CONSTANTS = frozenset(
    f"{module}.{word}" for module in ("math", "numpy", "torch") for word in ("pi", "e", "inf", "nan")
)


def instance_of(name: str) -> AbstractValue:
    """An instance of a library class, by dotted name; unknown if it may be anything."""
    if (known := _CLASSES.get(name)) is not None:
        return known
    module, word = split_last(name)
    if module in ("torch", "torch.cuda") and word.endswith("Tensor") and word[:-6] in _TENSOR_CLASSES:
        dtype, family = _TENSOR_CLASSES[word[:-6]]
        return tensor(family, dtype=dtype, device="cuda" if module == "torch.cuda" else "cpu")
    if name.startswith(_DATASETS) and (word.endswith("Dataset") or "datasets" in module or word == "Subset"):
        return AbstractValue("dataset", name=name)
    if name.startswith("torch.nn.") and word[:1].isupper():
        return AbstractValue("module", name=name)
    plain = word[:1].isupper() and module not in _ABSTRACT and name != "builtins.object"
    return AbstractValue("instance", name=name) if plain else UNKNOWN


def library_value(name: str) -> AbstractValue:
    """The value of a library's dotted name: a class, function, dtype or constant."""
    module, word = split_last(name)
    if module in ("torch", "numpy", "np") and word in DTYPES:
        exact = (
            {"int": "int64", "float": "float64"}.get(word, DTYPES[word][0]) if module == "numpy" else DTYPES[word][0]
        )
        return AbstractValue("dtype", name=name, dtype=exact, family=DTYPES[word][1])
    if name in ("builtins.int", "builtins.float", "builtins.bool"):
        exact, family = {"int": ("int64", "integer"), "float": ("", "floating"), "bool": ("bool", "bool")}[word]
        return AbstractValue("class", name=name, dtype=exact, family=family)
    if name in _CONSTANTS:
        return AbstractValue("float")
    if not module or (word.isupper() and not module.startswith("torch")):
        return UNKNOWN  # a module, or a constant: ``logging.INFO``
    return AbstractValue("class" if word[:1].isupper() else "function", name=name)


def parse_quoted(facts: SyntaxTree, text: str) -> Expression | None:
    """The expression in a quoted annotation, its names resolved at module level; None if it is no type."""
    try:
        return _converted(facts, parse(text.strip(), "eval").body)
    except PARSER_ERRORS:
        return None


def _converted(facts: SyntaxTree, node: ast.expr) -> Expression | None:
    match node:
        case ast.Name(id=word):
            return Ref(0, 0, _roots(facts, word), (), 0)
        case ast.Constant(value=None | str() as value):
            return Constant(0, 0, value)
        case ast.Constant(value=value) if value is ...:
            return Operation(0, 0, "...", ())
        case ast.Attribute(value=value, attr=word):
            base = _converted(facts, value)
            return base._replace(path=(*base.path, word)) if isinstance(base, Ref) else None
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            sides = (_converted(facts, left), _converted(facts, right))
            return Operation(0, 0, "|", tuple(each for each in sides if each)) if all(sides) else None
        case ast.Subscript(value=value, slice=ast.Tuple(elts=elements)):
            return _subscript_of(facts, value, elements)
        case ast.Subscript(value=value, slice=element):
            return _subscript_of(facts, value, [element])
        case ast.List(elts=elements):
            return Collection(0, 0, "list", tuple(_converted(facts, each) for each in elements))
    return None


def _subscript_of(facts: SyntaxTree, value: ast.expr, elements: list[ast.expr]) -> Expression | None:
    base, indices = _converted(facts, value), [_converted(facts, each) for each in elements]
    if base is None or None in indices:
        return None
    return Subscript(0, 0, base, tuple(each for each in indices if each is not None), 0)


def _roots(facts: SyntaxTree, word: str) -> tuple[str, ...]:
    found = next((names for each, names in facts.exports if each == word), ())
    return found or ((f"builtins.{word}",) if hasattr(builtins, word) else (f"?{word}",))


# Kinds that a class inherits from a library base.
_INHERITED_KINDS = frozenset(
    {
        "tensor",
        "parameter",
        "module",
        "dataset",
        "loader",
        "path",
        "dict",
        "list",
        "set",
        "tuple",
        "str",
        "int",
        "float",
    }
)


def instance_of_project(inference: TypeInference, owner: str) -> AbstractValue:
    """An instance of a class of the project; its kind comes from its library bases."""
    resolver = inference.project.resolver
    if resolver.is_module_class(owner):
        return AbstractValue("module", name=owner)
    for base in resolver.ancestry(owner):
        made = None if in_project(base) else instance_of(base)
        if made is not None and made.kind in _INHERITED_KINDS:
            return AbstractValue(made.kind, name=owner)
    return AbstractValue("instance", name=owner)


_UNIONS = frozenset({"typing.Optional", "typing.Union", "typing.Final", "typing.ClassVar", "typing_extensions.Final"})
_FIRST = frozenset({"typing.Annotated", "typing_extensions.Annotated", "typing.Required", "typing.NotRequired"})
# Of these only the element type is known: the value may be a list, a tuple or a set.
_ELEMENTS = frozenset(
    f"{module}.{word}"
    for module in ("typing", "collections.abc")
    for word in ("Sequence", "Iterable", "Collection", "Iterator", "MutableSequence", "Container")
)
_FAMILIES = {
    "Float": "floating",
    "Int": "integer",
    "UInt": "integer",
    "Integer": "integer",
    "Bool": "bool",
    "Complex": "complex",
}


def annotated(inference: TypeInference, path: str, annotation: Expression) -> AbstractValue:
    """The type that an annotation gives; a tuple of classes, as in ``isinstance``, is a union."""
    match annotation:
        case Constant(value=None):
            return NONE
        case Constant(value=str(text)):
            quoted = parse_quoted(inference.project.files[path], text)
            return UNKNOWN if quoted is None else annotated(inference, path, quoted)
        case Operation(op="|", operands=operands) | Collection(kind="tuple", items=operands):
            return _union(annotated(inference, path, each) for each in operands if each is not None)
        case Subscript(value=value, indices=indices):
            return _subscripted(inference, path, value, indices)
        case Ref() | Attribute():
            names = _names(inference, path, annotation)
            return join_all(*(class_instance(inference, each) for each in names)) if names else UNKNOWN
    return UNKNOWN


def union_members(inference: TypeInference, path: str, annotation: Expression) -> Iterator[Expression]:
    """The members of a union annotation; the annotation itself if it is no union."""
    match annotation:
        case Constant(value=str(text)) if (quoted := parse_quoted(inference.project.files[path], text)) is not None:
            yield from union_members(inference, path, quoted)
        case Operation(op="|", operands=operands):
            for each in operands:
                yield from union_members(inference, path, each)
        case Subscript(value=value, indices=indices) if _UNIONS.intersection(_names(inference, path, value)):
            for each in indices:
                yield from union_members(inference, path, each)
        case _:
            yield annotation


def _names(inference: TypeInference, path: str, annotation: Expression) -> tuple[str, ...]:
    """The names of a class."""
    resolver = inference.project.resolver
    return resolver.names_of(path, annotation) if isinstance(annotation, Ref) else resolver.names(path, annotation)


def class_instance(inference: TypeInference, name: str) -> AbstractValue:
    """An instance of a class of the project or of a library."""
    if is_object(name):
        return UNKNOWN
    if in_project(name):
        return instance_of_project(inference, name) if inference.project.resolver.classes(name) else UNKNOWN
    found = instance_of(name)
    return (
        found._replace(dtype="", device="") if found.is_tensor else found
    )  # often written for tensors of other dtypes


def _subscripted(
    inference: TypeInference, path: str, value: Expression, indices: tuple[Expression, ...]
) -> AbstractValue:
    names = set(_names(inference, path, value))
    if names & _UNIONS:
        none = (NONE,) if "typing.Optional" in names else ()
        return _union((*none, *(annotated(inference, path, each) for each in indices)))
    if names & _FIRST:
        return annotated(inference, path, indices[0])
    if names & _ELEMENTS:
        return AbstractValue(contents=annotated(inference, path, indices[0]))
    if any(name.startswith("jaxtyping.") for name in names):
        return _jaxtyping(inference, path, last_word(min(names)), indices)
    whole = annotated(inference, path, value)
    if whole.kind == "tuple":
        return _tuple(inference, path, whole, indices)
    if whole.kind == "dict" and len(indices) == 2:
        return whole._replace(contents=annotated(inference, path, indices[1]))
    if whole.kind in ("list", "set", "frozenset", "iterator", "") and len(indices) == 1 and whole.kind:
        return whole._replace(contents=annotated(inference, path, indices[0]))
    return whole


def _union(members: Iterable[AbstractValue]) -> AbstractValue:
    """The type of a union. Arrays have the elements of the other containers in it: ``Union[List[int], np.ndarray]``."""
    found = list(members)
    whole, known = join_all(*found), [each.contents for each in found if each.contents is not None]
    if known and whole.contents is None and all(each.contents or each.kind in ("ndarray", "none") for each in found):
        return whole._replace(contents=join_all(*known))
    return whole


def _tuple(inference: TypeInference, path: str, whole: AbstractValue, indices: tuple[Expression, ...]) -> AbstractValue:
    if len(indices) == 2 and isinstance(indices[1], Operation) and indices[1].op == "...":
        return whole._replace(contents=annotated(inference, path, indices[0]))
    items = tuple(annotated(inference, path, each) for each in indices)
    return whole._replace(items=items, contents=join_all(*items))


def _jaxtyping(inference: TypeInference, path: str, word: str, indices: tuple[Expression, ...]) -> AbstractValue:
    """Jaxtyping's ``Float[Tensor, "batch 3 h w"]``: a dtype family and a shape; a starred part is any number of dimensions."""
    if len(indices) != 2:
        return UNKNOWN
    base, (shape,) = annotated(inference, path, indices[0]), indices[1:]
    family = next((family for start, family in _FAMILIES.items() if word.startswith(start)), "")
    found = tensor(family) if base.is_tensor else base._replace(family=family)
    if not isinstance(shape, Constant) or not isinstance(shape.value, str):
        return found
    parts = shape.value.split()
    if any(part.startswith(("*", "...", "#*")) for part in parts):
        return found
    sizes = tuple(int(part) if part.isdigit() else None for part in parts)
    return found._replace(min_ndim=len(parts), max_ndim=len(parts), sizes=sizes)


def annotations_of(names: Names, path: str, ref: Ref) -> Iterator[tuple[str, Expression]]:
    """The annotations of a variable or attribute, in its class, in methods and in bases, each with its file."""
    symbols: list[str] = []
    if not ref.path:
        symbols = [name for root in ref.roots for name in names.modules.resolve(path, root)]
    elif len(ref.path) == 1:
        owners = names.names_of(path, ref._replace(path=()))
        symbols = [f"{class_of(owner)}.{ref.path[0]}" for owner in owners]
    for name in filter(in_project, symbols):
        yield from ((path_of(name), value) for how, value in names.assigned(name) if how == ":")
        yield from ((path_of(name), value) for value in (_declared_in_methods(names, name) if ref.path else ()))


def _declared_in_methods(names: Names, name: str) -> Iterator[Expression]:
    """The annotations of an attribute in methods: ``self.indices: set[int] = set()``, in the class or its bases."""
    owner, word = split_last(name)
    for each in names.ancestry(owner):
        methods = (f"{path_of(each)}{method}" for one in names.classes(each) for _, method in one.methods)
        for function in (found for method in methods for found in names.functions(method)):
            yield from declared_attributes(function, word)
