// The settings of the extension: what goes to the server, and in which form; without a word of VS Code's API.

import { resolve } from "node:path";

export const SECTION = "torchrepro-lint";

/** The settings that the server takes, by the names that it knows. */
export const SERVER_SETTINGS = [
  "select",
  "extendSelect",
  "ignore",
  "minSeverity",
  "torchVersion",
  "device",
  "config",
  "isolated",
  "delay",
] as const;

/** The settings that decide which process is started. */
export const PROCESS_SETTINGS = ["enable", "interpreter", "path"] as const;

/** The setting that the language client itself reads. */
export const TRACE_SETTING = "trace.server";

export type ServerSettings = Readonly<Partial<Record<(typeof SERVER_SETTINGS)[number], unknown>>>;

/** What to send to the server: only its own settings, and of these only what the user has set. */
export function serverSettings(read: (name: string) => unknown): ServerSettings {
  const found = SERVER_SETTINGS.map((name) => [name, read(name)] as const);
  return Object.fromEntries(found.filter(([, value]) => !isUnset(value)));
}

// In the settings editor an empty text or list cannot be told from one that was never touched.
function isUnset(value: unknown): boolean {
  return value === undefined || value === null || value === "" || (Array.isArray(value) && value.length === 0);
}

const OPTIONS: readonly (readonly [keyof ServerSettings, string])[] = [
  ["select", "--select"],
  ["extendSelect", "--extend-select"],
  ["ignore", "--ignore"],
  ["minSeverity", "--min-severity"],
  ["torchVersion", "--torch-version"],
  ["device", "--device"],
];

/** The command that writes the report of a folder to a file, with the same settings: it says what the editor says. */
export function reportCommand(folder: string, settings: ServerSettings, file: string): string[] {
  const given = OPTIONS.flatMap(([name, option]) => {
    const value = settings[name];
    return value === undefined ? [] : [option, Array.isArray(value) ? value.join(",") : String(value)];
  });
  const base = ["report", folder, "--output", file, "--exit-zero", "--quiet", ...given];
  if (settings.config !== undefined) {
    return [...base, "--config", resolve(folder, String(settings.config))];
  }
  return settings.isolated === true ? [...base, "--isolated"] : base;
}
