// Candidates are asked by running them: real interpreters, and scripts that stand in for broken ones.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import type { Candidate } from "../src/interpreter";
import { type Answer, choose, probe, run } from "../src/probe";
import { reportCommand } from "../src/settings";
import { folder, launch, python } from "./tool";

const HERE = process.cwd();

test("an interpreter that has the tool can be the server", async () => {
  const found = await launch();
  assert.deepEqual(found.args, ["-m", "torchrepro_lint"]);
  assert.match(found.version, /^\d+\.\d+/);
  assert.match(found.python ?? "", /^3\.\d+\.\d+$/);
});

test("an interpreter without the tool, or without pygls, is told apart", async (context) => {
  const bare = folder(context, {
    "bare": `#!/bin/sh\nexec '${python().path}' -I -S "$@"\n`,
    "half": `#!/bin/sh\nPYTHONPATH="$(dirname "$0")" exec '${python().path}' -S "$@"\n`,
    "torchrepro_lint.py": "__version__ = '9'\n",
  });
  const kinds: string[] = [];
  for (const name of ["bare", "half"]) {
    const answer = await probe({ kind: "python", path: join(bare, name), origin: "selected" }, HERE);
    kinds.push("problem" in answer ? answer.problem.kind : "none");
  }
  assert.deepEqual(kinds, ["tool missing", "extra missing"]);
});

test("a program is asked for its version", async (context) => {
  const place = folder(context, {
    good: "#!/bin/sh\necho torchrepro-lint 1.2\n",
    other: "#!/bin/sh\necho something else\n",
    broken: "#!/bin/sh\necho bad interpreter >&2\nexit 3\n",
  });
  const ask = async (name: string) => {
    const answer = await probe({ kind: "program", path: join(place, name), origin: "PATH" }, HERE);
    return "launch" in answer ? answer.launch.version : answer.problem.kind === "broken" && answer.problem.detail;
  };
  assert.deepEqual(
    [await ask("good"), await ask("other"), await ask("broken"), await ask("missing")],
    ["1.2", "something else", "bad interpreter", "there is no such file"],
  );
});

test("the first that works is chosen, else the one with the least to do", async () => {
  const named = (path: string): Candidate => ({ kind: "python", path, origin: "selected" });
  const asked: string[] = [];
  const answers: Record<string, Answer> = {
    bare: { problem: { kind: "tool missing", candidate: named("bare"), python: "3" } },
    half: { problem: { kind: "extra missing", candidate: named("half"), python: "3" } },
    good: { launch: { command: "good", args: [], candidate: named("good"), version: "1" } },
  };
  const prober = (each: Candidate) => {
    asked.push(each.path);
    return Promise.resolve(answers[each.path] as Answer);
  };
  assert.deepEqual(await choose(["bare", "good", "half"].map(named), prober), answers.good);
  assert.deepEqual(asked, ["bare", "good"]);
  assert.deepEqual(await choose(["bare", "half"].map(named), prober), answers.half);
  assert.deepEqual(await choose([], prober), { problem: { kind: "nothing" } });
});

test("the tool takes the options of a report", async (context) => {
  const place = folder(context, { "train.py": "import torch\n\ntorch.backends.cudnn.benchmark = True\n", "own.toml": "" });
  const settings = {
    select: ["TRL2"],
    extendSelect: ["TRL302"],
    ignore: ["TRL201"],
    minSeverity: "warning",
    torchVersion: "2.6",
    device: "cuda",
    config: "own.toml",
  };
  const { command, args } = await launch();
  const file = join(place, "report.html");
  const page = async (given: Readonly<Record<string, unknown>>) => {
    const ran = await run(command, [...args, ...reportCommand(place, given, file)], HERE);
    assert.equal(ran.error, undefined, ran.stderr);
    return readFileSync(file, "utf8");
  };
  const [own, overridden] = [await page({ isolated: true }), await page(settings)];
  assert.ok(own.includes('data-rule="TRL201"') && !overridden.includes('data-rule="TRL201"'));
  assert.ok(!own.includes("torch 2.6 ") && overridden.includes("torch 2.6 "));
});
