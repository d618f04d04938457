"""Discovery: which files are linted, which are analysed, and a project's root."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from torchrepro_lint.config.discovery import Plan, glob_matcher, plan, source_roots
from torchrepro_lint.config.roots import ConfigOptions

Maker = Callable[[Mapping[str, str]], Path]


def given(planned: Plan) -> list[str]:
    return sorted(one.display for tree in planned.trees for _, one in tree.given)


def found(*paths: str, force_exclude: bool = False) -> list[str]:
    return given(plan(paths or (".",), ConfigOptions(), force_exclude))


def test_python_files_and_notebooks_below_a_directory(project: Maker) -> None:
    project(
        {
            "b.py": "",
            "a/c.py": "",
            "a/d.pyi": "",
            "notes.txt": "",
            "run": "",
            "a/e.ipynb": "",
            ".ipynb_checkpoints/e.ipynb": "",
        }
    )
    assert found() == ["./a/c.py", "./a/e.ipynb", "./b.py"]


@pytest.mark.parametrize(
    ("path", "printed"),
    [
        ("src", "src/pkg/a.py"),
        ("src/", "src/pkg/a.py"),
        ("./src", "./src/pkg/a.py"),
        ("src/pkg/a.py", "src/pkg/a.py"),
        ("../{name}/src", "../{name}/src/pkg/a.py"),
        (".", "./src/pkg/a.py"),
    ],
)
def test_paths_are_printed_as_they_were_given(project: Maker, path: str, printed: str) -> None:
    name = project({"src/pkg/a.py": ""}).name
    assert found(path.format(name=name)) == [printed.format(name=name)]


def test_what_ruff_skips_is_skipped(project: Maker) -> None:
    project({f"{name}/x.py": "" for name in (".venv", "venv", ".git", "dist", "node_modules", "a/__pypackages__")})
    assert found() == []


def test_gitignore_is_honoured_like_git_does(project: Maker) -> None:
    folder = project(
        {
            ".gitignore": "/build/\n*_pb2.py\n!keep_pb2.py\ndata/**/raw.py\n",
            "a_pb2.py": "",
            "keep_pb2.py": "",
            "build/x.py": "",
            "sub/build/x.py": "",
            "data/one/raw.py": "",
            "data/one/clean.py": "",
            "sub/.gitignore": "local.py\n!a_pb2.py\n",
            "sub/local.py": "",
            "sub/a_pb2.py": "",
            "local.py": "",
        }
    )
    assert found() == ["./data/one/clean.py", "./keep_pb2.py", "./local.py", "./sub/a_pb2.py", "./sub/build/x.py"]
    os.chdir(folder / "sub")
    assert found() == ["./a_pb2.py", "./build/x.py"]


def test_what_keeps_all_folders_lets_files_in_them_be_kept(project: Maker) -> None:
    project({".gitignore": "*\n!*/\n!*.py\n", "a/b/x.py": "", "a/y.ipynb": "", "z.py": ""})
    assert found() == ["./a/b/x.py", "./z.py"]


def test_a_line_of_a_gitignore_that_is_no_pattern_matches_nothing(project: Maker) -> None:
    project({".gitignore": "!\n[z-a].py\n[\na\\\nb.py\n", "a.py": "", "b.py": "", "z.py": "", "[": ""})
    assert found() == ["./a.py", "./z.py"]


def test_globs_full_of_stars_take_no_time(project: Maker) -> None:
    """Each star was tried at each letter, and each ``**`` at each folder, with all the ways of those before."""
    stars, folders, deep = "*a" * 12 + "b", "**/*a*/" * 12 + "b", "a/" * 60
    settings = (
        f'extend-exclude = ["{stars}"]\nentry-points = ["{stars}"]\nper-file-ignores = {{ "{folders}" = ["TRL101"] }}\n'
    )
    project({"torchrepro-lint.toml": settings, ".gitignore": f"{stars}\n{folders}\n", f"{deep}{'a' * 80}.py": ""})
    assert found() == [f"./{deep}{'a' * 80}.py"]
    fits = glob_matcher([stars, folders, f"!{stars}"])
    assert not fits(f"{deep}{'a' * 80}.py")
    assert fits(f"{deep}b")


def test_gitignore_above_the_project_counts_up_to_the_repository(project: Maker) -> None:
    folder = project(
        {".gitignore": "*.py\n", "repo/.gitignore": "a.py\n", "repo/p/pyproject.toml": "", "repo/p/a.py": ""}
    )
    (folder / "repo/.git/info").mkdir(parents=True)
    (folder / "repo/.git/info/exclude").write_text("c.py\n", encoding="utf-8")
    for name in ("b.py", "c.py"):
        (folder / "repo/p" / name).touch()
    assert found("repo/p") == ["repo/p/b.py"]


def test_exclude_and_extend_exclude(project: Maker) -> None:
    settings = '[tool.torchrepro-lint]\nexclude = ["vendor", "src/gen/*.py"]\nextend-exclude = ["*_old.py"]\n'
    project(
        {
            "pyproject.toml": settings,
            "a/vendor/x.py": "",
            "src/gen/y.py": "",
            "z_old.py": "",
            "venv/v.py": "",
            "k.py": "",
        }
    )
    assert found() == ["./k.py", "./venv/v.py"]


def test_a_given_file_is_linted_unless_exclusion_is_forced(project: Maker) -> None:
    project({"venv/x.py": "", "script": "", "a.py": ""})
    assert found("venv/x.py", "script") == ["script", "venv/x.py"]
    assert found("venv") == ["venv/x.py"]
    assert found("venv/x.py", "a.py", force_exclude=True) == ["a.py"]


def test_a_file_given_twice_is_reported_once(project: Maker) -> None:
    project({"a.py": ""})
    assert found("a.py", ".", "./a.py") == ["a.py"]


def test_a_missing_path_is_an_error_and_the_others_go_on(project: Maker) -> None:
    project({"a.py": ""})
    planned = plan(("nowhere", "a.py"), ConfigOptions())
    assert planned.errors == ("nowhere: no such file or directory",)
    assert given(planned) == ["a.py"]


def test_loops_of_links_and_odd_files_are_safe(project: Maker) -> None:
    folder = project({"a/b.py": ""})
    (folder / "a/loop").symlink_to(folder)
    (folder / "self.py").symlink_to(folder / "self.py")
    (folder / "gone.py").symlink_to(folder / "nowhere")
    (folder / "linked.py").symlink_to(folder / "a/b.py")
    (folder / "folder.py").mkdir()
    os.mkfifo(folder / "pipe.py")
    assert found() == ["./a/b.py", "./linked.py"]


def test_a_name_that_is_not_utf8(project: Maker) -> None:
    folder = project({})
    name = b"caf\xe9.py"
    try:
        with open(os.path.join(os.fsencode(folder), name), "wb"):
            pass
    except OSError:
        pytest.skip("the file system takes UTF-8 only")
    assert [os.fsencode(path) for path in found()] == [b"./" + name]


@pytest.mark.parametrize(
    ("files", "root", "decided_by"),
    [
        ({"p/pyproject.toml": "[tool.torchrepro-lint]\n", "p/q/pyproject.toml": ""}, "p", "pyproject.toml"),
        ({"p/torchrepro-lint.toml": "", "p/q/pyproject.toml": ""}, "p", "torchrepro-lint.toml"),
        ({"pyproject.toml": "", "p/q/pyproject.toml": ""}, "p/q", "pyproject.toml"),
        ({"p/pyproject.toml": "", "p/q/.git/HEAD": ""}, "p", "pyproject.toml"),
        ({"p/.git/HEAD": ""}, "p", ".git"),
        ({"p/.hg/store": ""}, "p", ".hg"),
        ({"setup.py": "", "p/setup.py": ""}, "p", "setup.py"),
        ({"p/setup.cfg": "", "p/requirements.txt": ""}, "p", "setup.cfg"),
        ({"p/requirements-dev.txt": "", "p/requirements-all.txt": ""}, "p", "requirements-all.txt"),
        ({"setup.py": "", "p/q/requirements.txt": ""}, "", "setup.py"),
        ({"setup.py": "", "p/__init__.py": "", "p/q/setup.py": ""}, "", "setup.py"),
        ({"setup.py": "", "PKG-INFO": "", "p/q/setup.py": ""}, "", "setup.py"),
        ({"a.py": "", "PKG-INFO": "", "p/q/requirements.txt": ""}, "", "PKG-INFO"),
        ({".git/HEAD": "", "train.py": "", "p/PKG-INFO": "", "p/setup.py": ""}, "p", "setup.py"),
        ({}, "", "the working directory"),
    ],
)
def test_the_root(project: Maker, files: dict[str, str], root: str, decided_by: str) -> None:
    folder = project({**files, "p/q/r/a.py": ""})
    (tree,) = plan(("p/q/r/a.py",), ConfigOptions()).trees
    assert (tree.root.path, tree.root.decided_by) == (str(folder / root), decided_by)


@pytest.mark.parametrize(
    ("files", "root"),
    [
        ({"ops/setup.py": "", "train.py": ""}, ""),
        ({"ops/setup.py": "", "setup.cfg": "[flake8]"}, ""),
        ({"ops/setup.py": "", "requirements.txt": ""}, ""),
        ({"ops/requirements.txt": "", "demo.ipynb": ""}, ""),
        ({"ops/setup.py": "", "README.md": "", "tools/run.py": ""}, "ops"),
        ({"ops/requirements.txt": "", "ops/inner/setup.py": ""}, "ops"),
    ],
)
def test_a_folder_of_a_repository_is_a_project_if_nothing_above_it_is(
    project: Maker, files: dict[str, str], root: str
) -> None:
    """Else a CUDA extension or an example would be cut off from the code that it imports."""
    folder = project({**files, ".git/HEAD": "", "ops/inner/a.py": ""})
    (tree,) = plan(("ops/inner/a.py",), ConfigOptions()).trees
    assert tree.root.path == str(folder / root)


@pytest.mark.parametrize("marker", [".git/HEAD", "pyproject.toml", "setup.py", "requirements.txt"])
@pytest.mark.parametrize("shared", ["HOME", "TMPDIR"])
def test_a_home_directory_is_marked_by_our_settings_only(
    project: Maker, monkeypatch: pytest.MonkeyPatch, shared: str, marker: str
) -> None:
    folder = project({marker: "", "pkg-1.0/setup.py": "", "pkg-1.0/a.py": "", "scratch/b.py": ""})
    monkeypatch.setenv(shared, str(folder))
    assert [tree.root.path for tree in plan(("pkg-1.0/a.py",), ConfigOptions()).trees] == [str(folder / "pkg-1.0")]
    monkeypatch.chdir(folder / "scratch")
    assert [tree.root.path for tree in plan(("b.py",), ConfigOptions()).trees] == [str(folder / "scratch")]


PACKAGE = {"p/a/__init__.py": "", "p/a/b/__init__.py": "", "p/a/b/c.py": "", "p/a/d/e.py": "", "p/beside.py": ""}


@pytest.mark.parametrize("path", ["p/a", "p/a/b", "p/a/b/c.py", "p/a/__init__.py"])
@pytest.mark.parametrize("here", ["other", "p/a/b"])
def test_a_file_of_an_unmarked_package_has_the_project_of_the_package(
    project: Maker, monkeypatch: pytest.MonkeyPatch, path: str, here: str
) -> None:
    folder = project({**PACKAGE, "other/x.py": ""})
    monkeypatch.chdir(folder / here)
    (tree,) = plan((str(folder / path),), ConfigOptions()).trees
    assert tree.root.path == str(folder / "p")
    assert tree.files == ("a/__init__.py", "a/b/__init__.py", "a/b/c.py", "a/d/e.py")


def test_a_checkout_whose_name_cannot_be_imported_is_no_package(
    project: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = {"owner-name/__init__.py": "", "owner-name/train.py": "", "owner-name/a/__init__.py": "", "other/x.py": ""}
    folder = project(files)
    monkeypatch.chdir(folder / "other")
    for path in ("owner-name", "owner-name/train.py"):
        (tree,) = plan((str(folder / path),), ConfigOptions()).trees
        assert tree.root.path == str(folder / "owner-name")
    (tree,) = plan((str(folder / "owner-name/a"),), ConfigOptions()).trees
    assert tree.root.path == str(folder / "owner-name")


def test_unmarked_paths_belong_to_the_working_directory_that_holds_them(
    project: Maker, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = project({"p/a/x.py": "", "p/b/y.py": "", "z.py": "", "other/x.py": ""})
    (tree,) = plan(("p/a/x.py", "p/b/y.py"), ConfigOptions()).trees
    assert tree.root.path == str(folder)
    monkeypatch.chdir(folder / "other")
    (tree,) = plan(("../p/a/x.py", "../p/b/y.py"), ConfigOptions()).trees
    assert (tree.root.path, tree.root.decided_by) == (str(folder / "p"), "the common parent of the given paths")


def test_a_marked_directory_around_a_package_is_linked_as_a_whole(project: Maker) -> None:
    project({**PACKAGE, "p/pyproject.toml": ""})
    (tree,) = plan(("p/a/b/c.py",), ConfigOptions()).trees
    assert "beside.py" in tree.files


def test_unmarked_paths_beside_each_other_share_their_parent(project: Maker, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = project({**PACKAGE, "other/x.py": ""})
    monkeypatch.chdir(folder / "other")
    (tree,) = plan(("../p/a/b", "../p/beside.py"), ConfigOptions()).trees
    assert (tree.root.path, len(tree.files)) == (str(folder / "p"), 5)


def test_the_whole_project_is_linked_whatever_is_given(project: Maker) -> None:
    project({"pyproject.toml": "", "src/a.py": "", "src/b.py": "", "venv/c.py": ""})
    (tree,) = plan(("src/b.py",), ConfigOptions()).trees
    assert tree.files == ("src/a.py", "src/b.py")
    assert [path for path, _ in tree.given] == ["src/b.py"]
    assert source_roots(tree) == ("src", ".")


def test_files_of_several_projects(project: Maker) -> None:
    project(
        {
            "one/pyproject.toml": "",
            "one/a.py": "",
            "two/torchrepro-lint.toml": 'exclude = ["c.py"]\n',
            "two/b.py": "",
            "two/c.py": "",
        }
    )
    planned = plan((".",), ConfigOptions())
    assert [Path(tree.root.path).name for tree in planned.trees] == ["one", "two"]
    assert given(planned) == ["./one/a.py", "./two/b.py"]


def test_config_and_isolated_overrule_what_is_near(project: Maker) -> None:
    folder = project({"torchrepro-lint.toml": 'device = "cpu"\n', "other.toml": 'device = "mps"\n', "a.py": ""})
    devices = [
        plan(("a.py",), options).trees[0].root.settings.device
        for options in (ConfigOptions(), ConfigOptions(config=folder / "other.toml"), ConfigOptions(isolated=True))
    ]
    assert devices == ["cpu", "mps", "auto"]
