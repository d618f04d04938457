"""What makes a run matter: it leaves a result, or measures something over data."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from torchrepro_lint.catalogue.loaders import loader_names
from torchrepro_lint.syntax.nodes import Attribute, Call, Constant, Expression, Ref
from torchrepro_lint.syntax.visitor import within
from torchrepro_lint.trace.framework_models import matters

if TYPE_CHECKING:
    from torchrepro_lint.resolve.names import Names

_SAVERS = re.compile(
    r"torch\.save|torch\.autograd\.(backward|grad)|torch\.(jit|onnx)\.(save|export)|numpy\.(save\w*|\w+\.tofile)|"
    r"torchvision\.utils\.save_image|(cv2|imageio\w*|skimage\.io)\.im(write|save)|matplotlib\.pyplot\.(savefig|imsave)|"
    r"PIL\.Image\.\w+(\(\)\.\w+)*\(\)\.save|torch\.jit\.\w+\(\)\.save|(pickle|joblib|dill)\.dump|safetensors\.\w+\.save_\w+|scipy\.io\.savemat|torch\.optim\.\w+\(\)\.step"
)
_SAVING_METHODS = frozenset(
    {"backward", "savefig", "save_pretrained", "save_checkpoint", "to_csv", "to_parquet", "to_pickle", "save_weights"}
)
_OPTIMIZER_WORD = re.compile(r"(?=\w*\Z)(?:\w*optim\w*|opt(_?\w{1,2})?|\w*_opt|scaler|grad_scaler|trainer_[dg])")


_LOGGING = frozenset({"info", "debug", "log", "log_metric", "log_metrics", "add_scalar", "add_scalars", "log_dict"})
_METRIC = re.compile(
    r"(?i)(?<![a-z])(acc|accuracy|loss|f1|auc|roc|iou|miou|dice|map|mse|rmse|mae|psnr|ssim|fid|bleu|rouge|"
    r"perplexity|ppl|precision|recall|reward|return|top[-@ ]?[15]|error rate)(?![a-z])"
)
# What a run over random numbers calls, too: nothing of this reads data.
_PLAIN = frozenset(
    {"torch", "torchvision", "torchaudio", "timm", "einops", "numpy", "math", "builtins", "time", "datetime", "random"}
    | {"typing", "functools", "collections", "itertools", "copy", "abc", "logging", "warnings", "os", "sys", "gc", "re"}
    | {"operator", "string", "dataclasses", "enum", "inspect", "types", "contextlib", "traceback", "pprint", "cv2"}
    | {"thop", "torchsummary", "torchinfo", "fvcore", "ptflops", "torchstat", "torch_scatter", "torch_sparse"}
)
_READING = re.compile(
    r"builtins\.(open|input)|torch\.(load|hub\.\w+)|numpy\.(load\w*|genfromtxt|memmap|from(file|regex|txt|string))|cv2\.imread|"
    r"torchvision\.(datasets|io)\..*|torchaudio\.(datasets\..*|load)|os\.(listdir|scandir|walk|fdopen|read|popen)|sys\.stdin.*"
)


def leaves_result(names: Names, called: Iterable[str], call: Call) -> bool:
    """Whether a call trains, saves, or loads data in batches."""
    for name in called:
        if ":" not in name and (name in loader_names() or _SAVERS.fullmatch(name)):
            return True
        if ":" in name and set(names.ancestry(name)) & loader_names():
            return True
    if matters(called):
        return True
    word, receiver = method(call.func)
    return word in _SAVING_METHODS or (word == "step" and bool(_OPTIMIZER_WORD.fullmatch(receiver.lower())))


def logs_metric(called: tuple[str, ...], call: Call) -> bool:
    """Whether a call prints or logs a metric, by its texts and the words of its variables."""
    return may_log(called, call) and any(_METRIC.search(text) for text in _texts(call))


def may_log(called: tuple[str, ...], call: Call) -> bool:
    """Whether a call prints or logs."""
    return called == ("builtins.print",) or method(call.func)[0] in _LOGGING


def reads_data(called: Iterable[str]) -> bool:
    """Whether a call may bring data: any into a package that is not known to have none."""
    return any(
        _READING.fullmatch(name) or name.partition(".")[0] not in _PLAIN
        for name in called
        if ":" not in name and not name.startswith("?")
    )


def method(func: Expression) -> tuple[str, str]:
    """The method's word, and the last word of what it is called on."""
    match func:
        case Ref(roots=roots, path=(*before, word)):
            return word, before[-1] if before else roots[0].rpartition(".")[2].rpartition(":")[2]
        case Attribute(name=word):
            return word, ""
    return "", ""


def _texts(call: Call) -> Iterator[str]:
    """The literal texts and the words of variables in the arguments of a call."""
    for arg in call.args:
        for each in within(arg.value):
            if isinstance(each, Constant) and isinstance(each.value, str):
                yield each.value
            elif isinstance(each, Ref):
                yield (each.path or (each.roots[0].rpartition(".")[2].lstrip(":"),))[-1].replace("_", " ")
