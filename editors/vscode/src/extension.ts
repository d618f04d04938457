// The extension: wires the server, its status and the commands to the events of a window.

import { type ExtensionContext, window, workspace } from "vscode";
import { register } from "./commands";
import { SelectedInterpreters } from "./python";
import { Server } from "./server";
import { PROCESS_SETTINGS, SECTION } from "./settings";
import { Status } from "./status";

let server: Server | undefined;

export function activate(context: ExtensionContext): void {
  const log = window.createOutputChannel(SECTION, { log: true });
  const status = new Status(log);
  const interpreters = SelectedInterpreters.connect(log);
  const started = new Server(context.extensionPath, log, interpreters, (state) => status.show(state));
  server = started;
  context.subscriptions.push(
    log,
    status,
    ...register(started, log, context.extensionPath),
    workspace.onDidChangeConfiguration((event) => {
      if (PROCESS_SETTINGS.some((name) => event.affectsConfiguration(`${SECTION}.${name}`))) {
        void started.update();
      }
    }),
    workspace.onDidChangeWorkspaceFolders(() => void started.update()),
  );
  void interpreters.then((each) => context.subscriptions.push(each.onChange(() => void started.update())));
  void started.update();
}

export async function deactivate(): Promise<void> {
  await server?.dispose();
}
