import assert from "node:assert/strict";
import { pino } from "pino";
import { describe, expect, it } from "vitest";
import { isLanceError } from "../../../namespace/errors.ts";
import { createTrail, LineBuffer } from "./trail.ts";

/** Returns a trail to a writer in memory, which fails while `broken` is set. */
function trailTo({ required = false } = {}) {
  const appended: string[] = [];
  const logged: { level: number; msg: string; lost?: number }[] = [];
  const state = { broken: false, lost: 0, gate: Promise.resolve() };
  const writer = {
    async append(lines: Buffer) {
      await state.gate;
      if (state.broken) throw new Error("no space");
      appended.push(lines.toString());
    },
    async close() {
      appended.push("closed");
    },
  };
  const log = pino({}, { write: (line: string) => void logged.push(JSON.parse(line)) });
  const onLost = (lines: number) => {
    state.lost += lines;
  };
  return {
    trail: createTrail({ name: "audit log", writer, required, log, onLost }),
    appended,
    logged,
    state,
  };
}

const isUnavailable = (error: unknown) => isLanceError(error, "ServiceUnavailable");

describe("the audit trail", () => {
  it("appends the lines of a turn together, and those that come meanwhile together after them", async () => {
    const { trail, appended, state } = trailTo();
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    state.gate = gate;
    const first = [trail.write("a"), trail.write("b")];
    await new Promise(setImmediate);
    await new Promise(setImmediate);
    const later = [trail.write("c"), trail.write("d")];
    open();
    await Promise.all([...first, ...later]);
    assert.deepEqual(appended, ["a\nb\n", "c\nd\n"]);
  });

  it("appends the lines of the next turns with them as long as each turn brings some", async () => {
    const { trail, appended } = trailTo();
    const written: Promise<void>[] = [];
    const writeInTurns = ([line, ...rest]: readonly string[]): void => {
      if (line === undefined) return;
      setImmediate(() => {
        written.push(trail.write(line));
        writeInTurns(rest);
      });
    };
    writeInTurns(["b", "c", "d"]);
    await trail.write("a");
    await Promise.all(written);
    assert.deepEqual(appended, ["a\nb\nc\nd\n"]);
  });

  it("lets calls go on that do not depend on it, counts what is lost, and logs the fault once", async () => {
    const { trail, appended, logged, state } = trailTo();
    state.broken = true;
    for (const line of ["a", "b", "c"]) await trail.write(line);
    trail.requireWritable();
    state.broken = false;
    await trail.write("d");
    assert.deepEqual([appended, state.lost], [["d\n"], 3]);
    assert.deepEqual(
      logged.map(({ level, lost }) => [level, lost]),
      [
        [50, undefined],
        [40, 3],
      ],
    );
  });

  it("fails calls that depend on it, and refuses them until a line can be written", async () => {
    const { trail, state } = trailTo({ required: true });
    trail.requireWritable();
    state.broken = true;
    await assert.rejects(trail.write("a"), isUnavailable);
    assert.throws(() => trail.requireWritable(), isUnavailable);
    state.broken = false;
    assert.throws(() => trail.requireWritable(), isUnavailable);
    await trail.write("the line of the refused call");
    trail.requireWritable();
  });

  it("bounds what waits for a file that takes nothing", async () => {
    const { trail, state } = trailTo();
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    state.gate = gate;
    const line = "x".repeat(1024 ** 2);
    const writes = Array.from({ length: 20 }, () => trail.write(line));
    assert.equal(state.lost, 4);
    open();
    await Promise.all(writes);
    assert.equal(state.lost, 4);
  });

  it("writes what waits before it closes", async () => {
    const { trail, appended } = trailTo();
    const writing = trail.write("a");
    await trail.close();
    await writing;
    assert.deepEqual(appended, ["a\n", "closed"]);
  });

  it("keeps the bytes of a batch that is being written, and of one that failed, as they are", async () => {
    const { promise: gate, resolve: open } = Promise.withResolvers<void>();
    const given: Buffer[] = [];
    const writer = {
      async append(lines: Buffer) {
        given.push(lines);
        await gate;
        if (given.length < 3) throw new Error("not in time");
      },
      async close() {},
    };
    const log = pino({ level: "silent" });
    const trail = createTrail({ name: "access log", writer, required: false, log, onLost() {} });
    for (const count of [1, 2, 3, 4, 5]) {
      trail.note(`line ${count} é`);
      if (count === 2) open();
      await expect.poll(() => given.length).toBe(count);
    }
    await trail.close();
    const texts = given.slice(0, 2).map((bytes) => bytes.toString());
    assert.deepEqual(texts, ["line 1 é\n", "line 2 é\n"]);
  });
});

describe("the buffer of lines", () => {
  it("has lines of any length and script in their order, also after it has grown and after it was cleared", () => {
    const buffer = new LineBuffer();
    for (const length of [1, 9_000, 3]) {
      const lines = Array.from({ length: 50 }, (_, number) => "a表😀é".repeat(length) + number);
      for (const line of lines) buffer.add(line);
      const expected = `${lines.join("\n")}\n`;
      assert.ok(buffer.bytes().equals(Buffer.from(expected)));
      assert.deepEqual([buffer.lines, buffer.length], [lines.length, Buffer.byteLength(lines.join(""))]);
      buffer.clear();
      assert.deepEqual([buffer.lines, buffer.length, buffer.bytes().length], [0, 0, 0]);
    }
  });
});
