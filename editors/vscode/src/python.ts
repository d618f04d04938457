// The Python extension, where it is installed: which interpreters are selected, and when that changes.

import { PVSC_EXTENSION_ID, PythonExtension } from "@vscode/python-extension";
import { type Disposable, extensions, type LogOutputChannel, workspace } from "vscode";

/** The interpreters that the Python extension has selected. */
export class SelectedInterpreters {
  private constructor(
    private readonly api: PythonExtension | undefined,
    private readonly log: LogOutputChannel,
  ) {}

  static async connect(log: LogOutputChannel): Promise<SelectedInterpreters> {
    if (extensions.getExtension(PVSC_EXTENSION_ID) === undefined) {
      log.info("The Python extension is not installed.");
      return new SelectedInterpreters(undefined, log);
    }
    try {
      const api = await PythonExtension.api();
      await api.ready;
      return new SelectedInterpreters(api, log);
    } catch (error) {
      log.warn(`The Python extension does not answer: ${String(error)}`);
      return new SelectedInterpreters(undefined, log);
    }
  }

  /** The interpreter of each folder, or the one of a window without folders. */
  async paths(): Promise<string[]> {
    const { api } = this;
    if (api === undefined) {
      return [];
    }
    const resources = workspace.workspaceFolders?.map((folder) => folder.uri) ?? [undefined];
    try {
      const found = await Promise.all(
        resources.map((each) => api.environments.resolveEnvironment(api.environments.getActiveEnvironmentPath(each))),
      );
      return found.flatMap((each) => each?.executable.uri?.fsPath ?? []);
    } catch (error) {
      this.log.warn(`The Python extension does not tell the selected interpreter: ${String(error)}`);
      return [];
    }
  }

  onChange(listener: () => void): Disposable {
    return this.api?.environments.onDidChangeActiveEnvironmentPath(listener) ?? { dispose: () => undefined };
  }
}
