// The server of a window: chosen, started, watched and stopped. One at a time, and one for all folders.

import { type ChildProcess, spawn } from "node:child_process";
import { statSync } from "node:fs";
import { homedir } from "node:os";
import {
  type CodeActionContext,
  type Disposable,
  type LogOutputChannel,
  type TextDocument,
  Uri,
  workspace,
} from "vscode";
import {
  CloseAction,
  type CloseHandlerResult,
  ErrorAction,
  LanguageClient,
  type LanguageClientOptions,
  RevealOutputChannelOn,
  State as ClientState,
} from "vscode-languageclient/node";
import { Crashes } from "./crashes";
import { type Candidate, candidates } from "./interpreter";
import { advice, ended, type State } from "./messages";
import { isLeftToFirst } from "./notebooks";
import { choose, lastLine, type Launch, probe } from "./probe";
import type { SelectedInterpreters } from "./python";
import { SECTION, serverSettings, type ServerSettings } from "./settings";

const SELECTOR = [
  { scheme: "file", language: "python" },
  { scheme: "vscode-notebook-cell", language: "python" },
];
const WINDOWS = process.platform === "win32";

/** The settings that the server takes, for a folder, or for files in none. */
export function settingsFor(resource: Uri | null): ServerSettings {
  const section = workspace.getConfiguration(SECTION, resource);
  return serverSettings((name) => section.get(name));
}

/** The server, with its state for whoever shows it. */
export class Server implements Disposable {
  private client: QuietClient | undefined;
  private launched: Launch | undefined;
  private queue: Promise<void> = Promise.resolve();

  constructor(
    /** The folder of the extension; it holds no Python. */
    private readonly folder: string,
    private readonly log: LogOutputChannel,
    private readonly interpreters: Promise<SelectedInterpreters>,
    private readonly show: (state: State) => void,
  ) {}

  /** What runs, or was last chosen to. */
  get launch(): Launch | undefined {
    return this.launched;
  }

  /** Start the server, or another one where another one is chosen now. */
  update(): Promise<void> {
    return this.enqueue(() => this.start(false));
  }

  /** Stop the server and start it again. */
  restart(): Promise<void> {
    return this.enqueue(() => this.start(true));
  }

  dispose(): Promise<void> {
    return this.enqueue(() => this.stop());
  }

  private enqueue(work: () => Promise<void>): Promise<void> {
    this.queue = this.queue.then(work).catch((error: unknown) => this.log.error(String(error)));
    return this.queue;
  }

  private async start(anew: boolean): Promise<void> {
    if (!workspace.getConfiguration(SECTION, null).get("enable", true)) {
      await this.stop();
      this.show({ kind: "off" });
      return;
    }
    const runs = this.client?.state === ClientState.Running;
    if (!runs) {
      this.show({ kind: "starting" });
    }
    const answer = await choose(await this.candidates(), (each) => probe(each, this.folder));
    if ("problem" in answer) {
      await this.stop();
      const told = advice(answer.problem, WINDOWS);
      this.log.warn(told.command ? `${told.text} ${told.command}` : told.text);
      this.show({ kind: "failed", advice: told });
    } else if (anew || !runs || !isSame(answer.launch, this.launched)) {
      await this.stop();
      await this.run(answer.launch);
    }
  }

  private async candidates(): Promise<Candidate[]> {
    const interpreters = await this.interpreters;
    const section = workspace.getConfiguration(SECTION, null);
    return candidates({
      interpreter: section.get("interpreter", ""),
      path: section.get("path", ""),
      selected: await interpreters.paths(),
      folders: workspace.workspaceFolders?.map((each) => each.uri.fsPath) ?? [],
      home: homedir(),
      PATH: process.env.PATH ?? "",
      windows: WINDOWS,
      isFile: (path) => statSync(path, { throwIfNoEntry: false })?.isFile() === true,
    });
  }

  private async run(launch: Launch): Promise<void> {
    this.launched = launch;
    this.show({ kind: "starting", launch });
    this.log.info(`Starting ${[launch.command, ...launch.args, "server"].join(" ")}`);
    const watch = new Watch(launch, this.show);
    const client = new QuietClient(SECTION, SECTION, () => watch.spawn(this.folder), this.options(watch));
    this.client = client;
    client.onDidChangeState(({ newState }) => watch.changed(newState));
    try {
      await client.start();
    } catch (error) {
      watch.failed(String(error));
    }
  }

  private options(watch: Watch): LanguageClientOptions {
    return {
      documentSelector: SELECTOR,
      diagnosticCollectionName: SECTION,
      outputChannel: this.log,
      revealOutputChannelOn: RevealOutputChannelOn.Never,
      initializationOptions: () => settingsFor(null),
      initializationFailedHandler: () => false,
      errorHandler: { error: () => ({ action: ErrorAction.Continue, handled: true }), closed: () => watch.closed() },
      middleware: {
        provideCodeActions: (document, range, context, token, next) =>
          isOtherCell(document, context) ? [] : next(document, range, context, token),
        workspace: {
          // The section has settings that the server does not know; it would complain of them.
          configuration: (params, token, next) =>
            params.items.every((each) => each.section === SECTION)
              ? params.items.map(({ scopeUri }) => settingsFor(scopeUri === undefined ? null : Uri.parse(scopeUri)))
              : next(params, token),
        },
      },
    };
  }

  private async stop(): Promise<void> {
    const { client } = this;
    this.client = this.launched = undefined;
    try {
      if (client?.state === ClientState.Starting) {
        await client.start(); // after a crash; only a client that runs can be stopped
      }
      if (client?.needsStop() === true) {
        await client.dispose();
      }
    } catch (error) {
      this.log.warn(`The server did not stop: ${String(error)}`);
    }
  }
}

/** A client that writes its errors to the log alone: what the user has to know, the status says. */
class QuietClient extends LanguageClient {
  override error(message: string, data?: unknown): void {
    super.error(message, data, false);
  }
}

function isOtherCell(document: TextDocument, context: CodeActionContext): boolean {
  const all = workspace.notebookDocuments.map((each) => each.getCells().map((cell) => cell.document));
  const cells = all.find((each) => each.includes(document)) ?? [];
  return cells.length > 0 && isLeftToFirst(context.only?.value, document, cells);
}

function isSame(launch: Launch, other: Launch | undefined): boolean {
  return launch.command === other?.command && launch.version === other.version;
}

/** Watches the processes of one client: what they write to standard error, and whether they end too often. */
class Watch {
  private stderr = "";
  private hadStarted = false;
  private readonly crashes = new Crashes();

  constructor(
    private readonly launch: Launch,
    private readonly show: (state: State) => void,
  ) {}

  spawn(folder: string): Promise<ChildProcess> {
    const { command, args } = this.launch;
    const started = spawn(command, [...args, "server"], { cwd: folder });
    this.stderr = "";
    started.stderr.on("data", (chunk: Buffer) => {
      this.stderr = (this.stderr + chunk.toString()).slice(-2000);
    });
    return new Promise((resolve, reject) => {
      started.once("spawn", () => resolve(started));
      started.once("error", reject);
    });
  }

  changed(state: ClientState): void {
    if (state === ClientState.Running) {
      this.hadStarted = true;
      this.show({ kind: "running", launch: this.launch });
    } else if (state === ClientState.Starting) {
      this.show({ kind: "starting", launch: this.launch });
    }
  }

  closed(): CloseHandlerResult {
    if (this.crashes.restartAfter(Date.now(), this.hadStarted)) {
      return { action: CloseAction.Restart, handled: true };
    }
    if (this.hadStarted) {
      this.failed(); // else it is the start that fails
    }
    return { action: CloseAction.DoNotRestart, handled: true };
  }

  failed(detail = ""): void {
    const told = ended(this.launch, lastLine(this.stderr) || detail, this.crashes.count);
    this.show({ kind: "failed", advice: told, launch: this.launch });
  }
}
