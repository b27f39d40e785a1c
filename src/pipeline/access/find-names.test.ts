import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { createRandom } from "../../../test/support/random.ts";
import { seedOf } from "../../../test/support/seed.ts";
import { createNameFinder } from "./find-names.ts";

const SORTED = ["a", "aa", "b", "d", "\u{1f600}", "\uff00"];

describe("the place of a name in a sorted list", () => {
  it("is found in the order of the list, also for names beside those of the list", () => {
    const find = createNameFinder(SORTED);
    const names = ["", "a", "aa", "ab", "b", "c", "d", "\u{1f600}", "\uff00", "\uffff"];
    assert.deepEqual(names.map(find), [-1, 0, 1, -1, 2, -1, 3, 4, 5, -1]);
  });

  it("is found in any order, and again", () => {
    const find = createNameFinder(SORTED);
    const random = createRandom(seedOf("TEST_SEED"));
    const names = [...SORTED, "", "ab", "c", "e", "\uffff"];
    for (let i = 0; i < 1_000; i++) {
      const name = random.pick(names);
      assert.equal(find(name), SORTED.indexOf(name), JSON.stringify(name));
    }
  });

  it("is nowhere in an empty list", () => {
    assert.equal(createNameFinder([])("a"), -1);
  });
});
