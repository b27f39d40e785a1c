import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { readFile, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import type { RunningGateway } from "../../gateway/start-gateway.ts";
import { startWorkers } from "./supervisor.ts";

/** A backend whose files say what goes wrong: it hangs, waits after its files are read, or fails while the engine works; or its worker ends. */
const backendIn = (directory: string) => `
  import { appendFileSync, existsSync, rmSync, writeFileSync } from "node:fs";
  import { join } from "node:path";
  import { setTimeout as sleep } from "node:timers/promises";
  import { threadName } from "node:worker_threads";
  import { countUnbroken } from ${JSON.stringify(new URL("../../runtime/threads/unbroken-work.ts", import.meta.url).href)};
  const pathOf = (name) => join(${JSON.stringify(directory)}, name);
  const has = (name) => existsSync(pathOf(name));
  setInterval(() => {
    const end = "end " + threadName;
    if (!has(end)) return;
    rmSync(pathOf(end));
    throw new Error("nobody catches this");
  }, 10);
  async function work() {
    while (!has("go")) await sleep(10);
    writeFileSync(pathOf("worked"), "");
  }
  export default async () => {
    while (has("hang")) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 10);
    if (has("fail")) {
      countUnbroken(work());
      throw new Error("it cannot be opened");
    }
    const text = threadName + (has("changed") ? " has read the change\\n" : " has read nothing\\n");
    if (has("hold")) writeFileSync(pathOf("held"), "");
    while (has("hold")) await sleep(10);
    appendFileSync(pathOf("opened"), text);
    return { name: "files", operations: {}, ready: async () => true, async close() {} };
  };
`;

async function prepare() {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const file = join(path, "backend.mjs");
  await writeFile(file, backendIn(path));
  const lines: string[] = [];
  const log = pino({ level: "error" }, { write: (line: string) => void lines.push(line) });
  const args = ["--backend", file, "--port", "0", "--workers", "2", "--log-level", "error"];
  const configurationWith = (...more: readonly string[]) => ({
    options: readServeOptions(sourcesOf([...args, ...more])),
    databases: undefined,
  });
  return {
    configurationWith,
    async start(...more: readonly string[]) {
      const gateway = await startWorkers(configurationWith(...more), log, () =>
        assert.fail("a worker cannot be ended"),
      );
      onTestFinished(() => void gateway.close("cut off"));
      await expect.poll(() => gateway.ready).toBe(true);
      return gateway;
    },
    make: (name: string) => writeFile(join(path, name), ""),
    remove: (name: string) => rm(join(path, name)),
    has: (name: string) => existsSync(join(path, name)),
    read: (name: string) => readFile(join(path, name), "utf8"),
    text: () => lines.join(""),
  };
}

async function workersOf({ metrics }: RunningGateway): Promise<string | undefined> {
  return String((await metrics?.read())?.content).match(/^lance_gateway_workers (\d+)$/m)?.[1];
}

test("a replacement that cannot start ends after the engine's calls in it", async () => {
  const { start, make, remove, has, text } = await prepare();
  await start();
  await make("fail");
  await make("end worker 2");
  await expect.poll(text).toContain("a worker cannot be started");
  await remove("fail");
  await make("go");
  await expect.poll(() => has("worked")).toBe(true);
});

test("a first worker that cannot start ends after the engine's calls in it", async () => {
  const { start, make, has } = await prepare();
  await make("fail");
  await assert.rejects(start(), /it cannot be opened/);
  await make("go");
  await expect.poll(() => has("worked")).toBe(true);
});

test("a replacement that is blocked before it listens is replaced", async () => {
  const { start, make, remove, text } = await prepare();
  const gateway = await start("--worker-timeout", "1s");
  await make("hang");
  await make("end worker 1");
  await expect.poll(text).toMatch(/"reason":"blocked".*"msg":"a worker cannot be started"/);
  await remove("hang");
  await expect.poll(() => workersOf(gateway)).toBe("2");
});

test("a changed configuration is refused while no worker runs that could open it", async () => {
  const { start, make, remove, text, configurationWith } = await prepare();
  const gateway = await start();
  await make("hang");
  for (const worker of [1, 2]) await make(`end worker ${worker}`);
  await expect.poll(() => text().match(/"msg":"a worker is replaced"/g)).toHaveLength(2);
  const changed = configurationWith("--max-query-rows", "7");
  await assert.rejects(gateway.prepare(changed), /no worker runs/);
  await remove("hang");
  await expect.poll(() => gateway.prepare(changed).then((change) => change.commit())).toBeUndefined();
});

test("a worker that has read its files before they change reads them again, although it does not listen yet", async () => {
  const { start, make, remove, has, read, text } = await prepare();
  const gateway = await start();
  await make("hold");
  await make("end worker 2");
  await expect.poll(() => has("held")).toBe(true);
  await make("changed");
  await gateway.refresh();
  await remove("hold");
  await expect.poll(() => workersOf(gateway)).toBe("2");
  assert.match(await read("opened"), /worker 2 has read the change\n$/);
  assert.doesNotMatch(text(), /a worker cannot be started/);
});
