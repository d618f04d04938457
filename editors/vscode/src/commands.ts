// The commands of the palette.

import {
  type CodeAction,
  commands,
  type Diagnostic,
  type Disposable,
  env,
  languages,
  type LogOutputChannel,
  type QuickPickItem,
  Range,
  type Uri,
  window,
  workspace,
} from "vscode";
import { representative } from "./notebooks";
import { showReport } from "./report";
import type { Server } from "./server";
import { SECTION } from "./settings";

/** Register the commands. */
export function register(server: Server, log: LogOutputChannel, folder: string): Disposable[] {
  const all: Readonly<Record<string, () => unknown>> = {
    restart: () => server.restart(),
    showLog: () => log.show(),
    fixAll,
    openRule,
    showReport: () => showReport(server, log, folder),
    showMenu,
  };
  return Object.entries(all).map(([name, run]) => commands.registerCommand(`${SECTION}.${name}`, run));
}

/** Apply the fixes of the file or notebook that is being edited. */
async function fixAll(): Promise<void> {
  const notebook = window.activeNotebookEditor?.notebook;
  const document = notebook
    ? representative(notebook.getCells().map((cell) => cell.document))
    : window.activeTextEditor?.document;
  if (document === undefined) {
    return;
  }
  const whole = new Range(0, 0, document.lineCount, 0);
  const kind = `source.fixAll.${SECTION}`;
  const found = await commands.executeCommand<CodeAction[]>("vscode.executeCodeActionProvider", document.uri, whole, kind, 1);
  const edit = found[0]?.edit;
  if (edit === undefined) {
    void window.showInformationMessage(`${SECTION} has no safe fixes for this file.`);
  } else {
    await workspace.applyEdit(edit);
  }
}

interface RulePick extends QuickPickItem {
  readonly page: Uri;
}

/** Open the page of the rule that is reported at the cursor; else let the user choose among those of the file. */
async function openRule(): Promise<void> {
  const editor = window.activeTextEditor;
  if (editor === undefined) {
    return;
  }
  const found = languages.getDiagnostics(editor.document.uri).filter((each) => each.source === SECTION);
  const here = rules(found.filter((each) => each.range.contains(editor.selection.active)));
  const choices = here.length > 0 ? here : rules(found);
  if (choices.length === 0) {
    void window.showInformationMessage(`${SECTION} reports nothing in this file.`);
    return;
  }
  const placeHolder = "The rule whose page to open";
  const chosen = here.length === 1 ? here[0] : await window.showQuickPick(choices, { placeHolder });
  if (chosen !== undefined) {
    await env.openExternal(chosen.page);
  }
}

function rules(found: readonly Diagnostic[]): RulePick[] {
  const byCode = new Map<string, RulePick>();
  for (const { code, message } of found) {
    if (typeof code === "object" && !byCode.has(String(code.value))) {
      byCode.set(String(code.value), { label: String(code.value), detail: message, page: code.target });
    }
  }
  return [...byCode.values()].sort((one, other) => one.label.localeCompare(other.label));
}

async function showMenu(): Promise<void> {
  const choices = [
    { label: "$(debug-restart) Restart the server", run: `${SECTION}.restart` },
    { label: "$(output) Show the log", run: `${SECTION}.showLog` },
    { label: "$(graph) Show the report of the project", run: `${SECTION}.showReport` },
    { label: "$(gear) Open the settings", run: "workbench.action.openSettings", argument: `${SECTION}.` },
  ];
  const chosen = await window.showQuickPick(choices, { title: SECTION });
  if (chosen !== undefined) {
    await commands.executeCommand(chosen.run, chosen.argument);
  }
}
