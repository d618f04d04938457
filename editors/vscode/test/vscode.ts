// Stands in for VS Code in tests: it records what the extension shows, and has as much behaviour as the language client needs.
// What is not listed here is an empty class, or a function that returns something to dispose of.

import { EventEmitter as NodeEmitter } from "node:events";
import { fileURLToPath, pathToFileURL } from "node:url";

type Listener = (event: unknown) => void;

class EventEmitter {
  private readonly emitter = new NodeEmitter();
  readonly event = (listener: Listener) => {
    this.emitter.on("event", listener);
    return { dispose: () => this.emitter.off("event", listener) };
  };
  fire(event: unknown): void {
    this.emitter.emit("event", event);
  }
  dispose(): void {
    this.emitter.removeAllListeners();
  }
}

export class Uri {
  constructor(private readonly text: string) {}
  static parse = (text: string) => new Uri(text);
  static file = (path: string) => new Uri(pathToFileURL(path).href);
  get scheme(): string {
    return new URL(this.text).protocol.slice(0, -1);
  }
  get fsPath(): string {
    return fileURLToPath(this.text);
  }
  get path(): string {
    return new URL(this.text).pathname;
  }
  toString = () => this.text;
}

/** What the tests look at and decide. */
export const stage = {
  settings: {} as Record<string, unknown>,
  folders: [] as { uri: Uri; name: string; index: number }[],
  documents: [] as unknown[],
  /** The text of the item in the status bar, each time that it changes. */
  status: [] as string[],
  warnings: [] as string[],
  errors: [] as string[],
  log: [] as string[],
  diagnostics: new Map<string, { code: { value: string } }[]>(),
  changed: new EventEmitter(),
  /** Set a setting, as the user would. */
  set(name: string, value: unknown): void {
    stage.settings[name] = value;
    stage.configured.fire({ affectsConfiguration: (wanted: string) => wanted === name || name.startsWith(`${wanted}.`) });
  },
  configured: new EventEmitter(),
  open(path: string, text: string): void {
    const lines = text.split("\n");
    const uri = Uri.file(path);
    const document = { uri, languageId: "python", version: 1, getText: () => text, lineCount: lines.length, isClosed: false };
    stage.documents.push({ ...document, notebook: undefined, fileName: path });
  },
};

class Disposable {
  constructor(readonly dispose: () => void = () => undefined) {}
  static from = () => new Disposable();
}

/** A thing with given members, whose other members are events or return something to dispose of. */
function loose(members: Readonly<Record<string, unknown>> = {}): unknown {
  const made: Record<string | symbol, unknown> = { ...members };
  return new Proxy(made, {
    get: (_, name) => (name in made || name === "then" ? made[name] : (made[name] = () => new Disposable())),
  });
}

const say = (messages: string[]) => (text: string) => {
  messages.push(text);
  stage.changed.fire(undefined);
  return Promise.resolve(undefined);
};

const write = (text: unknown) => void stage.log.push(String(text));

const statusItem = {
  set text(text: string) {
    stage.status.push(text);
    stage.changed.fire(undefined);
  },
  show: () => undefined,
  hide: () => undefined,
  dispose: () => undefined,
};

class CodeActionKind {
  static Empty = new CodeActionKind("");
  static QuickFix = new CodeActionKind("quickfix");
  static Source = new CodeActionKind("source");
  constructor(readonly value: string) {}
  append = (part: string) => new CodeActionKind(this.value ? `${this.value}.${part}` : part);
}

class MarkdownString {
  appendText(): this {
    return this;
  }
  appendMarkdown(): this {
    return this;
  }
}

const collection = {
  set: (uri: Uri, found: { code: { value: string } }[]) => {
    stage.diagnostics.set(String(uri), found);
    stage.changed.fire(undefined);
  },
  delete: () => undefined,
  clear: () => stage.diagnostics.clear(),
  dispose: () => undefined,
};

const given: Record<string, unknown> = {
  __esModule: true,
  CodeActionKind,
  Disposable,
  EventEmitter,
  MarkdownString,
  Uri,
  LogLevel: { Trace: 1, Info: 3 },
  version: "1.100.0",
  Range: class {
    constructor(
      readonly start: unknown,
      readonly end: unknown,
    ) {}
  },
  CancellationTokenSource: class {
    token = { isCancellationRequested: false, onCancellationRequested: () => new Disposable() };
    dispose = () => undefined;
  },
  env: loose({ appName: "stage", language: "en" }),
  extensions: loose({ getExtension: () => undefined }),
  commands: loose({ getCommands: () => Promise.resolve([]) }),
  languages: loose({
    createDiagnosticCollection: () => collection,
    match: (selector: { language: string }[], document: { languageId: string }) =>
      selector.some?.((each) => each.language === document.languageId) ? 10 : 0,
  }),
  window: loose({
    createStatusBarItem: () => statusItem,
    createOutputChannel: () =>
      loose({ logLevel: 3, appendLine: write, info: write, warn: write, error: write, debug: write, trace: write }),
    showWarningMessage: say(stage.warnings),
    showErrorMessage: say(stage.errors),
    tabGroups: loose({ all: [] }),
    visibleTextEditors: [],
    activeTextEditor: undefined,
    activeNotebookEditor: undefined,
  }),
  workspace: loose({
    get workspaceFolders() {
      return stage.folders;
    },
    get textDocuments() {
      return stage.documents;
    },
    notebookDocuments: [],
    onDidChangeConfiguration: stage.configured.event,
    getConfiguration: (section = "") => ({
      get: (name: string, otherwise?: unknown) => stage.settings[section ? `${section}.${name}` : name] ?? otherwise,
    }),
    createFileSystemWatcher: () => loose(),
    getWorkspaceFolder: () => stage.folders[0],
  }),
};

// A class for each name that the language client extends or makes. The bundle copies the properties of a module, but keeps its
// prototype, so that is what answers.
export const vscode: object = Object.create(
  new Proxy(given, {
    get: (_, name) => {
      if (!(name in given) && typeof name === "string" && /^[A-Z]/.test(name)) {
        given[name] = class {};
      }
      return given[name as string];
    },
  }),
) as object;
