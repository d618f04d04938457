// The bundled extension with the real language client and the real server; VS Code alone is a stand-in.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import Module from "node:module";
import { join } from "node:path";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { folder, PYTHON } from "./tool";
import { stage, Uri, vscode } from "./vscode";

interface Extension {
  activate(context: unknown): void;
  deactivate(): Promise<void>;
}

type Loader = (request: string, ...rest: unknown[]) => unknown;
const loader = Module as unknown as { _load: Loader };
const load = loader._load;
loader._load = (request, ...rest) => (request === "vscode" ? vscode : load(request, ...rest));

/** Wait until something that is shown changes to what is wanted. */
function until(wanted: () => boolean): Promise<void> {
  return new Promise((resolve) => {
    const look = () => {
      if (wanted()) {
        watch.dispose();
        resolve();
      }
    };
    const watch = stage.changed.event(look);
    look();
  });
}

const item = (icon: string) => `$(${icon}) torchrepro-lint`;
const shows = (icon: string) => stage.status.at(-1) === item(icon);

test("it starts, reports, starts again after a crash, and says why it cannot", { timeout: 120_000 }, async (context) => {
  const place = folder(context, {
    "train.py": "import torch\n\ntorch.manual_seed(0)\ntorch.backends.cudnn.benchmark = True\n",
    // Leaves its number behind, so that the test can end the server.
    "python": `#!/bin/sh\ncase "$*" in *server*) echo $$ >"$(dirname "$0")/pid";; esac\nexec '${PYTHON}' "$@"\n`,
  });
  const train = join(place, "train.py");
  stage.folders.push({ uri: Uri.file(place), name: "project", index: 0 });
  stage.open(train, readFileSync(train, "utf8"));
  stage.settings["torchrepro-lint.interpreter"] = join(place, "python");
  stage.settings["torchrepro-lint.delay"] = 0;
  const extension = load(join(process.cwd(), "dist", "extension.js")) as Extension;
  const found = () => stage.diagnostics.get(pathToFileURL(train).href)?.map((each) => each.code.value);

  context.after(() => extension.deactivate());
  extension.activate({ extensionPath: process.cwd(), subscriptions: [] });
  await until(() => shows("check") && found() !== undefined);
  assert.deepEqual(new Set(stage.status), new Set(["loading~spin", "check"].map(item)));
  assert.deepEqual(found(), ["TRL201"]);

  const first = Number(readFileSync(join(place, "pid"), "utf8"));
  stage.status.length = 0;
  stage.diagnostics.clear();
  process.kill(first, "SIGKILL");
  await until(() => shows("check") && found() !== undefined);
  assert.notEqual(Number(readFileSync(join(place, "pid"), "utf8")), first);

  stage.set("torchrepro-lint.interpreter", join(place, "missing"));
  await until(() => shows("warning") && stage.warnings.length > 0);
  assert.deepEqual(stage.warnings, [`torchrepro-lint cannot be run by ${join(place, "missing")}: there is no such file`]);

  stage.set("torchrepro-lint.enable", false);
  await until(() => shows("circle-slash"));
  await extension.deactivate();
  assert.deepEqual(stage.errors, []);
});
