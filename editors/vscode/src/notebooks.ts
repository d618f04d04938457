// All fixes of a notebook are those of its first Python cell; without a word of VS Code's API.

/** A cell, as far as it matters here. */
export interface Cell {
  readonly languageId: string;
}

/** The cell that stands for its notebook. */
export function representative<T extends Cell>(cells: readonly T[]): T | undefined {
  return cells.find((each) => each.languageId === "python");
}

/**
 * Whether a request for code actions of one ``kind`` alone is to be left to the cell that stands for the notebook. The server
 * answers each cell with the fixes of the whole notebook. On saving VS Code asks all cells at once and applies each answer, so
 * the same text would be written several times.
 */
export function isLeftToFirst(kind: string | undefined, cell: Cell, cells: readonly Cell[]): boolean {
  return kind !== undefined && /^source(\.fixAll|$)/.test(kind) && cell !== representative(cells);
}
