// The real server over standard input and output, started as the extension starts it, with the settings that it sends.

import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { type TestContext, test } from "node:test";
import { pathToFileURL } from "node:url";
import {
  type CodeAction,
  CodeActionRequest,
  CodeActionResolveRequest,
  ConfigurationRequest,
  createProtocolConnection,
  type Diagnostic,
  DidChangeConfigurationNotification,
  DidOpenNotebookDocumentNotification,
  DidOpenTextDocumentNotification,
  ExitNotification,
  InitializedNotification,
  type InitializeParams,
  InitializeRequest,
  LogMessageNotification,
  NotebookCellKind,
  PublishDiagnosticsNotification,
  RegistrationRequest,
  ShowMessageNotification,
  ShutdownRequest,
  StreamMessageReader,
  StreamMessageWriter,
  type TextDocumentEdit,
} from "vscode-languageserver-protocol/node";
import { SECTION, serverSettings } from "../src/settings";
import { folder, launch } from "./tool";

const FIX_ALL = `source.fixAll.${SECTION}`;
const TEXT = `import torch

torch.manual_seed(0)
torch.backends.cudnn.benchmark = True
torch.use_deterministic_algorithms()
torch.save(torch.rand(3), "noise.pt")
`;
const CAPABILITIES: InitializeParams["capabilities"] = {
  notebookDocument: { synchronization: {} },
  workspace: { configuration: true, workspaceEdit: { documentChanges: true } },
  textDocument: {
    codeAction: {
      codeActionLiteralSupport: { codeActionKind: { valueSet: ["quickfix", "source"] } },
      dataSupport: true,
      resolveSupport: { properties: ["edit"] },
    },
  },
};

interface Published {
  readonly uri: string;
  readonly diagnostics: readonly Diagnostic[];
}

/** An editor with one folder and the settings of the extension. */
async function editor(context: TestContext, settings: Readonly<Record<string, unknown>>) {
  const root = pathToFileURL(folder(context, { "train.py": TEXT })).href;
  const { command, args } = await launch();
  const server = spawn(command, [...args, "server"], { stdio: ["pipe", "pipe", "inherit"] });
  context.after(() => server.kill());
  const connection = createProtocolConnection(
    new StreamMessageReader(server.stdout),
    new StreamMessageWriter(server.stdin),
  );
  const complaints: string[] = [];
  const published = new Map<number, (found: Published) => void>();
  let current = { ...settings };
  connection.onRequest(ConfigurationRequest.type, ({ items }) =>
    items.map((item) => (item.section === SECTION ? serverSettings((name) => current[name]) : null)),
  );
  connection.onRequest(RegistrationRequest.type, () => undefined);
  connection.onNotification(ShowMessageNotification.type, ({ message }) => void complaints.push(message));
  connection.onNotification(LogMessageNotification.type, ({ message }) => void complaints.push(message));
  connection.onNotification(PublishDiagnosticsNotification.type, ({ uri, diagnostics }) =>
    published.get(diagnostics.length)?.({ uri, diagnostics }),
  );
  connection.listen();
  const { capabilities } = await connection.sendRequest(InitializeRequest.type, {
    processId: process.pid,
    rootUri: root,
    workspaceFolders: [{ uri: root, name: "project" }],
    capabilities: CAPABILITIES,
    initializationOptions: serverSettings((name) => current[name]),
  });
  await connection.sendNotification(InitializedNotification.type, {});
  return {
    server,
    connection,
    complaints,
    capabilities,
    uri: `${root}/train.py`,
    /** The next diagnostics of this number. */
    diagnostics: (number: number) => new Promise<Published>((resolve) => published.set(number, resolve)),
    set: (values: Readonly<Record<string, unknown>>) => {
      current = { ...values };
      return connection.sendNotification(DidChangeConfigurationNotification.type, { settings: null });
    },
    open: (uri: string) =>
      connection.sendNotification(DidOpenTextDocumentNotification.type, {
        textDocument: { uri, languageId: "python", version: 1, text: TEXT },
      }),
  };
}

function textEdits(action: CodeAction): string[] {
  const changes = (action.edit?.documentChanges ?? []) as TextDocumentEdit[];
  return changes.flatMap((change) => change.edits.map((each) => ("newText" in each ? each.newText : "")));
}

function codes(published: Published): unknown[] {
  return published.diagnostics.map((each) => each.code);
}

const everywhere = { start: { line: 0, character: 0 }, end: { line: 6, character: 0 } };

test("problems, fixes, all fixes, and an orderly end", { timeout: 60_000 }, async (context) => {
  const { complaints, connection, diagnostics, open, server, uri } = await editor(context, {});
  const shown = diagnostics(2);
  await open(uri);
  const { diagnostics: found } = await shown;
  assert.deepEqual(
    found.map((each) => [each.code, each.source]),
    [
      ["TRL201", SECTION],
      ["TRL204", SECTION],
    ],
  );
  assert.ok(found.every((each) => each.codeDescription?.href.includes(String(each.code))), "each links to its page");

  const ask = (only: string) =>
    connection.sendRequest(CodeActionRequest.type, {
      textDocument: { uri },
      range: everywhere,
      context: { diagnostics: [...found], only: [only] },
    }) as Promise<CodeAction[]>;
  const quick = await ask("quickfix");
  assert.ok(quick.some((each) => textEdits(each).includes("False")));
  assert.ok(quick.some((each) => each.title === "Ignore TRL201 here"));
  const [all] = await ask(FIX_ALL);
  assert.equal(all?.kind, FIX_ALL);
  const resolved = await connection.sendRequest(CodeActionResolveRequest.type, all);
  assert.deepEqual(textEdits(resolved), ["torch.use_deterministic_algorithms(True)\n"]);

  await connection.sendRequest(ShutdownRequest.type);
  const end = once(server, "exit");
  await connection.sendNotification(ExitNotification.type);
  assert.deepEqual(await end, [0, null]);
  assert.deepEqual(complaints, []);
});

test("the server takes the settings of the extension, and follows their changes", { timeout: 60_000 }, async (context) => {
  const settings = {
    enable: true,
    interpreter: "python",
    path: "",
    select: ["TRL2"],
    extendSelect: ["TRL302"],
    ignore: ["TRL204"],
    minSeverity: "warning",
    torchVersion: "2.6",
    device: "cpu",
    isolated: true,
    delay: 0,
    "trace.server": "off",
  };
  const { complaints, diagnostics, open, set, uri } = await editor(context, settings);
  const shown = diagnostics(1);
  await open(uri);
  assert.deepEqual(codes(await shown), ["TRL201"]);
  const changed = diagnostics(2);
  await set({ ...settings, ignore: [], config: "" });
  assert.deepEqual(codes(await changed), ["TRL201", "TRL204"]);
  assert.deepEqual(complaints, []);
});

test("the problems of a notebook stand in its cells", { timeout: 60_000 }, async (context) => {
  const { capabilities, complaints, connection, diagnostics, uri } = await editor(context, {});
  assert.ok(capabilities.notebookDocumentSync !== undefined);
  const notebook = uri.replace("train.py", "explore.ipynb");
  const cells = ["a", "b"].map((name) => `${notebook.replace("file:", "vscode-notebook-cell:")}#${name}`);
  const texts = ["import torch\n", "torch.manual_seed(0)\ntorch.use_deterministic_algorithms()\n"];
  const shown = diagnostics(1);
  await connection.sendNotification(DidOpenNotebookDocumentNotification.type, {
    notebookDocument: {
      uri: notebook,
      notebookType: "jupyter-notebook",
      version: 1,
      cells: cells.map((document) => ({ kind: NotebookCellKind.Code, document })),
    },
    cellTextDocuments: cells.map((cell, i) => ({ uri: cell, languageId: "python", version: 1, text: texts[i] ?? "" })),
  });
  const found = await shown;
  assert.equal(found.uri, cells[1]);
  assert.deepEqual(codes(found), ["TRL204"]);
  assert.deepEqual(complaints, []);
});
