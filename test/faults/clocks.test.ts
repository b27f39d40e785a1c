import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { Table, tableFromArrays, tableToIPC } from "apache-arrow";
import { afterAll, beforeAll, describe, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { createGrpcClient } from "../support/grpc-client.ts";
import { type Program, startProgram, startProgramAt } from "../support/program.ts";

const DAY = 24 * 60 * 60 * 1000;

/** A body of 32 batches, so that it is written in parts. */
function batches(): Uint8Array {
  const id = Int32Array.from({ length: 32_768 }, (_, index) => index);
  const parts = Array.from({ length: 32 }, () => tableFromArrays({ id }).batches).flat();
  return tableToIPC(new Table(parts), "stream");
}

/** Yields a body in pieces and waits between its halves. */
async function* halting(bytes: Uint8Array, goOn: Promise<void>): AsyncIterable<Uint8Array> {
  const half = bytes.byteLength / 2;
  for (let at = 0; at < bytes.byteLength; at += 65_536) {
    if (at >= half) await goOn;
    yield bytes.subarray(at, at + 65_536);
  }
}

describe("gateways whose clocks differ by days", { timeout: 120_000 }, () => {
  let directory: { path: string; remove(): Promise<void> };
  beforeAll(async () => {
    directory = await temporaryDirectory();
  });
  afterAll(() => directory.remove());

  for (const days of [3, -3]) {
    test(`a gateway that starts ${days} days off leaves the uploads of another alone`, async (t) => {
      const root = join(directory.path, `root${days}`);
      const args = ["serve", "--root", root, "--port", "0", "--upload-part-size", "256KiB"];
      const start = (program: Program) => {
        t.onTestFinished(() => void program.child.kill("SIGKILL"));
        return program.listening();
      };
      // Whichever clock is wrong, the gateway that starts later meets the staged files of the other one.
      const port = await start(days > 0 ? startProgram(...args) : startProgramAt(days * DAY, ...args));
      const { client, close } = createGrpcClient(port);
      t.onTestFinished(close);
      await client.createNamespace({ id: ["ns"] });
      const rows = batches();
      await client.createTable({ id: ["ns", "old"] }, rows);
      const { count } = await client.countTableRows({ id: ["ns", "old"] });

      const { promise: goOn, resolve: resume } = Promise.withResolvers<void>();
      const uploads = Promise.all([
        client.createTable({ id: ["ns", "new"] }, halting(rows, goOn)),
        client.insertIntoTable({ id: ["ns", "old"] }, halting(rows, goOn)),
      ]);
      uploads.catch(() => {});
      const staged = async () =>
        (await readdir(join(root, "data"))).filter((name) => name.startsWith(".staging-"));
      while ((await staged()).length < 2) {
        await Promise.race([sleep(10), uploads]);
      }
      const before = await staged();

      const otherPort = await start(days > 0 ? startProgramAt(days * DAY, ...args) : startProgram(...args));
      const other = createGrpcClient(otherPort);
      t.onTestFinished(other.close);
      await other.client.createNamespace({ id: ["mine"] });
      assert.deepEqual(await staged(), before);
      resume();
      await uploads;
      for (const { client: each } of [{ client }, other]) {
        assert.equal((await each.countTableRows({ id: ["ns", "new"] })).count, count);
        assert.equal((await each.countTableRows({ id: ["ns", "old"] })).count, 2n * count);
      }
    });
  }
});
