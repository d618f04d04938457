// Fixes of notebooks on saving, where VS Code asks for those of each cell; without a word of its API.

/** A request for code actions in a cell; ``kind`` is the one that alone is asked for, ``index`` that of the cell. */
export interface CellRequest {
  readonly kind: string | undefined;
  readonly onSave: boolean;
  readonly index: number;
  /** The language of each cell of the notebook. */
  readonly languages: readonly string[];
}

/**
 * Whether the answer would be applied a second time. The server's fixes are those of the whole notebook, whichever cell is asked
 * for. On saving VS Code asks for all cells at once and applies each answer, so only the first Python cell gets one.
 */
export function isRepeated({ kind, onSave, index, languages }: CellRequest): boolean {
  return onSave && kind !== undefined && /^source(\.fixAll|$)/.test(kind) && index !== languages.indexOf("python");
}
