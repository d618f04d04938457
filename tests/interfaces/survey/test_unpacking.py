"""What is read of a repository, and what is refused: nothing may leave the folder, run, or grow without end."""

from __future__ import annotations

import os
import shutil
import tarfile
import zipfile
from pathlib import Path

import pytest

import survey_repositories as made
from torchrepro_lint.interfaces.survey.repositories import RefusedError, Repository, UnpackLimits, named_repositories
from torchrepro_lint.interfaces.survey.unpacking import Unpacked, content_digest, unpack
from torchrepro_lint.source.errors import UsageError

LIMITS = UnpackLimits()
READ = {"train.py", "helpers.py", "steady.py", "requirements.txt", "conf/model.yaml"}


def one(word: object) -> Repository:
    (found,) = named_repositories([str(word)])
    return found


def taken(word: object, into: Path, limits: UnpackLimits = LIMITS) -> Unpacked:
    into.mkdir()
    return unpack(one(word), into, limits)


def below(place: Path) -> set[str]:
    return {path.relative_to(place).as_posix() for path in place.rglob("*") if path.is_file()}


def refused(word: object, tmp_path: Path, limits: UnpackLimits = LIMITS) -> str:
    """The reason; nothing may be written outside the folder."""
    before = set(tmp_path.rglob("*"))
    with pytest.raises(RefusedError) as error:
        taken(word, tmp_path / "into", limits)
    assert set(tmp_path.rglob("*")) - before <= {tmp_path / "into", *(tmp_path / "into").rglob("*")}
    return error.value.reason


def test_each_kind_gives_the_files_that_are_read(tmp_path: Path) -> None:
    source = made.folder(tmp_path / "project")
    repository = made.bare(tmp_path / "project.git", source)
    words = (source, f"{repository}@HEAD", repository, made.zipped(tmp_path / "project.zip"))
    for number, word in enumerate(words):
        found = taken(word, tmp_path / str(number))
        assert (below(tmp_path / str(number)), found.files) == (READ, len(READ))
    # The one folder of an sdist is its top.
    taken(made.sdist(tmp_path / "project-1.0.tar.gz"), tmp_path / "sdist")
    assert below(tmp_path / "sdist") == {*READ, "PKG-INFO"}


def test_only_a_folder_that_holds_all_of_an_archive_is_its_top(tmp_path: Path) -> None:
    inside = {"code/train.py": "import torch\n"}
    source = made.folder(tmp_path / "project", inside)
    beside = made.zipped(tmp_path / "beside.zip", {**inside, "README.md": "Not read.\n"})
    wheel = made.zipped(tmp_path / "code-1.0-py3-none-any.whl", inside)
    for number, word in enumerate((source, made.bare(tmp_path / "project.git", source), beside, wheel)):
        taken(word, tmp_path / str(number))
        assert below(tmp_path / str(number)) == {"code/train.py"}
    taken(made.zipped(tmp_path / "wrapped.zip", inside), tmp_path / "wrapped")
    assert below(tmp_path / "wrapped") == {"train.py"}


def test_names_revisions_and_lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    source = made.folder(tmp_path / "study")
    made.bare(tmp_path / "own+er@home" / "repo", source)
    made.sdist(tmp_path / "acme_train-1.2.tar.gz")
    (tmp_path / "list.txt").write_text(
        "# comment\n\nstudy\nown+er@home/repo@HEAD@{0}\nacme_train-1.2.tar.gz\nnone\nstudy\n"
    )
    found = {each.id: each[1:] for each in named_repositories(["list.txt", "study"])}
    assert found == {
        "acme_train-1.2.tar.gz": ("archive", str(tmp_path / "acme_train-1.2.tar.gz"), "1.2", "acme-train"),
        "none": ("missing", str(tmp_path / "none"), "", "none"),
        "own+er@home/repo@HEAD@{0}": ("git", str(tmp_path / "own+er@home" / "repo"), "HEAD@{0}", "own+er@home"),
        "study": ("folder", str(tmp_path / "study"), "", "study"),
    }
    (tmp_path / "data.bin").write_bytes(b"\0\1\2")
    with pytest.raises(UsageError, match="neither a list"):
        named_repositories(["data.bin"])


@pytest.mark.parametrize("name", ["../evil.py", "/tmp/evil.py", "a/../../evil.py", "C:\\evil.py", "a\\..\\..\\evil.py"])
def test_a_path_that_leaves_the_folder_refuses_the_archive(name: str, tmp_path: Path) -> None:
    assert refused(made.tar(tmp_path / "a.tar.gz", [("ok.py", b"x = 1\n"), (name, b"")]), tmp_path) == "unsafe path"


def test_the_same_in_a_zip(tmp_path: Path) -> None:
    assert refused(made.zipped(tmp_path / "a.zip", {"a/../../evil.py": "x = 1\n"}), tmp_path) == "unsafe path"


@pytest.mark.parametrize(
    ("info", "reason"),
    [
        (made.link("a/out", "../../secret"), "unsafe link"),
        (made.link("out", "/etc/passwd"), "unsafe link"),
        (made.link("out.py", "../secret.py", tarfile.LNKTYPE), "unsafe link"),
        (made.link("fifo", "", tarfile.FIFOTYPE), "unsafe file"),
        (made.link("device", "", tarfile.CHRTYPE), "unsafe file"),
    ],
)
def test_links_out_of_the_folder_and_devices_refuse_the_archive(
    info: tarfile.TarInfo, reason: str, tmp_path: Path
) -> None:
    assert refused(made.tar(tmp_path / "a.tar.gz", [("ok.py", b"")], info), tmp_path) == reason


def test_a_link_inside_is_neither_made_nor_written_through(tmp_path: Path) -> None:
    members = [("real/a.py", b"a = 1\n"), ("other.py", b"b = 1\n")]
    archive = made.tar(tmp_path / "a.tar.gz", members, made.link("alias", "real"), made.link("alias.py", "other.py"))
    found = taken(archive, tmp_path / "into")
    assert below(tmp_path / "into") == {"real/a.py", "other.py"}
    assert not (tmp_path / "into" / "alias").is_symlink()
    assert found.left_out == (("alias.py", "a link, which is not followed"),)


def test_a_link_of_a_folder_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret.py").write_text("password = 1\n")
    source = made.folder(tmp_path / "project", {"a.py": "a = 1\n"})
    (source / "b.py").symlink_to(tmp_path / "secret.py")
    (source / "c").symlink_to(tmp_path)
    found = taken(source, tmp_path / "into")
    assert below(tmp_path / "into") == {"a.py"}
    assert found.left_out == (("b.py", "a link, which is not followed"),)


def test_what_expands_too_much_is_refused(tmp_path: Path) -> None:
    assert refused(made.brackets(tmp_path / "deep-1.0.tar.gz", 3 << 30), tmp_path) == "bomb"
    made.zipped(tmp_path / "b.zip", {"b.ipynb": "[" * 100_000_000})
    (tmp_path / "into").rmdir()
    assert refused(tmp_path / "b.zip", tmp_path) == "bomb"


@pytest.mark.parametrize(
    ("limits", "reason"),
    [
        (UnpackLimits(read_bytes=100), "too large"),
        (UnpackLimits(files=2), "too many files"),
        (UnpackLimits(entries=2), "too many files"),
    ],
)
def test_limits_of_bytes_files_and_entries(limits: UnpackLimits, reason: str, tmp_path: Path) -> None:
    source = made.folder(tmp_path / "project")
    words = (source, made.bare(tmp_path / "project.git", source), made.sdist(tmp_path / "project-1.0.tar.gz"))
    for word in (*words, made.zipped(tmp_path / "project.zip")):
        assert refused(word, tmp_path, limits) == reason
        shutil.rmtree(tmp_path / "into")


def test_a_file_that_is_too_long_is_left_out(tmp_path: Path) -> None:
    source = made.folder(tmp_path / "project", {"a.py": "a = 1\n", "data.json": "1" * 200_000})
    with open(source / "b.py", "wb") as file:
        file.truncate(3 << 30)
    found = taken(source, tmp_path / "into")
    assert below(tmp_path / "into") == {"a.py"}
    assert found.left_out == (("b.py", "has more than 40,000,003 bytes"),)


@pytest.mark.parametrize("data", [b"", b"no archive", b"\x1f\x8b\x08\x00 cut off"])
@pytest.mark.parametrize("name", ["a.zip", "a.tar.gz", "a.tar", "a.tar.xz", "a.whl"])
def test_a_damaged_archive_is_refused(name: str, data: bytes, tmp_path: Path) -> None:
    (tmp_path / name).write_bytes(data)
    assert refused(tmp_path / name, tmp_path) == "damaged archive"


def test_an_archive_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    whole = made.sdist(tmp_path / "project-1.0.tar.gz").read_bytes()
    (tmp_path / "cut-1.0.tar.gz").write_bytes(whole[: len(whole) // 2])
    assert refused(tmp_path / "cut-1.0.tar.gz", tmp_path) == "damaged archive"


def test_an_encrypted_zip_is_refused(tmp_path: Path) -> None:
    made.zipped(tmp_path / "a.zip", {"a.py": "a = 1\n"})
    data = bytearray((tmp_path / "a.zip").read_bytes())
    for mark, at in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        data[data.index(mark) + at] |= 1
    (tmp_path / "a.zip").write_bytes(data)
    assert refused(tmp_path / "a.zip", tmp_path) == "damaged archive"


def test_git_runs_no_filter_of_the_repository(tmp_path: Path) -> None:
    files = {**made.PROJECT, ".gitattributes": "*.py filter=evil\n"}
    repository = made.bare(tmp_path / "project.git", made.folder(tmp_path / "project", files))
    mark = tmp_path / "ran"
    made.git(repository, "config", "filter.evil.smudge", f"touch {mark}; cat")
    made.git(repository, "config", "filter.evil.required", "true")
    made.git(repository, "config", "core.fsmonitor", f"touch {mark}")
    assert taken(f"{repository}@HEAD", tmp_path / "into").files == len(READ)
    assert not mark.exists()


def test_git_leaves_out_links_and_submodules(tmp_path: Path) -> None:
    source = made.folder(tmp_path / "project", {"a.py": "a = 1\n"})
    (source / "b.py").symlink_to("/etc/passwd")
    repository = made.bare(tmp_path / "project.git", source)
    commit = made.git(repository, "rev-parse", "HEAD").strip()
    made.git(repository, "update-index", "--add", "--cacheinfo", f"160000,{commit},module")
    tree = made.git(repository, "write-tree").strip()
    made.git(repository, "update-ref", "HEAD", made.git(repository, "commit-tree", "-m", "module", tree).strip())
    found = taken(f"{repository}@HEAD", tmp_path / "into")
    assert below(tmp_path / "into") == {"a.py"}
    assert [path for path, _ in found.left_out] == ["b.py", "module"]


def test_git_reads_an_incomplete_repository(tmp_path: Path) -> None:
    repository = made.bare(tmp_path / "project.git", made.folder(tmp_path / "project"))
    name = made.git(repository, "rev-parse", "HEAD:helpers.py").strip()
    os.unlink(repository / "objects" / name[:2] / name[2:])
    found = taken(f"{repository}@HEAD", tmp_path / "into")
    assert below(tmp_path / "into") == READ - {"helpers.py"}
    assert found.left_out == (("helpers.py", "not in this git repository, which is incomplete"),)


@pytest.mark.parametrize("revision", ["nothing", "--upload-pack=touch", "-h"])
def test_a_revision_that_is_none_is_refused(revision: str, tmp_path: Path) -> None:
    repository = made.bare(tmp_path / "project.git", made.folder(tmp_path / "project"))
    assert refused(f"{repository}@{revision}", tmp_path) == "git"


def test_the_digest_is_that_of_what_is_read(tmp_path: Path) -> None:
    source = made.folder(tmp_path / "project")
    repository = made.bare(tmp_path / "project.git", source)
    words = (source, f"{repository}@HEAD", made.sdist(tmp_path / "project-1.0.tar.gz"))
    before = [content_digest(one(word), LIMITS) for word in words]
    (source / "README.md").write_text("Also not read.\n")
    assert [content_digest(one(word), LIMITS) for word in words] == before
    (source / "train.py").write_text("import torch\n")
    made.git(repository, "--work-tree", str(source), "commit", "-q", "-a", "-m", "more")
    made.sdist(tmp_path / "project-1.0.tar.gz", {**made.PROJECT, "train.py": "import torch\n"})
    assert all(content_digest(one(word), LIMITS) != known for word, known in zip(words, before, strict=True))


def test_a_wheel_with_one_package_keeps_its_folder(tmp_path: Path) -> None:
    wheel = tmp_path / "acme-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("acme/__init__.py", "")
    taken(wheel, tmp_path / "into")
    assert below(tmp_path / "into") == {"acme/__init__.py"}
    assert (one(wheel).name, one(wheel).revision) == ("acme", "1.0")
