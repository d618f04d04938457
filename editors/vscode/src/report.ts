// The report of a project, as `torchrepro-lint report` writes it, in a tab of the editor.

import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type LogOutputChannel, ProgressLocation, ViewColumn, window, workspace, type WorkspaceFolder } from "vscode";
import { type Launch, lastLine, run } from "./probe";
import { type Server, settingsFor } from "./server";
import { reportCommand, SECTION } from "./settings";

/** Show the report of a workspace folder. */
export async function showReport(server: Server, log: LogOutputChannel, folder: string): Promise<void> {
  const { launch } = server;
  if (launch === undefined) {
    void window.showWarningMessage(`${SECTION} is not running.`);
    return;
  }
  const wanted = await pickFolder();
  if (wanted === undefined) {
    return;
  }
  const location = ProgressLocation.Notification;
  const title = `${SECTION}: writing the report of ${wanted.name}`;
  const page = await window.withProgress({ location, title, cancellable: true }, async (_, token) => {
    const stopped = new AbortController();
    token.onCancellationRequested(() => stopped.abort());
    return write(launch, wanted, folder, stopped.signal);
  });
  if (typeof page === "string") {
    const options = { enableScripts: true, enableFindWidget: true, retainContextWhenHidden: true };
    const panel = window.createWebviewPanel(`${SECTION}.report`, `Report: ${wanted.name}`, ViewColumn.Active, options);
    panel.webview.html = page;
  } else if (page !== undefined) {
    log.error(page.error);
    void window.showErrorMessage(`${SECTION}: the report could not be written: ${page.error}`);
  }
}

async function pickFolder(): Promise<WorkspaceFolder | undefined> {
  const folders = workspace.workspaceFolders ?? [];
  if (folders.length === 0) {
    void window.showInformationMessage(`${SECTION}: open a folder to have a report of it.`);
  }
  return folders.length > 1 ? window.showWorkspaceFolderPick() : folders[0];
}

async function write(
  launch: Launch,
  wanted: WorkspaceFolder,
  folder: string,
  signal: AbortSignal,
): Promise<string | { error: string } | undefined> {
  const place = await mkdtemp(join(tmpdir(), `${SECTION}-`));
  try {
    const file = join(place, "report.html");
    const options = reportCommand(wanted.uri.fsPath, settingsFor(wanted.uri), file);
    const ran = await run(launch.command, [...launch.args, ...options], folder, signal);
    if (signal.aborted) {
      return undefined;
    }
    return ran.error === undefined ? await readFile(file, "utf8") : { error: lastLine(ran.stderr) || ran.error };
  } finally {
    await rm(place, { force: true, recursive: true });
  }
}
