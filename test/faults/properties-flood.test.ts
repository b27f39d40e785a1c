import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { type TestContext, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgram } from "../support/program.ts";

const MIB = 1024 ** 2;
/** Size of all properties in the catalog. */
const CATALOG = 4 * MIB;
/** Size of the properties of tables that are allowed, in bytes. */
const ALLOWED = 60 * 1024;
/** Number of declares of 1 MiB, which are refused, and of allowed ones, of which about two thirds fit into the catalog. */
const [REFUSED_DECLARES, ALLOWED_DECLARES] = [200, 100];
/** Number of declares that are sent at a time. */
const AT_A_TIME = 16;
/** Maximum growth of the process by the flood: bodies that are being read, and what the allocator and the collector keep of them. */
const GROWTH = 256 * MIB;
/** Maximum growth by a start with a full catalog. */
const KEPT = 64 * MIB;

async function start(t: TestContext, root: string) {
  const options = ["--port", "0", "--max-catalog-properties", `${CATALOG / MIB}MiB`];
  const program = startProgram("serve", "--root", root, ...options);
  t.onTestFinished(() => void program.child.kill("SIGKILL"));
  const port = await program.listening();
  const post = async (path: string, body: object) => {
    const init = {
      method: "POST",
      body: JSON.stringify(body),
      headers: { "content-type": "application/json" },
    };
    const answer = await fetch(`http://127.0.0.1:${port}/v1/${path}`, init);
    return { status: answer.status, text: await answer.text() };
  };
  return {
    post,
    /** Returns the most memory that the process has taken, in bytes. */
    async peak() {
      const status = await readFile(`/proc/${program.child.pid}/status`, "utf8");
      return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
    },
    async stop() {
      program.child.kill();
      await program.ended;
    },
  };
}

/** Declares tables with a property of a size, many at a time; returns the number of answers of each status. */
async function flood(
  post: Awaited<ReturnType<typeof start>>["post"],
  name: string,
  { size, declares }: { size: number; declares: number },
) {
  const counts = new Map<number, number>();
  let next = 0;
  const value = "v".repeat(size);
  const declare = async () => {
    for (let i = next++; i < declares; i = next++) {
      const { status } = await post(`table/${name}${i}/declare`, { properties: { value } });
      counts.set(status, (counts.get(status) ?? 0) + 1);
    }
  };
  await Promise.all(Array.from({ length: AT_A_TIME }, declare));
  return counts;
}

test.skipIf(process.platform !== "linux")(
  "a flood of declares with large properties leaves memory bounded, also after a restart",
  async (t) => {
    const { path, remove } = await temporaryDirectory();
    t.onTestFinished(remove);
    const first = await start(t, path);
    await first.post("table/small/declare", {});
    const before = await first.peak();
    const refused = await flood(first.post, "large", { size: MIB, declares: REFUSED_DECLARES });
    assert.deepEqual([...refused], [[400, REFUSED_DECLARES]]);
    const allowed = await flood(first.post, "allowed", { size: ALLOWED, declares: ALLOWED_DECLARES });
    const held = Math.floor(CATALOG / ALLOWED);
    assert.deepEqual(new Set(allowed.keys()), new Set([200, 413]));
    assert.ok(Math.abs((allowed.get(200) ?? 0) - held) <= 2, `${allowed.get(200)} tables of about ${held}`);
    const grown = (await first.peak()) - before;
    assert.ok(grown < GROWTH, `the flood took ${Math.round(grown / MIB)} MiB`);
    await first.stop();

    const second = await start(t, path);
    const { status, text } = await second.post("table/allowed0/describe", {});
    assert.equal(status, 200, text);
    assert.equal(
      (await second.post("table/other/declare", { properties: { value: "v".repeat(ALLOWED) } })).status,
      413,
    );
    const kept = (await second.peak()) - before;
    assert.ok(kept < KEPT, `the full catalog took ${Math.round(kept / MIB)} MiB`);
    await second.stop();
  },
);
