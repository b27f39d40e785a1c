import assert from "node:assert/strict";
import { chmod, mkdir, readdir, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import type { Worker } from "node:worker_threads";
import { afterAll, beforeAll, type TestContext, test, vi } from "vitest";
import { silent, temporaryDirectory } from "../../../test/fixtures/dir/directory-backend.ts";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { startS3Server } from "../../../test/support/s3-server.ts";
import { until } from "../../../test/support/until.ts";
import { joinCache } from "../../backends/dir/cache/join-cache.ts";
import { createS3Store } from "../../backends/dir/stores/s3/s3.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { listenOn } from "../../server/port/listen.ts";
import { type RunningCache, startCache } from "./start-cache.ts";

/** The threads that this process has started, the newest last. */
const threads: Worker[] = [];
const remember = (thread: Worker) => threads.push(thread);
beforeAll(() => void process.on("worker", remember));
afterAll(() => void process.off("worker", remember));

const KEY = "t.lance/data/011111000100000110110111edf292453a86ed673ca9704444.lance";

async function start(t: TestContext, directory: string, ...flags: string[]): Promise<RunningCache> {
  const options = readServeOptions(
    sourcesOf(["--root", "s3://lance/root", "--cache-dir", directory, ...flags]),
  );
  const cache = (await startCache(options, undefined, silent)) as RunningCache;
  t.onTestFinished(() => cache.close());
  return cache;
}

/** Returns what reads an object through a cache, with a client as the engine is one. */
async function readerThrough(cache: RunningCache, options: Readonly<Record<string, string>>) {
  const joined = joinCache(cache.access);
  const engineOptions = await joined.engineOptions(options);
  const { store } = await createS3Store("lance", engineOptions);
  /** Returns the status of a read by a program that knows the access key id alone. */
  async function readUnsigned(): Promise<number> {
    const credential = `${engineOptions["aws_access_key_id"]}/20260101/us-east-1/s3/aws4_request`;
    const authorization = `AWS4-HMAC-SHA256 Credential=${credential}`;
    const url = `http://127.0.0.1:${cache.access.port}/lance/${KEY}`;
    const answer = await fetch(url, { headers: { authorization } });
    await answer.arrayBuffer();
    return answer.status;
  }
  return { read: () => store.get(KEY), readUnsigned, figures: joined.figures };
}

test("a cache that would have no effect, or cannot be used, is refused at start", async (t) => {
  const directory = await temporaryDirectory(t);
  const tried = async (root: string, ...flags: string[]) => {
    const options = readServeOptions(
      sourcesOf(["--root", root, "--cache-dir", join(directory, "cache"), ...flags]),
    );
    return startCache(options, undefined, silent);
  };
  for (const root of [join(directory, "root"), "gs://bucket/root", "az://container/root"])
    await assert.rejects(tried(root), /--cache-dir has no effect without a root in an S3 bucket/);
  await writeFile(join(directory, "key"), "too short");
  await assert.rejects(tried("s3://lance", "--cache-key-file", join(directory, "key")), /at least 32 bytes/);
  await assert.rejects(tried("s3://lance", "--cache-size", "4KiB"), /--cache-size must be at least 1MiB/);
  const file = join(directory, "file");
  await writeFile(file, "");
  const open = join(directory, "open");
  await mkdir(open);
  await chmod(open, 0o777);
  for (const [name, reason] of [
    [file, /^--cache-dir: /],
    [open, /^--cache-dir: .* is writable for others than its owner; [^\n]*$/],
  ] as const)
    await assert.rejects(
      startCache(
        readServeOptions(sourcesOf(["--root", "s3://lance", "--cache-dir", name])),
        undefined,
        silent,
      ),
      ({ message }: Error) => reason.test(message),
    );
  assert.deepEqual(await readdir(open), []);
  assert.throws(
    () => readServeOptions(sourcesOf(["--cache-size", "1GiB"])),
    /has no effect without --cache-dir/,
  );
});

test("a thread that fails starts again on its port, for the engine and nobody else who knows its id", async (t) => {
  const s3 = await startS3Server();
  t.onTestFinished(() => s3.close());
  s3.put(KEY, Buffer.alloc(300_000, 7));
  const cache = await start(t, await temporaryDirectory(t));
  const { read, readUnsigned, figures } = await readerThrough(cache, s3.options);
  assert.equal((await read())?.byteLength, 300_000);
  assert.equal(await readUnsigned(), 200);
  await until(() => figures().bytes.written === 300_000);
  const before = threads.length;
  await threads.at(-1)?.terminate();
  await until(() =>
    read().then(
      (bytes) => bytes?.byteLength === 300_000,
      () => false,
    ),
  );
  assert.equal(await readUnsigned(), 403);
  assert.equal(threads.length, before + 1);
});

test("a program that takes the port of a failed thread gets no credentials, and the process ends", async (t) => {
  const s3 = await startS3Server();
  t.onTestFinished(() => s3.close());
  const exit = vi.spyOn(process, "exit").mockReturnValue(undefined as never);
  t.onTestFinished(() => exit.mockRestore());
  const cache = await start(t, await temporaryDirectory(t));
  let received = "";
  const other = createServer((socket) => {
    socket.on("error", () => {});
    socket.on("data", (bytes) => {
      received += bytes.toString();
    });
  });
  await threads.at(-1)?.terminate();
  await listenOn(other, { host: "127.0.0.1", port: cache.access.port });
  const joined = joinCache(cache.access);
  const registering = joined.engineOptions({ ...s3.options, aws_session_token: "a-token" });
  registering.catch(() => {});
  await until(() => exit.mock.calls.length > 0);
  assert.deepEqual(exit.mock.calls[0], [1]);
  assert.equal(received, "");
  // Registrations go on once the thread is back.
  await new Promise((resolve) => other.close(resolve));
  assert.equal((await registering)["aws_endpoint"], `http://127.0.0.1:${cache.access.port}`);
});

test("a second process uses memory until the first one ends, and then the directory", async (t) => {
  const s3 = await startS3Server();
  t.onTestFinished(() => s3.close());
  s3.put(KEY, Buffer.alloc(300_000, 7));
  const directory = await temporaryDirectory(t);
  const first = await start(t, directory);
  const second = await start(t, directory);
  const { read } = await readerThrough(first, s3.options);
  const other = await readerThrough(second, s3.options);
  await read();
  await other.read();
  await other.read();
  assert.equal(other.figures().bytes.written, 0);
  assert.ok(other.figures().blocks.memory > 0);
  await first.close();
  await until(() => other.figures().stored.disk > 0);
});
