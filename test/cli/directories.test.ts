import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { chmod, mkdir, mkdtemp, readdir, readFile, rename, stat, utimes, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { COMMANDS, type CommandEntry } from "../../src/cli/commands/table.ts";
import { UsageError } from "../../src/config/option-spec.ts";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgramAs } from "../support/program.ts";
import { runCommand } from "../support/run-command.ts";

const OPEN_JOB = randomUUID();
const DONE_JOB = randomUUID();

/** The commands that only read, with their operands and options. */
const READS: readonly (readonly string[])[] = [
  ["ls"],
  ["ls", "--recursive"],
  ["describe", "t"],
  ["describe", "team"],
  ["count", "t"],
  ["count", "lost"],
  ["query", "t", "--limit", "0"],
  ["query", "t", "--vector", "[1,0]"],
  ["export", "t", "-", "--format", "csv"],
  ["stats", "t"],
  ["prewarm", "t"],
  ["versions ls", "t"],
  ["versions describe", "t", "1"],
  ["tags ls", "t"],
  ["branches ls", "t"],
  ["index ls", "t"],
  ["index stats", "t", "by_id"],
  ["jobs ls"],
  ["jobs describe", OPEN_JOB],
  ["jobs describe", DONE_JOB],
  ["bench", "--duration", "1ms", "--connections", "1"],
  ["gc"],
  ["gc", "--unlisted"],
  ["optimize", "--dry-run"],
  ["optimize", "--dry-run", "t"],
  ["migrate", "--dry-run"],
];

/** The commands that change a directory; those that wait do the jobs that nobody else does. */
const CHANGES = [
  ...["create", "drop", "rename", "import", "restore", "tags create", "tags update", "tags delete"],
  ...["branches create", "branches delete", "index create", "index drop", "jobs cancel"],
  ...["index wait", "jobs wait"],
];

/** The commands without a directory. */
const OTHERS = ["serve", "mcp", "ready", "config", "keys", "policy", "sql"];
const OTHER_GROUPS = ["context"];

/** A user of the system that owns nothing. */
const NOBODY = 65_534;

/** Everything in a directory: names, times, and contents. */
async function everythingIn(root: string): Promise<Record<string, string>> {
  const entries = await readdir(root, { recursive: true, withFileTypes: true });
  const paths = [root, ...entries.map((entry) => join(entry.parentPath, entry.name))];
  const facts = paths.map(async (path) => {
    const { mode, mtimeNs, ino } = await stat(path, { bigint: true });
    const text = (mode & 0o170000n) === 0o100000n ? (await readFile(path)).toString("base64") : "";
    return [path, [mode, mtimeNs, ino, text].join(" ")] as const;
  });
  return Object.fromEntries(await Promise.all(facts));
}

describe("commands on a directory", () => {
  let folder: string;
  let remove: () => Promise<void>;
  let catalog: string;
  const run = (root: string, [name = "", ...args]: readonly string[]) =>
    runCommand([...name.split(" "), ...args, "--root", root], { XDG_CONFIG_HOME: folder });

  async function put(path: string, content: unknown): Promise<void> {
    const file = join(catalog, "data", path);
    await mkdir(dirname(file), { recursive: true });
    await writeFile(file, JSON.stringify(content));
  }

  beforeAll(async () => {
    ({ path: folder, remove } = await temporaryDirectory());
    catalog = join(folder, "catalog");
    const rows = join(folder, "people.arrows");
    await writeFile(rows, personStream(people(5)));
    await run(catalog, ["import", rows, "t"]);
    await run(catalog, ["index create", "t", "id", "--type", "BTREE", "--name", "by_id"]);
    await run(catalog, ["import", rows, "t", "--mode", "append"]);
    await run(catalog, ["tags create", "t", "first", "1"]);
    await run(catalog, ["branches create", "t", "trial", "--version", "1"]);
    await run(catalog, ["create", "team"]);
    await run(catalog, ["import", rows, "lost"]);
    await rename(join(catalog, "data", "lost.lance"), join(catalog, "data", "unlisted.lance"));
    // Processes that have ended left these behind.
    const owner = { process: "another", pid: 1, kernel: null, started: null };
    const intent = { versions: [], deletions: [], locations: [], declared: [], departures: [] };
    await put(`.intents/${randomUUID()}.json`, { owner, intent });
    await put(`.work/${"0".repeat(32)}-${randomUUID()}`, owner);
    await put(".staging-00/data/file", "rows");
    const job = { kind: "refresh_view", table: ["t"], spec: {}, createdAt: 1, attempts: 1 };
    await put(`.jobs/open/${OPEN_JOB}.json`, { ...job, id: OPEN_JOB, state: "queued" });
    await put(`.jobs/done/${DONE_JOB}.json`, { ...job, id: DONE_JOB, state: "succeeded", finishedAt: 2 });
    const old = new Date("2026-01-01");
    for (const part of [".staging-00/data/file", ".intents", ".work"])
      await utimes(join(catalog, "data", part), old, old);
  });
  afterAll(() => remove());

  it("read it, change it or have nothing to do with it", () => {
    const named = (name: string, entry: CommandEntry) =>
      "commands" in entry ? Object.keys(entry.commands).map((each) => `${name} ${each}`) : [name];
    const all = Object.entries(COMMANDS).flatMap(([name, entry]) =>
      OTHER_GROUPS.includes(name) ? [] : named(name, entry),
    );
    const reads = new Set(READS.map(([name = ""]) => name));
    assert.deepEqual([...reads, ...CHANGES, ...OTHERS].toSorted(), all.toSorted());
  });

  for (const command of READS) {
    it(`leave a catalog as it is when they only read: ${command.join(" ")}`, async () => {
      const before = await everythingIn(catalog);
      const output = await run(catalog, command).catch((error: Error) => error.message);
      assert.notEqual(output, "", "it reads something");
      assert.deepEqual(await everythingIn(catalog), before);
    });

    it(`make no catalog when they only read: ${command.join(" ")}`, async () => {
      const root = await mkdtemp(join(folder, "empty-"));
      const before = await everythingIn(root);
      await run(root, command).catch(() => {});
      assert.deepEqual(await everythingIn(root), before);
    });
  }

  for (const command of [["gc", "--delete"], ["gc"], ["optimize"], ["migrate"]]) {
    it(`say that a directory has no catalog to look after, and make none: ${command.join(" ")}`, async () => {
      const root = await mkdtemp(join(folder, "empty-"));
      await assert.rejects(run(root, command), /^Error: there is no catalog in .*empty-.*; --root names/);
      assert.deepEqual(await readdir(root), []);
    });
  }

  it("call a directory that is missing wrong usage", async () => {
    for (const command of [["ls"], ["gc"]]) {
      const missing = run(join(folder, "missing"), command);
      await assert.rejects(missing, (error: Error) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, /^there is no directory .*missing; --root/);
        return true;
      });
    }
  });

  it("call no directory missing that they may not read", async (t) => {
    if (process.getuid?.() !== 0) return t.skip("it takes the right to act as another user");
    await chmod(folder, 0o700);
    for (const root of [folder, catalog]) {
      const { code, stderr } = await startProgramAs(NOBODY, "gc", "--root", root).ended;
      assert.equal(code, 1);
      assert.match(stderr, /^lance-gateway: cannot use .*: this process may not read it; change its owner/);
    }
  });

  it("leave the jobs of ended processes to gateways, which would else be broken off, or do them to the end", async () => {
    const jobs = join(catalog, "data", ".jobs");
    const before = await everythingIn(jobs);
    for (const command of [
      ["create", "other"],
      ["tags create", "t", "second", "2"],
    ])
      await run(catalog, command);
    assert.deepEqual(await everythingIn(jobs), before);
    await assert.rejects(run(catalog, ["jobs wait", OPEN_JOB]), /is failed: /);
  });
});
