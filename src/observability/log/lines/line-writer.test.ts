import assert from "node:assert/strict";
import { readdir, readFile, rename, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, it, type TestContext, vi } from "vitest";
import { temporaryDirectory } from "../../../../test/support/directory.ts";
import { createLineWriter, openRotatingFile, type RotatingFileOptions } from "./line-writer.ts";

type Write = (bytes: Buffer, offset: number) => Promise<number>;

/** Returns a writer whose target takes bytes by the given steps, and then everything. */
function writerTo(steps: readonly Write[], timeoutMs?: number) {
  const left = [...steps];
  const taken: string[] = [];
  const target = {
    async prepare() {},
    async write(bytes: Buffer, offset: number) {
      const count = await (left.shift()?.(bytes, offset) ?? bytes.length - offset);
      taken.push(bytes.toString("utf8", offset, offset + count));
      return count;
    },
    async close() {},
  };
  return { writer: createLineWriter(target, timeoutMs), text: () => taken.join("") };
}

const fail = (code: string) => () => Promise.reject(Object.assign(new Error(code), { code }));

describe("the writer of lines", () => {
  it("goes on after a part, and after a pipe that is full for a moment", async () => {
    const { writer, text } = writerTo([async () => 3, fail("EAGAIN"), async () => 1]);
    await writer.append(Buffer.from("first\nsecond\n"));
    assert.equal(text(), "first\nsecond\n");
  });

  it("ends a line that broke off before it writes the next", async () => {
    const { writer, text } = writerTo([async () => 3, fail("ENOSPC")]);
    await assert.rejects(writer.append(Buffer.from("first\n")), /ENOSPC/);
    await writer.append(Buffer.from("second\n"));
    assert.equal(text(), "fir\nsecond\n");
  });

  it("adds no empty line after one that was whole", async () => {
    const { writer, text } = writerTo([async () => 6, fail("ENOSPC")]);
    await assert.rejects(writer.append(Buffer.from("first\nsecond\n")), /ENOSPC/);
    await writer.append(Buffer.from("third\n"));
    assert.equal(text(), "first\nthird\n");
  });

  it("fails when the system takes nothing, at once while that lasts, and works again afterwards", async () => {
    const { promise: stuck, resolve: release } = Promise.withResolvers<number>();
    const { writer, text } = writerTo([() => stuck], 1);
    await assert.rejects(writer.append(Buffer.from("first\n")), /within 1 ms/);
    await assert.rejects(writer.append(Buffer.from("second\n")), /has not ended/);
    release(6);
    await vi.waitFor(() => writer.append(Buffer.from("third\n")), { timeout: 60_000 });
    assert.equal(text(), "first\nthird\n");
  });
});

async function pathIn({ onTestFinished }: TestContext) {
  const { path: folder, remove } = await temporaryDirectory();
  onTestFinished(remove);
  return { folder, path: join(folder, "audit.jsonl") };
}

async function writerOf(
  { onTestFinished }: TestContext,
  path: string,
  options: Partial<RotatingFileOptions> = {},
) {
  const log = pino({ level: "silent" });
  const writer = createLineWriter(await openRotatingFile({ path, name: "log", keep: 3, log, ...options }));
  onTestFinished(() => writer.close());
  return writer;
}

const linesOf = async (folder: string) => {
  const texts = await Promise.all(
    (await readdir(folder)).map((name) => readFile(join(folder, name), "utf8")),
  );
  return texts.flatMap((text) => text.split("\n").slice(0, -1));
};

describe("a rotating file", () => {
  it("keeps what is in the file, and lets only its owner read it", async (context) => {
    const { path } = await pathIn(context);
    for (const line of ["a", "b"]) await (await writerOf(context, path)).append(Buffer.from(`${line}\n`));
    assert.equal(await readFile(path, "utf8"), "a\nb\n");
    assert.equal((await stat(path)).mode & 0o777, 0o600);
  });

  it("begins a new file when somebody has moved it", async (context) => {
    const { path } = await pathIn(context);
    const writer = await writerOf(context, path, { checkMs: 0 });
    await writer.append(Buffer.from("a\n"));
    await rename(path, `${path}.1`);
    await writer.append(Buffer.from("b\n"));
    assert.deepEqual([await readFile(`${path}.1`, "utf8"), await readFile(path, "utf8")], ["a\n", "b\n"]);
  });

  it("renames a file before it grows too large, and deletes the oldest ones alone", async (context) => {
    const { folder, path } = await pathIn(context);
    const other = await writerOf(context, join(folder, "audit.jsonl.bak"));
    await other.append(Buffer.from("of somebody else\n"));
    const writer = await writerOf(context, path, { maxBytes: 10, keep: 2 });
    for (let line = 0; line < 9; line++) await writer.append(Buffer.from(`${line}...\n`));
    const names = (await readdir(folder)).sort();
    assert.equal(names.length, 4, String(names));
    assert.match(names[2] ?? "", /^audit\.jsonl\.\d{8}T\d{9}Z-[0-9a-f]{8}$/);
    const kept = (await linesOf(folder)).filter((line) => line.endsWith("...")).sort();
    assert.deepEqual(kept, ["4...", "5...", "6...", "7...", "8..."]);
    for (const name of names) assert.ok((await stat(join(folder, name))).size <= 17);
  });

  it("deletes the oldest files also after the clock was set back", async (context) => {
    const { folder, path } = await pathIn(context);
    for (const time of ["29990101T000000000Z", "29990101T000000001Z"])
      await writeFile(`${path}.${time}-00000000`, `${time}\n`);
    const writer = await writerOf(context, path, { maxBytes: 5, keep: 2 });
    for (let line = 0; line < 4; line++) await writer.append(Buffer.from(`${line}...\n`));
    assert.deepEqual((await linesOf(folder)).sort(), ["1...", "2...", "3..."]);
  });

  it("loses no line when several writers share it and each renames it", async (context) => {
    const { folder, path } = await pathIn(context);
    const options = { maxBytes: 400, keep: 10_000, checkMs: 0 };
    const writers = await Promise.all(Array.from({ length: 4 }, () => writerOf(context, path, options)));
    const lines = (writer: number) =>
      Array.from({ length: 50 }, (_, line) => `writer ${writer} line ${line}`);
    await Promise.all(
      writers.map(async (writer, number) => {
        for (const line of lines(number)) await writer.append(Buffer.from(`${line}\n`));
      }),
    );
    assert.deepEqual((await linesOf(folder)).sort(), [0, 1, 2, 3].flatMap(lines).sort());
  });

  it("grows on where it cannot be renamed", async (context) => {
    const { folder } = await pathIn(context);
    // Names of files end at 255 bytes.
    const writer = await writerOf(context, join(folder, "a".repeat(250)), { maxBytes: 4 });
    for (const line of ["a..", "b.."]) await writer.append(Buffer.from(`${line}\n`));
    assert.deepEqual(await linesOf(folder), ["a..", "b.."]);
  });
});
