// The real tool, for the tests: TORCHREPRO_LINT_PYTHON names an interpreter that has it, else it is the first on PATH.

import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { TestContext } from "node:test";
import { type Candidate, candidates } from "../src/interpreter";
import { type Launch, probe } from "../src/probe";

export const PYTHON = process.env.TORCHREPRO_LINT_PYTHON ?? "python3";

/** The interpreter as a candidate. */
export function python(interpreter = PYTHON): Candidate {
  const surroundings = { interpreter, path: "", selected: [], folders: [process.cwd()], home: "/" };
  const [found] = candidates({ ...surroundings, PATH: process.env.PATH ?? "", windows: false, isFile: existsSync });
  return found as Candidate;
}

/** How to start the tool. */
export async function launch(): Promise<Launch> {
  const answer = await probe(python(), process.cwd());
  if (!("launch" in answer)) {
    throw new Error(`${PYTHON} has no torchrepro-lint with the extra lsp: ${JSON.stringify(answer.problem)}`);
  }
  return answer.launch;
}

/** A folder that is removed after the test, with some files. */
export function folder(context: TestContext, files: Readonly<Record<string, string>>): string {
  const place = mkdtempSync(join(tmpdir(), "torchrepro-lint-"));
  context.after(() => rmSync(place, { force: true, recursive: true }));
  for (const [name, text] of Object.entries(files)) {
    writeFileSync(join(place, name), text, { mode: 0o755 });
  }
  return place;
}
