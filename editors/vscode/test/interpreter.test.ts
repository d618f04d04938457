// The order in which programs are tried.

import assert from "node:assert/strict";
import { test } from "node:test";
import { candidates, type Surroundings } from "../src/interpreter";

function around(given: Partial<Surroundings>, files: readonly string[] = []): Surroundings {
  const nothing = { interpreter: "", path: "", selected: [], folders: ["/one", "/two"], home: "/home/me", PATH: "" };
  return { ...nothing, windows: false, isFile: (path) => files.includes(path), ...given };
}

test("the selected interpreter comes first, then the environments of the folders, then PATH", () => {
  const where = around({ selected: ["/envs/a/bin/python"], PATH: "relative:/usr/bin:/opt/bin" }, [
    "/two/.venv/bin/python",
    "/one/venv/bin/python",
    "/opt/bin/torchrepro-lint",
    "relative/torchrepro-lint",
  ]);
  assert.deepEqual(candidates(where), [
    { kind: "python", path: "/envs/a/bin/python", origin: "selected" },
    { kind: "python", path: "/one/venv/bin/python", origin: "workspace" },
    { kind: "python", path: "/two/.venv/bin/python", origin: "workspace" },
    { kind: "program", path: "/opt/bin/torchrepro-lint", origin: "PATH" },
  ]);
});

test("an interpreter that two folders share is tried once", () => {
  const where = around({ selected: ["/one/.venv/bin/python", "/one/.venv/bin/python"] }, ["/one/.venv/bin/python"]);
  assert.deepEqual(candidates(where), [{ kind: "python", path: "/one/.venv/bin/python", origin: "selected" }]);
});

test("a setting excludes everything else, and the interpreter comes before the program", () => {
  const rest = { selected: ["/envs/a/bin/python"] };
  assert.deepEqual(candidates(around({ ...rest, path: "/opt/lint" })), [
    { kind: "program", path: "/opt/lint", origin: "setting" },
  ]);
  assert.deepEqual(candidates(around({ ...rest, path: "/opt/lint", interpreter: "/opt/python" })), [
    { kind: "python", path: "/opt/python", origin: "setting" },
  ]);
});

test("a setting may be relative, begin with ~, have a variable, or be a name on PATH", () => {
  const at = (interpreter: string) =>
    candidates(around({ interpreter, PATH: "/usr/bin" }, ["/usr/bin/python3.12"])).map((each) => each.path);
  assert.deepEqual(at("env/bin/python"), ["/one/env/bin/python"]);
  assert.deepEqual(at("~/env/bin/python"), ["/home/me/env/bin/python"]);
  assert.deepEqual(at("${workspaceFolder}/env/bin/python"), ["/one/env/bin/python"]);
  assert.deepEqual(at("python3.12"), ["/usr/bin/python3.12"]);
  assert.deepEqual(at("~odd"), ["/one/~odd"]);
});

test("without a folder, relative settings count from the home directory", () => {
  const where = around({ folders: [], interpreter: "env/bin/python" });
  assert.deepEqual(candidates(where), [{ kind: "python", path: "/home/me/env/bin/python", origin: "setting" }]);
});

test("on Windows, programs end in .exe and environments have Scripts", () => {
  const files = ["C:\\work\\.venv\\Scripts\\python.exe", "C:\\tools\\torchrepro-lint.exe"];
  const where = around({ windows: true, folders: ["C:\\work"], PATH: "C:\\other;C:\\tools" }, files);
  assert.deepEqual(
    candidates(where).map((each) => each.path),
    files,
  );
});
