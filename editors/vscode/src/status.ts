// The state of the server in the status bar, and as a notification where the user has to do something.

import {
  commands,
  ConfigurationTarget,
  type Disposable,
  env,
  type LogOutputChannel,
  MarkdownString,
  type NotebookEditor,
  StatusBarAlignment,
  ThemeColor,
  type TextEditor,
  window,
  workspace,
} from "vscode";
import { type Advice, type State, view } from "./messages";
import { SECTION } from "./settings";

const SELECT = "Select Interpreter";
const COPY = "Copy Command";
const LOG = "Show Log";
const SETTINGS = "Open Settings";
const OFF = "Turn Off Here";

/** The item in the status bar. It is shown while Python is edited. */
export class Status implements Disposable {
  private readonly item = window.createStatusBarItem(SECTION, StatusBarAlignment.Right, 90);
  private readonly listeners: Disposable[];
  private told = "";

  constructor(private readonly log: LogOutputChannel) {
    this.item.name = SECTION;
    this.item.command = `${SECTION}.showMenu`;
    this.listeners = [
      window.onDidChangeActiveTextEditor(() => this.place()),
      window.onDidChangeActiveNotebookEditor(() => this.place()),
    ];
    this.place();
  }

  /** Show a state. */
  show(state: State): void {
    const shown = view(state);
    this.item.text = shown.text;
    const tooltip = new MarkdownString();
    for (const line of shown.lines) {
      tooltip.appendText(line).appendMarkdown("\n\n");
    }
    this.item.tooltip = tooltip;
    this.item.backgroundColor =
      shown.severity === "warning" ? new ThemeColor("statusBarItem.warningBackground") : undefined;
    if (state.kind === "failed") {
      void this.tell(state.advice);
    } else if (state.kind === "running") {
      this.told = "";
    }
  }

  /** Notify the user; once, until a server has run. */
  private async tell(advice: Advice): Promise<void> {
    const text = advice.command ? `${advice.text} ${advice.command}` : advice.text;
    if (this.told === text) {
      return;
    }
    this.told = text;
    const chosen = await window.showWarningMessage(text, ...(await buttons(advice)));
    if (chosen === COPY) {
      await env.clipboard.writeText(advice.command ?? "");
    } else if (chosen === LOG) {
      this.log.show();
    } else if (chosen === SELECT) {
      await commands.executeCommand("python.setInterpreter");
    } else if (chosen === SETTINGS) {
      await commands.executeCommand("workbench.action.openSettings", `${SECTION}.`);
    } else if (chosen === OFF) {
      await turnOff();
    }
  }

  private place(): void {
    if (isPython(window.activeTextEditor) || isJupyter(window.activeNotebookEditor)) {
      this.item.show();
    } else {
      this.item.hide();
    }
  }

  dispose(): void {
    for (const each of [...this.listeners, this.item]) {
      each.dispose();
    }
  }
}

async function buttons(advice: Advice): Promise<string[]> {
  const known = await commands.getCommands(true);
  const selects = advice.change === "interpreter" && known.includes("python.setInterpreter");
  return [advice.command ? COPY : LOG, selects ? SELECT : SETTINGS, OFF];
}

async function turnOff(): Promise<void> {
  const target = workspace.workspaceFolders ? ConfigurationTarget.Workspace : ConfigurationTarget.Global;
  await workspace.getConfiguration(SECTION, null).update("enable", false, target);
}

function isPython(editor: TextEditor | undefined): boolean {
  return editor?.document.languageId === "python";
}

function isJupyter(editor: NotebookEditor | undefined): boolean {
  return editor?.notebook.notebookType === "jupyter-notebook";
}
