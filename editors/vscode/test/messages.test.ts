// What the user reads.

import assert from "node:assert/strict";
import { test } from "node:test";
import type { Candidate } from "../src/interpreter";
import { advice, ended, view } from "../src/messages";
import type { Launch } from "../src/probe";

const candidate: Candidate = { kind: "python", path: "/env/bin/python", origin: "selected" };
const launch: Launch = { command: candidate.path, args: ["-m", "x"], candidate, version: "1.2", python: "3.12.1" };

test("the status says the version and the interpreter", () => {
  const { lines, severity, text } = view({ kind: "running", launch });
  assert.equal(text, "$(check) torchrepro-lint");
  assert.deepEqual(lines, ["Version 1.2 is running.", "Python 3.12.1: /env/bin/python (the selected interpreter)"]);
  assert.equal(severity, "normal");
});

test("a failure is shown as a warning, with its command", () => {
  const told = advice({ kind: "extra missing", candidate, python: "3.12.1" }, false);
  const { lines, severity } = view({ kind: "failed", advice: told });
  assert.deepEqual(lines, [told.text, '/env/bin/python -m pip install "pygls>=2"']);
  assert.equal(severity, "warning");
});

test("the command for a path with spaces runs in the shell of the system", () => {
  const spaced = { ...candidate, path: "C:\\my env\\python.exe" };
  const problem = { kind: "tool missing", candidate: spaced, python: "3.12.1" } as const;
  assert.match(advice(problem, true).command ?? "", /^& "C:\\my env\\python\.exe" -m pip install "torchrepro-lint\[lsp\] @ /);
  assert.match(advice(problem, false).command ?? "", /^"C:\\my env\\python\.exe" -m pip/);
});

test("where a setting names the program, it is the setting to change", () => {
  const set: Candidate = { ...candidate, origin: "setting" };
  assert.equal(advice({ kind: "broken", candidate: set, detail: "gone" }, false).change, "settings");
  assert.equal(advice({ kind: "broken", candidate, detail: "gone" }, false).change, "interpreter");
  assert.equal(advice({ kind: "nothing" }, false).change, "interpreter");
});

test("a server that ended again and again is told from one that did not start", () => {
  assert.match(ended(launch, "MemoryError", 4).text, /ended 4 times .* MemoryError$/);
  assert.match(ended(launch, "", 1).text, /could not be started from \/env\/bin\/python\.$/);
});
