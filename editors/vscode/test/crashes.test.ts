// A server that ends is started again, but not for ever.

import assert from "node:assert/strict";
import { test } from "node:test";
import { Crashes } from "../src/crashes";

test("a server that never ran is not started again", () => {
  assert.equal(new Crashes().restartAfter(0, false), false);
});

test("it is started again three times in three minutes", () => {
  const crashes = new Crashes();
  assert.deepEqual(
    [0, 1, 2, 3].map((minute) => crashes.restartAfter(minute * 50_000, true)),
    [true, true, true, false],
  );
  assert.equal(crashes.count, 4);
});

test("an end long ago does not count", () => {
  const crashes = new Crashes();
  for (const minute of [0, 2, 4, 6, 8, 10]) {
    assert.equal(crashes.restartAfter(minute * 60_000, true), true);
  }
});
