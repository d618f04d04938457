"""The fix of TRL106 for calls of libraries: it passes the argument of the row, and the finding is gone."""

from __future__ import annotations

import pytest

from one_file import findings, fixed
from table_lines import GENERATORS, Line
from torchrepro_lint.checks.entropy import generator

# Rows whose call has no argument that seeds it, or where a dictionary of options is there already.
_UNFIXED = (
    *("imgaug.augmenters.", "faker.Faker", "cupy.random.rand(", "webdataset.WebDataset(x, resampled"),
    "{'popsize': 7}",
)
_REPORTED = [line for line in GENERATORS if line.codes == "106"]
_FIXED = [line for line in _REPORTED if not any(each in line.call for each in _UNFIXED)]


@pytest.mark.parametrize("line", _FIXED, ids=[line.call for line in _FIXED])
def test_a_fix_passes_the_argument_and_the_finding_is_gone(line: Line) -> None:
    after = fixed(generator, line.text)
    assert after != line.text
    compile(after, "main.py", "exec", dont_inherit=True)
    assert findings(generator, after) == []


@pytest.mark.parametrize("line", [line for line in _REPORTED if line not in _FIXED], ids=lambda line: line.call)
def test_a_call_without_an_argument_is_left_as_it_is(line: Line) -> None:
    assert fixed(generator, line.text) == line.text


@pytest.mark.parametrize(
    ("call", "passed"),
    [
        ("optuna.samplers.TPESampler()", "seed=SEED"),
        ("optuna.create_study().optimize(x)", "sampler=optuna.samplers.TPESampler(seed=SEED)"),
        ("hyperopt.fmin(x, y)", "rstate=np.random.default_rng(SEED)"),
        ("cma.fmin2(x, y, 0.5)", 'options={"seed": SEED}'),
        ("gensim.models.Word2Vec(x, workers=8)", "workers=1"),
        ("hnswlib.Index('l2', 7).add_items(x, y, -1)", "add_items(x, y, 1)"),
        ("umap.UMAP(random_state=None)", "random_state=SEED"),
        ("leidenalg.find_partition(x, y, None, None, 2, 0, None)", "0, SEED)"),
        ("jax.random.PRNGKey(int(time.time()))", "PRNGKey(SEED)"),
        ("polars.col(x).shuffle(None)", "shuffle(SEED)"),
    ],
)
def test_what_a_fix_writes(call: str, passed: str) -> None:
    root = call.partition(".")[0]
    text = f"import time\n\nimport {root}\nimport {call.partition('(')[0].rpartition('.')[0].partition('(')[0]}\n\n\n"
    after = fixed(generator, f"{text}def main(x, y):\n    return {call}\n")
    assert passed in after
    assert findings(generator, after) == []


def test_no_fix_where_stars_may_pass_the_seed() -> None:
    text = "import optuna\n\n\ndef make(*options):\n    return optuna.samplers.RandomSampler(*options)\n"
    assert findings(generator, text) == []


def test_no_fix_in_a_loop() -> None:
    text = "import polars\n\n\ndef make(x):\n    for each in x:\n        polars.DataFrame(each).sample(7)\n"
    assert len(findings(generator, text)) == 1
    assert fixed(generator, text) == text


@pytest.mark.parametrize("name", ["optuna", "op"])
def test_a_fix_writes_the_name_that_a_function_gives_to_an_optional_library(name: str) -> None:
    """An import at the top of the file would fail where the library is not installed."""
    imported = "import optuna" if name == "optuna" else f"import optuna as {name}"
    text = f"""def tune(objective):
    {imported}

    def search():
        return {name}.create_study(direction="minimize")

    study = {name}.create_study()
    study.optimize(objective)
    search().optimize(objective)
"""
    after = fixed(generator, text)
    assert after.count("import") == 1
    assert after.count(f"sampler={name}.samplers.TPESampler(seed=SEED)") == 2
    assert findings(generator, after) == []


def test_a_fix_writes_the_name_that_a_function_has_for_numpy() -> None:
    text = """import hyperopt


def search(x, y):
    import numpy as np

    return hyperopt.fmin(x, y, np.zeros(2))
"""
    after = fixed(generator, text)
    assert after.count("import numpy") == 1
    assert "rstate=np.random.default_rng(SEED)" in after
