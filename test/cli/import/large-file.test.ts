import { once } from "node:events";
import { createReadStream, createWriteStream } from "node:fs";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { startProgram } from "../../support/program.ts";
import { runCommand } from "../../support/run-command.ts";
import { type DirectoryServer, startDirectoryServer } from "../../support/server.ts";

const MEGABYTES = Number(process.env["IMPORT_MEGABYTES"] ?? "6");
/** Memory of a process that imports, however large the file is. */
const MOST_MEGABYTES = 450;

/** Writes rows until the file is large enough, and returns how many they are. */
async function writeLarge(file: string, row: (id: number) => string, head = ""): Promise<number> {
  let rows = 0;
  await pipeline(
    Readable.from(
      (function* () {
        let bytes = head.length;
        if (head !== "") yield head;
        while (bytes < MEGABYTES * 1e6) {
          const piece = Array.from({ length: 1000 }, () => row(rows++)).join("");
          bytes += piece.length;
          yield piece;
        }
      })(),
    ),
    createWriteStream(file),
  );
  return rows;
}

/** Milliseconds for each megabyte, to write, import, read and export it on a busy machine. */
const PATIENCE_MS = 5_000;
const timeout = Math.max(600_000, MEGABYTES * PATIENCE_MS);

describe(`an import of a file of ${MEGABYTES} MB (IMPORT_MEGABYTES)`, { timeout }, () => {
  let server: DirectoryServer;
  beforeAll(async () => {
    server = await startDirectoryServer();
  });
  afterAll(() => server.close());

  it.each([
    [
      "csv",
      "id,hash,at,text\n",
      (id: number) => `${id},${2n ** 64n - 1n - BigInt(id)},${at(id)},"text ""${id}"""\n`,
    ],
    [
      "jsonl",
      "",
      (id: number) =>
        `{"id":${id},"hash":${2n ** 64n - 1n - BigInt(id)},"at":"${at(id)}","v":[${id % 7},0.5]}\n`,
    ],
  ] as const)("keeps every row of %s in bounded memory", async (format, head, row) => {
    const uri = ["--uri", `http://127.0.0.1:${server.port}`];
    const file = join(server.root, `large.${format}`);
    const rows = await writeLarge(file, row, head);
    await runBounded("import", file, format, ...uri);
    const run = (...args: readonly string[]) =>
      runCommand([...args, ...uri], { XDG_CONFIG_HOME: server.root });
    expect(await run("count", format)).toBe(`${rows}\n`);
    const last = await run("query", format, "--filter", `id = ${rows - 1}`, "--format", "jsonl");
    expect(JSON.parse(last)).toMatchObject({ id: rows - 1, at: at(rows - 1) });
    expect(last).toContain(`"hash":${2n ** 64n - BigInt(rows)},`);
    const copy = join(server.root, `copy.${format}`);
    await runBounded("export", format, copy, ...uri);
    expect((await stat(copy)).size).toBeGreaterThan(0.9 * MEGABYTES * 1e6);
    expect(await linesIn(copy)).toBe(rows + (head === "" ? 0 : 1));
  });
});

/** Runs a command, whose process may only have so much memory. */
async function runBounded(...args: readonly string[]): Promise<void> {
  const { child, ended } = startProgram(...args);
  const exit = once(child, "exit");
  let [most, isOver] = [0, false];
  void exit.then(() => {
    isOver = true;
  });
  while (!isOver) {
    const status = await readFile(`/proc/${child.pid}/status`, "utf8").catch(() => "");
    most = Math.max(most, Number(/VmHWM:\s+(\d+)/.exec(status)?.[1] ?? 0) / 1024);
    await Promise.race([exit, new Promise((resolve) => setTimeout(resolve, 50))]);
  }
  expect((await ended).stderr).toBe("");
  process.stdout.write(`${args[0]} of ${MEGABYTES} MB: at most ${Math.round(most)} MiB\n`);
  expect(most).toBeGreaterThan(0);
  expect(most, args[0]).toBeLessThan(MOST_MEGABYTES);
}

async function linesIn(file: string): Promise<number> {
  let lines = 0;
  for await (const piece of createReadStream(file))
    for (const byte of piece as Buffer) if (byte === 10) lines++;
  return lines;
}

function at(id: number): string {
  return `2026-05-04T00:00:${String(id % 60).padStart(2, "0")}.${String(1 + (id % 9)).repeat(6)}Z`;
}
