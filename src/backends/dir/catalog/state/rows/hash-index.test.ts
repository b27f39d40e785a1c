import assert from "node:assert/strict";
import fc from "fast-check";
import { describe, test } from "vitest";
import { createMemory } from "../memory.ts";
import { createHashIndex } from "./hash-index.ts";

/** Returns memory that keeps what it has given. */
function recorded() {
  const memory = createMemory();
  const taken: ArrayBufferLike[] = [];
  const take = (bytes: number) => {
    const buffer = memory.take(bytes);
    taken.push(buffer);
    return buffer;
  };
  return { memory: { taken: 0, take }, taken };
}

describe("a hash index", () => {
  test("finds exactly its rows while it grows, also when numbers of rows are used again", () => {
    const aChange = fc.record({ row: fc.nat(150), hash: fc.nat(40) });
    fc.assert(
      fc.property(fc.array(aChange, { minLength: 100, maxLength: 400 }), (changes) => {
        const index = createHashIndex(0, createMemory());
        const hashes = new Map<number, number>();
        for (const { row, hash } of changes) {
          const known = hashes.get(row);
          if (known === undefined) {
            index.add(hash, row);
            hashes.set(row, hash);
          } else {
            index.remove(known, row);
            hashes.delete(row);
          }
          for (const [each, own] of hashes)
            assert.equal(
              index.find(own, (found) => found === each),
              each,
            );
          const isThere = (found: number) => hashes.get(found) === hash;
          assert.equal(index.find(hash, isThere) >= 0, [...hashes.values()].includes(hash));
        }
      }),
      { numRuns: 30 },
    );
  });

  test("moves few entries at a time when it grows", () => {
    const { memory, taken } = recorded();
    const index = createHashIndex(0, memory);
    let grown = 0;
    for (let row = 0; row < 100_000; row++) {
      const before = taken.length;
      index.add(Math.imul(row, 0x9e37_79b1), row);
      if (taken.length === before) continue;
      grown++;
      const moved = new Int32Array(taken[before] as ArrayBuffer).filter((entry) => entry !== 0).length;
      assert.equal(moved, 1, `of ${row} entries`);
    }
    assert.equal(grown, 14);
    for (let row = 0; row < 100_000; row++)
      assert.equal(
        index.find(Math.imul(row, 0x9e37_79b1), (found) => found === row),
        row,
      );
  });
});
