// Which program could be the server: candidates in the order in which they are tried; without a word of VS Code's API.

import * as path from "node:path";

/** Where a candidate comes from; one from a setting is the only one. */
export type Origin = "setting" | "selected" | "workspace" | "PATH";

/** A Python interpreter that may have the package, or the program that the package installs. */
export interface Candidate {
  readonly kind: "python" | "program";
  readonly path: string;
  readonly origin: Origin;
}

/** What decides the candidates. */
export interface Surroundings {
  /** The settings of the same names, empty where not set. */
  readonly interpreter: string;
  readonly path: string;
  /** The interpreters that the Python extension has selected, by folder. */
  readonly selected: readonly string[];
  readonly folders: readonly string[];
  readonly home: string;
  /** The environment variable. */
  readonly PATH: string;
  readonly windows: boolean;
  readonly isFile: (path: string) => boolean;
}

const PROGRAM = "torchrepro-lint";
const ENVIRONMENTS = [".venv", "venv"];

/** The candidates, the best one first. */
export function candidates(where: Surroundings): Candidate[] {
  if (where.interpreter) {
    return [{ kind: "python", path: named(where.interpreter, where), origin: "setting" }];
  }
  if (where.path) {
    return [{ kind: "program", path: named(where.path, where), origin: "setting" }];
  }
  const found: Candidate[] = [];
  for (const each of where.selected) {
    found.push({ kind: "python", path: each, origin: "selected" });
  }
  for (const each of environments(where)) {
    found.push({ kind: "python", path: each, origin: "workspace" });
  }
  const program = onPath(PROGRAM, where);
  if (program !== undefined) {
    found.push({ kind: "program", path: program, origin: "PATH" });
  }
  return found.filter((each, i) => found.findIndex((other) => other.path === each.path) === i);
}

/** The path that a setting means: with variables replaced, from the first folder on, or from PATH where it is a bare name. */
function named(text: string, where: Surroundings): string {
  const { join, resolve } = paths(where);
  const folder = where.folders[0] ?? where.home;
  const filled = text.trim().replace(/^~(?=$|[\\/])/, where.home).replaceAll("${workspaceFolder}", folder);
  if (!/[\\/]/.test(filled)) {
    return onPath(filled, where) ?? join(folder, filled);
  }
  return resolve(folder, filled);
}

function environments(where: Surroundings): string[] {
  const { join } = paths(where);
  const inside = where.windows ? ["Scripts", "python.exe"] : ["bin", "python"];
  return where.folders
    .flatMap((folder) => ENVIRONMENTS.map((name) => join(folder, name, ...inside)))
    .filter(where.isFile);
}

function onPath(name: string, where: Surroundings): string | undefined {
  const { delimiter, isAbsolute, join } = paths(where);
  const file = where.windows && !name.toLowerCase().endsWith(".exe") ? `${name}.exe` : name;
  // A relative entry would depend on the folder in which the editor was started.
  const folders = where.PATH.split(delimiter).filter((each) => isAbsolute(each));
  return folders.map((folder) => join(folder, file)).find(where.isFile);
}

function paths(where: Surroundings): path.PlatformPath {
  return where.windows ? path.win32 : path.posix;
}
