// All fixes of a notebook are applied once, though all of its cells are asked.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isLeftToFirst, representative } from "../src/notebooks";

const cells = ["markdown", "python", "python"].map((languageId) => ({ languageId }));
const [text, first, second] = cells as [(typeof cells)[0], (typeof cells)[0], (typeof cells)[0]];

test("all fixes are those of the first Python cell", () => {
  assert.equal(representative(cells), first);
  assert.equal(representative([text]), undefined);
  for (const kind of ["source.fixAll.torchrepro-lint", "source.fixAll", "source"]) {
    assert.equal(isLeftToFirst(kind, first, cells), false);
    assert.equal(isLeftToFirst(kind, second, cells), true);
  }
});

test("every cell has its quick fixes", () => {
  for (const kind of [undefined, "quickfix", "source.organizeImports"]) {
    assert.equal(isLeftToFirst(kind, second, cells), false);
  }
});
