import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdir, open, readdir, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, it } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { freePort } from "../support/free-port.ts";
import { MAIN, NODE } from "../support/node-command.ts";
import { runCommand } from "../support/run-command.ts";
import { until } from "../support/until.ts";

/** A file that takes nothing, as on a full disk. */
const FULL = "/dev/full";

/** Starts the program with a full disk as standard output. */
async function startFull(...args: readonly string[]) {
  const full = await open(FULL, "w");
  const [node = "", ...flags] = NODE;
  const child = spawn(node, [...flags, MAIN, ...args], {
    stdio: ["ignore", full.fd, "pipe"],
    env: { ...process.env, LANCE_GATEWAY_DRAIN_DELAY: "0s" },
  });
  await full.close();
  return { child, stderr: text(child.stderr as Readable) };
}

describe("what commands write", () => {
  let folder: string;
  let root: string;
  let remove: () => Promise<void>;
  const run = (...args: readonly string[]) =>
    runCommand([...args, "--root", root], { XDG_CONFIG_HOME: folder });

  beforeAll(async () => {
    ({ path: folder, remove } = await temporaryDirectory());
    root = join(folder, "catalog");
    const rows = join(folder, "people.arrows");
    await writeFile(rows, personStream(people(300)));
    await run("import", rows, "t");
  });
  afterAll(() => remove());

  it("fails with a line if the disk of standard output is full", async () => {
    for (const command of [["ls"], ["gc", "--json"], ["export", "t", "-", "--format", "csv"]]) {
      const { child, stderr } = await startFull(...command, "--root", root);
      const [code] = await once(child, "exit");
      assert.equal(code, 1);
      const message = "standard output cannot be written: ENOSPC: no space left on device";
      const line = command.includes("--json")
        ? JSON.stringify({ error: { kind: "Failure", message } })
        : `lance-gateway: ${message}`;
      assert.equal(await stderr, `${line}\n`);
    }
  });

  it("does not keep a gateway from serving if the disk of standard output is full", async () => {
    const port = await freePort();
    const { child } = await startFull("serve", "--root", root, "--port", String(port));
    const ended = once(child, "exit");
    try {
      await until(
        async () =>
          child.exitCode !== null ||
          fetch(`http://127.0.0.1:${port}/healthz`).then(
            ({ ok }) => ok,
            () => false,
          ),
      );
      assert.equal(child.exitCode, null);
    } finally {
      child.kill();
      await ended;
    }
  });

  it("names the file that cannot be written, and leaves nothing of it", async () => {
    const file = join(folder, "rows.csv");
    const limited = ["-c", `trap "" XFSZ; ulimit -f 1; exec "$0" "$@"`, ...NODE, MAIN];
    const child = spawn("/bin/sh", [...limited, "export", "t", file, "--root", root]);
    const stderr = text(child.stderr);
    assert.deepEqual(await once(child, "exit"), [1, null]);
    assert.equal(await stderr, `lance-gateway: ${file} cannot be written: EFBIG: file too large\n`);
    assert.deepEqual((await readdir(folder)).toSorted(), ["catalog", "people.arrows"]);
  });

  it("replaces files alone, and no directory or pipe", async () => {
    const [directory, pipe] = [join(folder, "directory"), join(folder, "pipe")];
    await mkdir(directory);
    await promisify(execFile)("mkfifo", [pipe]);
    for (const file of [directory, pipe])
      await assert.rejects(
        run("export", "t", file, "--format", "csv", "--force"),
        new RegExp(`${file} is no file; - writes to standard output$`),
      );
    assert.ok((await stat(pipe)).isFIFO());
  });
});
