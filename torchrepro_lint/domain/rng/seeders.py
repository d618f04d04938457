"""Seeders: which seed a call passes, what a missing seed means, and whether a seed is nondeterministic.

Nondeterministic sources are the time, entropy, addresses and hashes of strings. Also here: the relevance of a run, that
is, whether its calls leave a result or measure something over data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from torchrepro_lint.catalogue.catalogue import Catalogue
from torchrepro_lint.catalogue.conditions import Truth, argument_reader, evaluate
from torchrepro_lint.catalogue.libraries import loader_names
from torchrepro_lint.catalogue.rows import Seeder
from torchrepro_lint.dataflow.constants import Declaration, Ruling
from torchrepro_lint.dataflow.feasibility import implies_not_none
from torchrepro_lint.dataflow.taint.sinks import DATA_WRITERS
from torchrepro_lint.resolve.names import Names
from torchrepro_lint.source.patterns import lazy_pattern
from torchrepro_lint.syntax.binding import formatted_values, known_argument
from torchrepro_lint.syntax.nodes import (
    Attribute,
    Call,
    Constant,
    Expression,
    Operation,
    Record,
    Ref,
    Subscript,
)
from torchrepro_lint.syntax.qualified_names import (
    in_project,
    is_unresolved,
    simple_name,
    split_call,
    top_package,
    without_parentheses,
)
from torchrepro_lint.syntax.scopes import stored_before
from torchrepro_lint.syntax.visitor import is_none, last_identifier, receiver_of, subexpressions
from torchrepro_lint.trace.events import TraceEvent
from torchrepro_lint.trace.library_models import trains_or_measures

# Methods and functions that restore a generator, whatever they belong to.
RESTORING = frozenset(
    {"set_rng_state", "set_rng_state_all", "set_rng_states", "load_rng_state", "restore_rng_state", "setstate"}
    | {"set_state"}
)
# Functions that take the state of a generator.
_TAKING = frozenset(
    {
        f"torch.{module}get_rng_state{which}"
        for module in ("", "random.", "cuda.", "cuda.random.")
        for which in ("", "_all")
    }
    | {"numpy.random.get_state", "random.getstate"}
)


# Calls whose one argument is a seed as an integer.
PLAIN_SEEDERS = frozenset(
    {"torch.manual_seed", "torch.random.manual_seed", "torch.cuda.manual_seed", "torch.cuda.manual_seed_all"}
    | {"torch.cuda.random.manual_seed", "torch.cuda.random.manual_seed_all", "numpy.random.seed", "random.seed"}
)


class OptionalSeed(Record, frozen=True):
    """A family that a run without options does not seed: the declaration of the default that is to blame, the test that it
    fails (None where the default is the seed itself), whether the family gets a new seed in each run, and the scalar draws,
    by file and call, that only make this seed.
    """

    family: str
    declared: Declaration
    test: Ruling | None
    changes: bool
    draws: frozenset[tuple[str, Call]]


def puts_back(names: Names, path: str, call: Call) -> bool:
    """Whether a call puts a generator back into a state that the program took from it before, which seeds nothing."""
    return bool(_states_put_back(names, path, call))


def _states_put_back(names: Names, path: str, call: Call) -> list[tuple[str, Expression]]:
    """The calls, with their files, that took the state into which a call puts a generator back; none if it may be another one."""
    if last_identifier(call.func) not in RESTORING or not call.args:
        return []
    states = [*names.values_through_calls(path, call.args[0].value)]
    taken = (
        isinstance(state, Call) and not _TAKING.isdisjoint(names.names(file, state.func)) for file, state in states
    )
    return states if all(taken) else []


def is_temporary(names: Names, seed: TraceEvent) -> bool:
    """Whether the function that seeds puts the generator's state back that it took before, so that the seed is not the program's."""
    path, start = seed.path, seed.event.statement.start
    if RESTORING.isdisjoint(names.modules.summary(path).calls):
        return False
    return any(
        function == seed.function
        and call.start > start
        and any(file == path and state.start < start for file, state in _states_put_back(names, path, call))
        for function, call in names.call_graph.in_file(path)
    )


def seeds_nothing(names: Names, trace_event: TraceEvent, call: Call) -> bool:
    """Whether a seeding call has no effect on a run: it puts a state back, or runs in a loader's workers alone, of which a test asks
    torch; and this is the main process.
    """
    elsewhere = trace_event.mode != "worker" and runs_in_workers_alone(names, trace_event)
    return elsewhere or puts_back(names, trace_event.path, call)


def runs_in_workers_alone(names: Names, trace_event: TraceEvent) -> bool:
    """Whether an event happens only where torch says that this is a loader's worker."""
    return any(
        implies_not_none(guard, each) and not _WORKER_INFO.isdisjoint(names.names(trace_event.path, each))
        for guard in trace_event.event.guards
        for each in subexpressions(guard.value)
        if isinstance(each, Ref | Call)
    )


# What torch says of the worker that asks, and in the main process None.
_WORKER_INFO = frozenset({"torch.utils.data.get_worker_info()", "torch.utils.data.get_worker_info"})


def passed_seed(seeder: Seeder, call: Call) -> Expression | None:
    """The seed that a call passes; None where it passes none, an unknown name where a star argument may."""
    return argument_reader(seeder.signature, call)(seeder.seed) if seeder.seed else None


def seeds_from_entropy(seeder: Seeder, call: Call) -> bool:
    """Whether a call passes no seed, or None, and that means entropy."""
    return _missing_seed_meaning(seeder, call) == "entropy"


def families_of_call(seeder: Seeder, call: Call) -> tuple[str, ...]:
    """The families that a call seeds with a number that may be the same in each run."""
    if seeder.holds or _missing_seed_meaning(seeder, call) in ("entropy", "nothing"):
        return ()
    truth = evaluate(seeder.when, seeder.signature, argument_reader(seeder.signature, call))
    return () if truth is Truth.FAILS else seeder.families


def families_seeded(
    catalogue: Catalogue, user: Mapping[str, tuple[str, ...]], name: str, call: Call
) -> tuple[str, ...] | None:
    """The families that a call of ``name`` seeds: none for a seed from entropy; None where it is no seeder."""
    if name in user:
        return user[name]
    seeder = catalogue.seeder(name)
    return None if seeder is None else families_of_call(seeder, call)


def _missing_seed_meaning(seeder: Seeder, call: Call) -> str:
    seed = passed_seed(seeder, call)
    if seed is None:
        return seeder.default
    return seeder.none if is_none(seed) else ""


_NONDETERMINISTIC_SOURCES = lazy_pattern(
    r"time\.(time|time_ns|perf_counter|perf_counter_ns|monotonic|monotonic_ns|process_time|clock)|os\.(urandom|getpid)|"
    r"uuid\.uuid[14]|secrets\.\w+|builtins\.id|random\.SystemRandom\(\)\.\w+|"
    r"datetime\.(datetime|date)\.(now|utcnow|today)|torch\.(random\.)?seed|torch\.Generator\(\)\.seed"
)


def is_nondeterministic_name(name: str) -> bool:
    """Whether calling a name returns a new value in each run: the time, entropy, what is made of them by a method."""
    return any(map(_NONDETERMINISTIC_SOURCES.fullmatch, (name, split_call(name)[0])))


def nondeterministic_source(names: Names, path: str, expression: Expression) -> str | None:
    """The source that makes a value change between runs, ``time.time``; None unless every possible value has one."""
    if isinstance(expression, Ref) and expression.path:
        expression = stored_before(names.modules.files[path], expression) or expression
    found: list[str | None] = []
    for file, value in names.values_through_calls(path, expression):
        if isinstance(value, Operation) and value.op in ("if", "or"):
            return None  # one of the alternatives may be the user's seed
        found.append(_first_source(names, file, value, set()))
    return found[0] if found and None not in found else None


def _first_source(names: Names, path: str, value: Expression, seen: set[tuple[str, Expression]]) -> str | None:
    """The first nondeterministic source in a value; ``seen`` stops cycles such as ``seed = int(seed)``."""
    seen.add((path, value))
    for each in subexpressions(value):
        if isinstance(each, Call):
            for name in names.names(path, each.func):
                if _NONDETERMINISTIC_SOURCES.fullmatch(name):
                    return without_parentheses(name)
                if name == "builtins.hash" and each.args and _hashes_text(names, path, each.args[0].value, set()):
                    return "hash of a string"
        elif each != value and not isinstance(each, Constant):
            for file, inner in names.values(path, each):
                follow = isinstance(inner, Call) and (file, inner) not in seen
                if follow and (source := _first_source(names, file, inner, seen)) is not None:
                    return source
    return None


def _hashes_text(names: Names, path: str, expression: Expression, seen: set[tuple[str, Expression]]) -> bool:
    """Whether the argument of ``hash`` is a string, whose hash depends on ``PYTHONHASHSEED``."""
    if (path, expression) in seen:
        return False
    seen.add((path, expression))
    for file, value in names.values(path, expression):
        match value:
            case Constant(value=str() | bytes()) | Operation(op="f"):
                continue
            case Operation(op="+" | "%", operands=parts) if any(
                _hashes_text(names, file, each, seen) for each in parts
            ):
                continue
            case Call(func=func) if set(names.names(file, func)) & {"builtins.str", "builtins.repr"}:
                continue
        return False
    return True


# Calls that train, or that save what is no table of data: networks, images, films, volumes, meshes, sounds.
_SAVERS = lazy_pattern(
    r"torch\.autograd\.(backward|grad)|torch\.(jit|onnx)\.(save|export)|numpy\.\w+\.tofile|"
    r"torchvision\.utils\.save_image|(cv2|imageio\w*(\.v[23])?|skimage\.io|tifffile|skvideo\.io)\.(im|mim|v)(write|save)|"
    r"nibabel\.(\w+\.)*save|SimpleITK\.WriteImage|"
    r"open3d\.io\.write_\w+|pymesh\.(\w+\.)*save_\w+|plyfile\.PlyData\(\)\.write|trimesh\..*\.export|matplotlib\.pyplot\.(savefig|imsave)|"
    r"torchvision\.io\.write_\w+|torchaudio\.save|soundfile\.write|(scipy\.io\.wavfile|librosa\.output)\.write\w*|diffusers\..*\.save|"
    r"diffusers\.utils\.export_to_\w+|"
    r"torchvision\.transforms\.(\w+\.)*(to_pil_image|ToPILImage\(\))\(\)(\.\w+\(\))*\.save|"
    r"PIL\.Image\.\w+(\(\)\.\w+)*\(\)\.save|torch\.jit\.\w+\(\)\.save|safetensors\.\w+\.save_\w+|torch\.optim\.\w+\(\)\.step"
)
_SAVING_METHODS = frozenset(
    {"backward", "savefig", "save_pretrained", "save_checkpoint", "to_csv", "to_parquet", "to_pickle", "save_weights"}
)
_OPTIMIZER_WORD = lazy_pattern(r"(?=\w*\Z)(?:\w*optim\w*|opt(_?\w{1,2})?|\w*_opt|scaler|grad_scaler|trainer_[dg])")


_LOGGING_METHODS = frozenset(
    {"info", "debug", "log", "log_metric", "log_metrics", "add_scalar", "add_scalars", "log_dict"}
)
_METRIC = lazy_pattern(
    r"(?i)(?<![a-z])(acc|accuracy|loss|f1|auc|roc|iou|miou|dice|map|mse|rmse|mae|psnr|ssim|fid|bleu|rouge|"
    r"perplexity|ppl|precision|recall|reward|return|scores?|top[-@ ]?[15]|error rate)(?![a-z])"
)
# What ``loss.shape`` tells is no metric.
_ABOUT_FORM = frozenset({("shape",), ("size",), ("dtype",), ("device",), ("ndim",), ("dim",), ("requires_grad",)})
# Packages that read no data: a run over random numbers calls them, too.
_PACKAGES_WITHOUT_DATA = frozenset(
    {"torch", "torchvision", "torchaudio", "timm", "einops", "numpy", "math", "builtins", "time", "datetime", "random"}
    | {"typing", "functools", "collections", "itertools", "copy", "abc", "logging", "warnings", "os", "sys", "gc", "re"}
    | {"operator", "string", "dataclasses", "enum", "inspect", "types", "contextlib", "traceback", "pprint", "cv2"}
    | {"transformers", "pytorch_transformers", "pytorch_pretrained_bert", "diffusers", "peft", "torchcrf", "TorchCRF"}
    | {"pygame", "tkinter", "turtle", "curses"}
    | {"thop", "torchsummary", "torchinfo", "fvcore", "ptflops", "torchstat", "torch_scatter", "torch_sparse"}
)
_DATA_READERS = lazy_pattern(
    r"builtins\.(open|input)|torch\.(load|hub\.\w+)|numpy\.(load\w*|genfromtxt|memmap|from(file|regex|txt|string))|cv2\.imread|"
    r"torchvision\.(datasets|io)\..*|torchaudio\.(datasets\..*|load)|"
    r"transformers\.(\w+\.)*(pipeline\b|\w*Dataset\b|\w*Processor\(\)\.get_\w+_examples|\w+_convert_examples_to_features).*|"
    r"diffusers\.utils\.(\w+\.)*load_(image|video)|os\.(listdir|scandir|walk|fdopen|read|popen)|sys\.stdin.*"
)


def leaves_result(names: Names, called: Iterable[str], call: Call) -> bool:
    """Whether a call trains, saves, or loads data in batches."""
    for name in called:
        if not in_project(name) and (name in loader_names() or _SAVERS.fullmatch(name)):
            return True
        if in_project(name) and set(names.ancestry(name)) & loader_names():
            return True
    if trains_or_measures(called) or any(
        DATA_WRITERS.fullmatch(name) and top_package(name) != "yaml" for name in called
    ):
        return True
    word, receiver = method_and_receiver(call.func)
    return word in _SAVING_METHODS or (word == "step" and bool(_OPTIMIZER_WORD.fullmatch(receiver.lower())))


_WRITERS = frozenset({"builtins.open().write", "builtins.open().writelines", "builtins.print", "json.dump"})
_BYTE_WRITERS = lazy_pattern(
    r"pathlib\.\w+\(\)\.(write_bytes|open\(\)\.write)|(gzip|bz2|lzma)\.(open|\w+File)\(\)\.write"
)


def saves_result(names: Names, trace_event: TraceEvent, call: Call) -> bool:
    """Whether a call trains, saves, or loads data in batches, and not only writes aside."""
    saves = leaves_result(names, trace_event.names, call) or _prints_to_file(names, trace_event, call)
    return saves and not _writes_aside(names, trace_event, call)


def _prints_to_file(names: Names, trace_event: TraceEvent, call: Call) -> bool:
    """Whether a call is a ``print`` into a file that the program has opened."""
    if trace_event.names != ("builtins.print",):
        return False
    file = known_argument(call, None, "file")
    return file is not None and "builtins.open()" in names.names(trace_event.path, file)


def _writes_aside(names: Names, trace_event: TraceEvent, call: Call) -> bool:
    """Whether a call writes a file that is more often a download than a result: bytes; or the settings that a package keeps: on import."""
    if any(map(_BYTE_WRITERS.fullmatch, trace_event.names)):
        return True
    if not trace_event.names or not _WRITERS.issuperset(trace_event.names):
        return False
    receiver = receiver_of(call.func)
    roots = receiver.roots if isinstance(receiver, Ref) and not receiver.path else ()
    opened = (value for root in roots for _, value in names.assigned(trace_event.path + root))
    modes = (known_argument(each, 1, "mode") for each in (receiver, *opened) if isinstance(each, Call))
    return any(isinstance(mode, Constant) and "b" in str(mode.value) for mode in modes) or any(
        step.event.kind == "import" for step in trace_event.call_path
    )


def logs_metric(names: Names, trace_event: TraceEvent, call: Call) -> bool:
    """Whether a call prints or logs a metric, by its literals and the names of its variables; not one that a checkpoint tells."""
    if not may_log(trace_event.names, call) or not any(_METRIC.search(text) for text in _texts(call)):
        return False
    shown = [each for arg in call.args for each in formatted_values(arg.value)]
    items = [each for each in shown if isinstance(each, Subscript) and isinstance(each.value, Ref)]
    saved = [each for each in items if "torch.load()" in names.names(trace_event.path, each.value)]
    others = [each for each in shown if each not in saved and not isinstance(each, Constant)]
    plain = all(isinstance(each, Ref) and not any(map(_METRIC.search, _words(each))) for each in others)
    return not saved or not plain


def may_log(called: tuple[str, ...], call: Call) -> bool:
    """Whether a call prints or logs."""
    return called == ("builtins.print",) or method_and_receiver(call.func)[0] in _LOGGING_METHODS


def reads_data(called: Iterable[str]) -> bool:
    """Whether a call may read data: any call into a package that is not known to read none."""
    return any(
        _DATA_READERS.fullmatch(name) or top_package(name) not in _PACKAGES_WITHOUT_DATA
        for name in called
        if not in_project(name) and not is_unresolved(name)
    )


def method_and_receiver(func: Expression) -> tuple[str, str]:
    """The method's name, and the last word of its receiver."""
    match func:
        case Ref(roots=roots, path=(*before, word)):
            return word, before[-1] if before else simple_name(roots[0])
        case Attribute(name=word):
            return word, ""
    return "", ""


def _texts(call: Call) -> Iterator[str]:
    """The literal texts and the words of variables in the arguments of a call."""
    for arg in call.args:
        for each in subexpressions(arg.value):
            if isinstance(each, Constant) and isinstance(each.value, str):
                yield each.value
            elif isinstance(each, Ref):
                yield from _words(each)


def _words(variable: Ref) -> Iterator[str]:
    """The words of a variable, each as a text, but for what only tells of its form."""
    if variable.path[-1:] not in _ABOUT_FORM:
        for word in (simple_name(variable.roots[0]), *variable.path):
            yield word.replace("_", " ")


# An unresolved call named like a seeder may be one: then nothing is reported about the run.
_SEEDER_WORD = lazy_pattern(
    r"(?=\w*\Z)(?!(?:to|as|is|are|has|get|check|assert|verify)_)"  # those test or convert, and set nothing
    r"(?:(set|fix|init|setup|manual|same|torch|all|global|random|reset|make|enable|ensure)\w*seeds?(_all)?|"
    r"seed_\w+|seeding|\w*(determinis|reproduc)\w*)"
)


def is_seeder_word(word: str) -> bool:
    """Whether a function is named like a seeder: ``set_seed``."""
    return _SEEDER_WORD.fullmatch(word.lower()) is not None


def is_seeding_method(names: tuple[str, ...], call: Call) -> bool:
    """A method of an unknown object that is named like a seeder: ``fabric.seed_everything(7)``."""
    word, receiver = method_and_receiver(call.func)
    return not names and bool(receiver) and is_seeder_word(word)
