// What is sent to the server, and that package.json declares what the code reads.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { PROCESS_SETTINGS, reportCommand, SECTION, SERVER_SETTINGS, serverSettings, TRACE_SETTING } from "../src/settings";

interface Manifest {
  readonly contributes: {
    readonly configuration: { readonly properties: Record<string, { readonly default: unknown; readonly order: number }> };
  };
}

const manifest = JSON.parse(readFileSync("package.json", "utf8")) as Manifest;
const { properties } = manifest.contributes.configuration;

test("package.json declares the settings that the code reads, in order", () => {
  const known = [...PROCESS_SETTINGS, ...SERVER_SETTINGS, TRACE_SETTING].map((name) => `${SECTION}.${name}`);
  assert.deepEqual(Object.keys(properties), known);
  assert.deepEqual(
    Object.values(properties).map((each) => each.order),
    known.map((_, i) => i),
  );
});

test("the defaults send nothing that overrides the settings of a project", () => {
  const defaults = serverSettings((name) => properties[`${SECTION}.${name}`]?.default);
  assert.deepEqual(defaults, { isolated: false, delay: 200 });
});

test("what the user has set is sent, and nothing that is not the server's", () => {
  const values: Record<string, unknown> = { select: ["TRL3"], minSeverity: "error", interpreter: "python", delay: 0 };
  assert.deepEqual(
    serverSettings((name) => values[name]),
    { select: ["TRL3"], minSeverity: "error", delay: 0 },
  );
});

test("a report is written with the settings of the editor", () => {
  const settings = { select: ["TRL1", "TRL2"], torchVersion: "2.6", config: "own.toml", isolated: true };
  assert.deepEqual(reportCommand("/project", settings, "/tmp/report.html").slice(6), [
    ...["--select", "TRL1,TRL2", "--torch-version", "2.6", "--config", "/project/own.toml"],
  ]);
  assert.deepEqual(reportCommand("/project", { isolated: true, delay: 5 }, "out").slice(4), [
    "--exit-zero",
    "--quiet",
    "--isolated",
  ]);
});
