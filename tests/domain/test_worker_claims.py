"""The claims of the TRL3 pages about torch's loaders, shown by the installed torch in fresh processes."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, TypeAlias

import pytest

import installed

installed.torch(minversion="2.6")
pytest.importorskip("numpy")
pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="workers are forked"),
    pytest.mark.xdist_group("programs of torch"),
]

PROBE = Path(__file__).parents[1] / "worker_probe.py"
Epochs: TypeAlias = list[list[dict[str, int]]]


class Probe:
    """What two fresh processes have printed."""

    def __init__(self, one: dict[str, Any], other: dict[str, Any]) -> None:
        self.one, self.other = one, other

    def drawn(self, case: str, family: str, epoch: int = 0) -> list[int]:
        """The numbers in the order of arrival."""
        epochs: Epochs = self.one[case]
        return [sample[family] for sample in epochs[epoch]]

    def repeats(self, case: str, family: str) -> bool:
        """Whether both processes have drawn the same in both epochs; else no number is the same."""
        pairs = [
            (a[family], b[family])
            for epoch, other in zip(self.one[case], self.other[case], strict=True)
            for a, b in zip(epoch, other, strict=True)
        ]
        same = {a == b for a, b in pairs}
        assert len(same) == 1, pairs
        return same == {True}


@pytest.fixture(scope="module")
def probe(tmp_path_factory: pytest.TempPathFactory) -> Probe:
    return probed(tmp_path_factory)


def probed(tmp_path_factory: pytest.TempPathFactory, *cases: str) -> Probe:
    commands = [[sys.executable, str(PROBE), str(tmp_path_factory.mktemp("probe")), *cases] for _ in range(2)]
    started = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    return Probe(*(json.loads(each.communicate()[0]) for each in started))


SEEDED = ("torch", "numpy", "python")


@pytest.mark.parametrize("family", SEEDED)
@pytest.mark.parametrize(
    ("case", "expected"),
    [
        ("nothing", False),
        ("seed", True),
        ("generator", True),
        ("unseeded generator", True),
        ("documented", True),
        ("alike", True),
        ("persistent", True),
        ("four workers", True),
    ],
)
def test_what_workers_draw_repeats_with_a_seed_or_a_generator(
    probe: Probe, case: str, family: str, expected: bool
) -> None:
    assert probe.repeats(case, family) is expected


@pytest.mark.parametrize("family", SEEDED)
def test_workers_and_epochs_differ(probe: Probe, family: str) -> None:
    for case in ("generator", "seed", "documented", "persistent"):
        numbers = probe.drawn(case, family) + probe.drawn(case, family, 1)
        assert len(set(numbers)) == len(numbers), case


@pytest.mark.parametrize("family", SEEDED)
def test_a_draw_before_changes_what_workers_draw_unless_there_is_a_generator(probe: Probe, family: str) -> None:
    assert probe.drawn("generator", family) == probe.drawn("generator, a draw before", family)
    assert not set(probe.drawn("seed", family)) & set(probe.drawn("seed, a draw before", family))


def test_a_generator_on_the_dataset_is_the_same_in_all_workers_and_epochs(probe: Probe) -> None:
    for case in ("generator", "seed", "documented"):
        numbers = probe.drawn(case, "own")
        assert numbers[0::2] == numbers[1::2]
        assert numbers == probe.drawn(case, "own", 1)


def test_numpy_and_python_are_not_seeded_by_torch_without_workers(probe: Probe) -> None:
    assert probe.repeats("no workers", "torch")
    assert not probe.repeats("no workers", "numpy")
    assert not probe.repeats("no workers", "python")


def test_seeding_from_entropy_undoes_the_generator(probe: Probe) -> None:
    assert probe.repeats("entropy", "torch")
    assert not probe.repeats("entropy", "numpy")
    assert not probe.repeats("entropy", "python")


@pytest.mark.parametrize("family", SEEDED)
def test_seeding_all_alike_repeats_in_workers_and_epochs(probe: Probe, family: str) -> None:
    numbers = probe.drawn("alike", family)
    assert numbers[0::2] == numbers[1::2]
    assert numbers == probe.drawn("alike", family, 1)


def test_after_manual_seed_in_a_worker_its_initial_seed_is_that(probe: Probe) -> None:
    assert set(probe.drawn("alike", "seed")) == {0}
    assert len(set(probe.drawn("documented", "seed"))) == 2


@pytest.mark.parametrize("family", SEEDED)
def test_the_number_of_workers_changes_what_they_draw(probe: Probe, family: str) -> None:
    two, four = probe.drawn("generator", family), probe.drawn("four workers", family)
    # The first two workers have the same seeds, and so the same first samples.
    assert two[:2] == four[:2]
    assert not set(two[2:]) & set(four[2:4])


@pytest.mark.long
def test_spawned_workers_draw_what_forked_ones_do(tmp_path_factory: pytest.TempPathFactory) -> None:
    probe = probed(tmp_path_factory, "generator", "spawn")
    assert probe.one["spawn"] == probe.one["generator"]
    assert probe.other["spawn"] == probe.other["generator"]
    assert all(probe.repeats("spawn", family) for family in (*SEEDED, "own"))


def test_persistent_workers_keep_their_seeds(probe: Probe) -> None:
    assert set(probe.drawn("persistent", "seed")) == set(probe.drawn("persistent", "seed", 1))
    assert not set(probe.drawn("generator", "seed")) & set(probe.drawn("generator", "seed", 1))


def test_the_order_repeats_whatever_was_drawn_with_a_generator_only(probe: Probe) -> None:
    assert probe.drawn("shuffled", "index") == probe.drawn("shuffled, a draw before", "index")
    assert probe.drawn("shuffled", "index") != probe.drawn("shuffled", "index", 1)
    assert probe.one["shuffled by the seed"] == probe.other["shuffled by the seed"]
    assert probe.drawn("shuffled by the seed", "index") != probe.drawn("shuffled by the seed, a draw before", "index")


def test_a_sampler_does_not_get_the_generator_of_its_loader(probe: Probe) -> None:
    assert probe.drawn("sampler", "index") != probe.drawn("sampler, a draw before", "index")


def test_without_in_order_the_batch_that_is_ready_first_comes_first(probe: Probe) -> None:
    overtaken, kept, alone = probe.one["orders"]
    assert (overtaken, kept, alone) == ([1, 0], [0, 1], [0, 1])


def test_a_split_by_the_global_generator_changes_with_a_draw_before(probe: Probe) -> None:
    by_seed, by_its_own, after_a_draw, by_its_own_again = probe.one["splits"]
    assert by_seed != after_a_draw
    assert by_its_own == by_its_own_again
