import assert from "node:assert/strict";
import { Worker } from "node:worker_threads";
import { describe, it } from "vitest";
import { allocateCells, type CellShape, clearWorker, type KeyedCells, openCells } from "./keyed-cells.ts";

/** Adds to a number of a key and returns it. */
function add(cells: KeyedCells, key: string, rank = 1, index = 1): number | undefined {
  return cells.change(key, (numbers, at) => {
    numbers[at] = rank;
    numbers[at + index] = (numbers[at + index] as number) + 1;
    return numbers[at + index];
  });
}

const SHAPE: CellShape = { numbers: 1, keys: 16 };

describe("numbers by key", () => {
  it("begin at 0, and are remembered for each key by itself", () => {
    const cells = openCells({ numbers: 1 });
    const keys = Array.from({ length: 1_000 }, (_, index) => `key ${index}`);
    for (const expected of [1, 2]) for (const key of keys) assert.equal(add(cells, key), expected, key);
  });

  it("are forgotten for the key of the least rank, and never for one whose rank is infinite", () => {
    const cells = openCells(SHAPE);
    for (let index = 0; index < 16; index++) add(cells, `key ${index}`, 100 - index);
    assert.equal(add(cells, "new", 50), 1);
    assert.equal(add(cells, "key 15", 100), 1);
    assert.equal(add(cells, "key 0", 100), 2);
    const full = openCells(SHAPE);
    for (let index = 0; index < 16; index++) add(full, `key ${index}`, Number.POSITIVE_INFINITY);
    assert.equal(add(full, "new"), undefined);
    assert.equal(add(full, "key 3", Number.POSITIVE_INFINITY), 2);
  });

  it("are the same for all workers that open their memory", () => {
    const memory = allocateCells(SHAPE, 2);
    const [one, two] = [0, 1].map((worker) => openCells(SHAPE, { worker, workers: 2 }, memory));
    assert.ok(one && two);
    assert.deepEqual([add(one, "a"), add(two, "a"), add(one, "a"), add(two, "b")], [1, 2, 3, 1]);
  });

  it("lose the part of a worker that has ended, and its locks", () => {
    const shape: CellShape = { numbers: "worker", keys: 16 };
    const memory = allocateCells(shape, 2);
    const [one, two] = [0, 1].map((worker) => openCells(shape, { worker, workers: 2 }, memory));
    assert.ok(one && two);
    add(one, "a", Number.POSITIVE_INFINITY, 1);
    add(two, "a", Number.POSITIVE_INFINITY, 2);
    add(one, "b", Number.POSITIVE_INFINITY, 1);
    const locks = new Int32Array(memory, memory.byteLength - 4);
    locks[0] = 1;
    clearWorker(shape, { worker: 0, workers: 2 }, memory);
    const read = (key: string) => two.change(key, (numbers, at) => [...numbers.subarray(at, at + 3)]);
    assert.deepEqual(read("a"), [Number.POSITIVE_INFINITY, 0, 1]);
    assert.deepEqual(read("b"), [0, 0, 0]);
  });

  it("keep the rank that another worker gives a key while the part of one that has ended is taken back", async () => {
    const shape: CellShape = { numbers: "worker", keys: 16 };
    const memory = allocateCells(shape, 2);
    const gate = new Int32Array(new SharedArrayBuffer(4));
    const module = new URL("./keyed-cells.ts", import.meta.url).href;
    const program = `
      const { workerData: { module, memory, shape, gate } } = require("node:worker_threads");
      import(module).then(({ openCells }) => {
        openCells(shape, { worker: 1, workers: 2 }, memory).change("a", (numbers, at) => {
          numbers[at] = Infinity;
          Atomics.store(gate, 0, 1);
          Atomics.notify(gate, 0);
          // Long enough for a thread that does not wait for this one.
          Atomics.wait(gate, 0, 1, 200);
          numbers[at + 2] = 1;
        });
      });`;
    const thread = new Worker(program, { eval: true, workerData: { module, memory, shape, gate } });
    const ended = new Promise((resolve, reject) => thread.once("error", reject).once("exit", resolve));
    while (Atomics.load(gate, 0) === 0) await new Promise(setImmediate);
    clearWorker(shape, { worker: 0, workers: 2 }, memory);
    await ended;
    const cells = openCells(shape, { worker: 0, workers: 2 }, memory);
    assert.deepEqual(
      cells.look("a", (numbers, at) => [...numbers.subarray(at, at + 3)]),
      [Number.POSITIVE_INFINITY, 0, 1],
    );
  });

  it("lose no change of several threads at once", async () => {
    const memory = allocateCells(SHAPE, 4);
    const module = new URL("./keyed-cells.ts", import.meta.url).href;
    const program = `
      const { workerData: { module, worker, memory, shape } } = require("node:worker_threads");
      import(module).then(({ openCells }) => {
        const cells = openCells(shape, { worker, workers: 4 }, memory);
        const change = (numbers, at) => { numbers[at] += 1; numbers[at + 1] += 1; };
        for (let round = 0; round < 20_000; round++) cells.change("key " + (round % 4), change);
      });`;
    const ended = [0, 1, 2].map((worker) => {
      const workerData = { module, worker, memory, shape: SHAPE };
      const thread = new Worker(program, { eval: true, workerData });
      return new Promise<number>((resolve, reject) => thread.once("error", reject).once("exit", resolve));
    });
    await Promise.all(ended);
    const cells = openCells(SHAPE, { worker: 3, workers: 4 }, memory);
    for (let index = 0; index < 4; index++)
      assert.equal(
        cells.change(`key ${index}`, (numbers, at) => numbers[at + 1]),
        15_000,
      );
  });
});
