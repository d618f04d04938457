// On saving, the fixes of a notebook are applied once.

import assert from "node:assert/strict";
import { test } from "node:test";
import { isRepeated } from "../src/notebooks";

const languages = ["markdown", "python", "python"];
const kind = "source.fixAll.torchrepro-lint";

test("of the cells that are asked on saving, the first Python cell answers alone", () => {
  for (const each of [kind, "source.fixAll", "source"]) {
    const answers = [1, 2].filter((index) => !isRepeated({ kind: each, onSave: true, index, languages }));
    assert.deepEqual(answers, [1]);
  }
});

test("every cell answers the user, and is asked for other fixes", () => {
  assert.equal(isRepeated({ kind, onSave: false, index: 2, languages }), false);
  assert.equal(isRepeated({ kind: undefined, onSave: true, index: 2, languages }), false);
  assert.equal(isRepeated({ kind: "source.organizeImports", onSave: true, index: 2, languages }), false);
});
