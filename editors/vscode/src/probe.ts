// Asks a candidate, by running it, whether it can be the server; and chooses the first one that can.

import { execFile, type ExecFileException } from "node:child_process";
import type { Candidate } from "./interpreter";

/** A process to start: append "server", or another command. */
export interface Launch {
  readonly command: string;
  readonly args: readonly string[];
  readonly candidate: Candidate;
  /** Of the tool, and of the interpreter where that was asked. */
  readonly version: string;
  readonly python?: string;
}

/** Why there is no server. ``detail`` is what the candidate wrote. */
export type Problem =
  | { readonly kind: "nothing" }
  | { readonly kind: "tool missing" | "extra missing"; readonly candidate: Candidate; readonly python: string }
  | { readonly kind: "broken"; readonly candidate: Candidate; readonly detail: string };

export type Answer = { readonly launch: Launch } | { readonly problem: Problem };

export type Prober = (candidate: Candidate) => Promise<Answer>;

// Runs in any Python from 2.7 on, so that an old one gets an answer and no syntax error.
const QUESTIONS = `
import json, sys
found = {"python": ".".join(map(str, sys.version_info[:3])), "version": None, "server": False}
try:
    import torchrepro_lint
    found["version"] = torchrepro_lint.__version__
    import importlib.util
    found["server"] = importlib.util.find_spec("pygls.lsp.server") is not None
except ImportError:
    pass
print(json.dumps(found))
`;
const TIMEOUT = 60_000;

/** The first candidate that can be the server, else the problem whose remedy is the smallest. */
export async function choose(candidates: readonly Candidate[], probe: Prober): Promise<Answer> {
  const problems: Problem[] = [];
  for (const candidate of candidates) {
    const answer = await probe(candidate);
    if ("launch" in answer) {
      return answer;
    }
    problems.push(answer.problem);
  }
  const nearest = problems.find((each) => each.kind === "extra missing") ?? problems[0] ?? { kind: "nothing" };
  return { problem: nearest };
}

/** Run a candidate in ``folder``, which must hold no Python: the interpreter finds modules there before all others. */
export async function probe(candidate: Candidate, folder: string): Promise<Answer> {
  const args = candidate.kind === "python" ? ["-c", QUESTIONS] : ["--version"];
  const ran = await run(candidate.path, args, folder);
  if (ran.error !== undefined) {
    return { problem: { kind: "broken", candidate, detail: lastLine(ran.stderr) || ran.error } };
  }
  return candidate.kind === "python" ? readPython(candidate, ran.stdout) : readProgram(candidate, ran.stdout);
}

function readPython(candidate: Candidate, output: string): Answer {
  const found = parsed(lastLine(output));
  if (found === undefined) {
    return { problem: { kind: "broken", candidate, detail: lastLine(output) || "it wrote nothing" } };
  }
  const { python, version, server } = found;
  if (version === null || !server) {
    return { problem: { kind: version === null ? "tool missing" : "extra missing", candidate, python } };
  }
  return { launch: { command: candidate.path, args: ["-m", "torchrepro_lint"], candidate, version, python } };
}

function readProgram(candidate: Candidate, output: string): Answer {
  const version = /^torchrepro-lint (\S+)$/m.exec(output)?.[1];
  if (version === undefined) {
    return { problem: { kind: "broken", candidate, detail: lastLine(output) || "it wrote nothing" } };
  }
  return { launch: { command: candidate.path, args: [], candidate, version } };
}

interface Found {
  readonly python: string;
  readonly version: string | null;
  readonly server: boolean;
}

function parsed(line: string): Found | undefined {
  try {
    const found = JSON.parse(line) as Found | null;
    return typeof found?.python === "string" ? found : undefined;
  } catch {
    return undefined;
  }
}

/** The last line of a text that is not blank. */
export function lastLine(text: string): string {
  return text.trimEnd().split(/\r?\n/).at(-1)?.trim() ?? "";
}

/** What a program wrote; ``error`` where it could not be started, took too long or ended with another status than 0. */
export interface Ran {
  readonly stdout: string;
  readonly stderr: string;
  readonly error?: string;
}

/** Run a program to its end. */
export function run(command: string, args: readonly string[], folder: string, signal?: AbortSignal): Promise<Ran> {
  const options = { cwd: folder, maxBuffer: 1 << 26, ...(signal ? { signal } : { timeout: TIMEOUT }) };
  return new Promise((resolve) => {
    execFile(command, [...args], options, (error, stdout, stderr) => {
      resolve({ stdout, stderr, ...(error ? { error: reason(error) } : {}) });
    });
  });
}

function reason(error: ExecFileException): string {
  if (error.killed) {
    return "it took too long";
  }
  return error.code === "ENOENT" ? "there is no such file" : error.message;
}
