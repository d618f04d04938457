// What the user reads: the state of the server, and what to do where there is none.

import type { Candidate } from "./interpreter";
import type { Launch, Problem } from "./probe";

/** The state of the server. */
export type State =
  | { readonly kind: "off" }
  | { readonly kind: "starting"; readonly launch?: Launch }
  | { readonly kind: "running"; readonly launch: Launch }
  | { readonly kind: "failed"; readonly advice: Advice; readonly launch?: Launch };

/** A message, and what helps: a command for a terminal, and another interpreter or other settings. */
export interface Advice {
  readonly text: string;
  readonly command?: string;
  readonly change: "interpreter" | "settings";
}

/** A state as the status bar shows it. */
export interface View {
  readonly text: string;
  readonly lines: readonly string[];
  readonly severity: "normal" | "warning";
}

const NAME = "torchrepro-lint";
// No package index has the tool yet, so it is installed from its repository.
const REQUIREMENT = "torchrepro-lint[lsp] @ git+https://github.com/torchrepro/torchrepro-lint";

/** How the status bar shows a state. */
export function view(state: State): View {
  switch (state.kind) {
    case "off":
      return { text: `$(circle-slash) ${NAME}`, lines: ["Turned off in the settings."], severity: "normal" };
    case "starting":
      return {
        text: `$(loading~spin) ${NAME}`,
        lines: ["The server is starting.", ...launchLines(state.launch)],
        severity: "normal",
      };
    case "running":
      return {
        text: `$(check) ${NAME}`,
        lines: [`Version ${state.launch.version} is running.`, ...launchLines(state.launch)],
        severity: "normal",
      };
    case "failed":
      return {
        text: `$(warning) ${NAME}`,
        lines: [state.advice.text, ...(state.advice.command ? [state.advice.command] : []), ...launchLines(state.launch)],
        severity: "warning",
      };
  }
}

function launchLines(launch: Launch | undefined): string[] {
  if (launch === undefined) {
    return [];
  }
  const program = launch.python === undefined ? "Program" : `Python ${launch.python}`;
  return [`${program}: ${launch.command} (${origin(launch.candidate)})`];
}

function origin(candidate: Candidate): string {
  switch (candidate.origin) {
    case "setting":
      return "from the settings";
    case "selected":
      return "the selected interpreter";
    case "workspace":
      return "of the workspace";
    case "PATH":
      return "found on PATH";
  }
}

/** What to tell a user for whom no server could be started. */
export function advice(problem: Problem, windows: boolean): Advice {
  if (problem.kind === "nothing") {
    return {
      text:
        "torchrepro-lint was not found: no Python interpreter is selected, the workspace has no .venv, and PATH has no" +
        " torchrepro-lint. Select an interpreter, or name one in the setting torchrepro-lint.interpreter.",
      change: "interpreter",
    };
  }
  const { path } = problem.candidate;
  const change = changeOf(problem.candidate);
  switch (problem.kind) {
    case "tool missing":
      return {
        text: `torchrepro-lint is not installed in the environment of ${path}. Install it there and restart the server:`,
        command: pip(path, REQUIREMENT, windows),
        change,
      };
    case "extra missing":
      return {
        text:
          `torchrepro-lint is installed in the environment of ${path}, but not what its language server needs, pygls 2.` +
          " Install it there and restart the server:",
        command: pip(path, "pygls>=2", windows),
        change,
      };
    case "broken":
      return { text: `torchrepro-lint cannot be run by ${path}: ${problem.detail}`, change };
  }
}

/** What to tell a user whose server ended. ``stderr`` is what it wrote last. */
export function ended(launch: Launch, stderr: string, crashes: number): Advice {
  const text =
    crashes > 1
      ? `The server of torchrepro-lint ended ${crashes} times in short order and is not started again. ${stderr}`
      : `The server of torchrepro-lint could not be started from ${launch.command}. ${stderr}`;
  return { text: text.trimEnd(), change: changeOf(launch.candidate) };
}

function changeOf(candidate: Candidate): Advice["change"] {
  return candidate.origin === "setting" ? "settings" : "interpreter";
}

function pip(python: string, requirement: string, windows: boolean): string {
  const quoted = python.includes(" ") ? `${windows ? "& " : ""}"${python}"` : python;
  return `${quoted} -m pip install "${requirement}"`;
}
