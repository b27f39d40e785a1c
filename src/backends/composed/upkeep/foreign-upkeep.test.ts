import assert from "node:assert/strict";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { expect, type TestContext, test } from "vitest";
import { temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { people, personStream, rowsOf } from "../../../../test/support/arrow.ts";
import { createCaller } from "../../../../test/support/caller.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { UpkeepMetrics } from "../../../namespace/figures.ts";
import type { Backend, LanceNamespace } from "../../../namespace/lance-namespace.ts";
import { createLocalStore } from "../../dir/format/local/local-store.ts";
import { createDirectoryBackend } from "../../dir/index.ts";
import { createReadAhead } from "../../dir/operations/read/read-ahead.ts";
import { createComposedBackend } from "../index.ts";
import type { OpenedTable } from "../opened-tables.ts";
import { createForeignTables } from "./foreign-tables.ts";

const SILENT = pino({ level: "silent" });
const limits = { maxUploadBytes: 2 ** 26 };
const ID = ["n", "t"];

/** Times in which a test sees what takes minutes, in milliseconds. */
const TIMES = {
  settleMs: 20,
  waitMs: 100,
  quietMs: 50,
  busyMs: 50,
  commitQuietMs: 100,
  cheapRest: 0,
  retryMs: 20,
  sweepMs: 100,
  lookMs: 5,
  relookMs: 200,
};

/** Opens a catalog in a directory, with tables below a namespace, and gateways in front of it. */
async function open(t: TestContext, changed: (operations: LanceNamespace) => Partial<LanceNamespace>) {
  const root = await temporaryDirectory(t);
  const directory = await createDirectoryBackend({ root, log: SILENT });
  t.onTestFinished(() => directory.close());
  const operations = directory.operations as LanceNamespace;
  const catalog: Backend = {
    name: "catalog",
    operations: { ...operations, ...changed(operations) },
    ready: async () => true,
    close: async () => {},
  };
  const runs = { done: 0, fragments: 0, missed: [] as string[] };
  const metrics: UpkeepMetrics = {
    done({ fragmentsRemoved }) {
      runs.done += 1;
      runs.fragments += fragmentsRemoved;
    },
    missed: (outcome) => void runs.missed.push(outcome),
    watch: () => () => {},
  };
  const logged: { readonly level: number; readonly msg: string; readonly table?: string }[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(JSON.parse(line)) });
  const gateways: Backend[] = [];
  function gateway({ upkeep = true, sweeps = true, allowedLocations = [root], maxStalenessMs = 0 } = {}) {
    const own = upkeep ? { times: TIMES, metrics, sweeps } : undefined;
    const backend = createComposedBackend(catalog, { log, allowedLocations, maxStalenessMs, upkeep: own });
    gateways.push(backend);
    t.onTestFinished(() => backend.close());
    return createCaller({ backend, limits });
  }
  await createCaller({ backend: directory, limits }).createNamespace({ id: ["n"] });
  return { root, runs, logged, gateways, gateway };
}

type Client = ReturnType<Awaited<ReturnType<typeof open>>["gateway"]>;

/** Writes a table whose rows come one by one. */
async function write(client: Client, id = ID, properties: Record<string, string> = {}) {
  await client.createTable({ id, properties }, personStream(people(1)));
  for (let from = 1; from < 6; from++) await client.insertIntoTable({ id }, personStream(people(1, from)));
}

const fragmentsOf = async (client: Client, id = ID) =>
  Number((await client.getTableStats({ id })).fragmentStats?.numFragments);

const same = () => ({});

test("upkeep joins the fragments of writes through the gateway, and keeps their rows", async (t) => {
  const { gateway, runs } = await open(t, same);
  const client = gateway({ sweeps: false });
  await write(client);
  await expect.poll(() => fragmentsOf(client)).toBe(1);
  // A run is counted after its version can be read.
  await expect.poll(() => runs.fragments).toBeGreaterThanOrEqual(6);
  const rows = rowsOf((await client.queryTable({ id: ID })).bytes);
  assert.deepEqual(rows.map(({ id }) => Number(id)).sort(), [0, 1, 2, 3, 4, 5]);
});

test("upkeep finds tables page by page, and leaves those alone whose property says off", async (t) => {
  const pages: string[] = [];
  const { gateway } = await open(t, ({ listTables, listNamespaces }) => ({
    // A catalog with short pages.
    async listTables(request, call) {
      pages.push(call.id.join("."));
      return listTables({ ...request, limit: 1 }, call);
    },
    listNamespaces: (request, call) => listNamespaces({ ...request, limit: 1 }, call),
  }));
  const writer = gateway({ upkeep: false });
  const off = ["n", "off"];
  await write(writer);
  await write(writer, off, { "lance-gateway.upkeep": "off" });
  await write(writer, ["u"]);
  const reader = gateway();
  await expect.poll(() => fragmentsOf(reader)).toBe(1);
  await expect.poll(() => fragmentsOf(reader, ["u"])).toBe(1);
  assert.equal(await fragmentsOf(reader, off), 6);
  assert.ok(pages.filter((namespace) => namespace === "n").length >= 2);
});

test("upkeep asks the catalog without anything of a caller", async (t) => {
  const seen = new Set<string | undefined>();
  const { gateway } = await open(t, ({ describeTable }) => ({
    async describeTable(request, call) {
      seen.add(call.headers["authorization"]);
      return describeTable(request, call);
    },
  }));
  const client = gateway({ sweeps: false });
  const context = { "header.authorization": "Bearer of-a-caller" };
  await client.createTable({ id: ID, context }, personStream(people(1)));
  for (let from = 1; from < 6; from++)
    await client.insertIntoTable({ id: ID, context }, personStream(people(1, from)));
  await expect.poll(() => seen.has(undefined)).toBe(true);
  assert.ok(seen.has("Bearer of-a-caller"));
});

test("upkeep waits for a job of another gateway on the table", async (t) => {
  const { gateway, runs } = await open(t, same);
  const writer = gateway({ upkeep: false });
  await write(writer);
  const { location = "" } = await writer.describeTable({ id: ID });
  const jobs = join(location, ".lance-gateway", ".jobs", "open");
  const record = join(jobs, "01234567-89ab-4cde-8f01-23456789abcd.json");
  const job = {
    id: "01234567-89ab-4cde-8f01-23456789abcd",
    kind: "create_index",
    table: ID,
    spec: { location: location.slice(1) },
    state: "running",
    createdAt: Date.now(),
    attempts: 1,
    lease: { owner: "another", until: Date.now() + 60_000 },
  };
  await mkdir(jobs, { recursive: true });
  await writeFile(record, JSON.stringify(job));
  const reader = gateway();
  await expect.poll(() => runs.missed.includes("busy")).toBe(true);
  assert.equal(await fragmentsOf(reader), 6);
  // Its process has died.
  await writeFile(record, JSON.stringify({ ...job, lease: { ...job.lease, until: Date.now() - 1 } }));
  await expect.poll(() => fragmentsOf(reader)).toBe(1);
});

test("several gateways in front of a catalog do the work on a table once", async (t) => {
  const { gateway, runs } = await open(t, same);
  await write(gateway({ upkeep: false }));
  const [first] = [gateway(), gateway(), gateway()];
  await expect.poll(() => fragmentsOf(first)).toBe(1);
  await expect.poll(() => runs.fragments).toBeGreaterThanOrEqual(6);
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(runs.fragments, 6);
});

test("upkeep names a table once that it may not open, and looks after the others", async (t) => {
  const { root, gateway, logged } = await open(t, ({ describeTable }) => ({
    async describeTable(request, call) {
      const answer = await describeTable(request, call);
      return call.id.at(-1) === "away" ? { ...answer, location: "/elsewhere/away.lance" } : answer;
    },
    async listTables(_, call) {
      if (call.id[0] === "secret") throw new LanceError("PermissionDenied", "not yours");
      return {
        $typeName: "lance.namespace.v1.ListTablesResponse",
        context: {},
        tables: call.id.length === 0 ? ["away", "t"] : [],
      } as Awaited<ReturnType<LanceNamespace["listTables"]>>;
    },
  }));
  const writer = gateway({ upkeep: false });
  await writer.createNamespace({ id: ["secret"] });
  await write(writer, ["t"]);
  await writer.declareTable({ id: ["away"] }).catch(() => {});
  const reader = gateway({ allowedLocations: [root] });
  await expect.poll(() => fragmentsOf(reader, ["t"])).toBe(1);
  const named = () => logged.filter(({ table }) => table === "away");
  await expect.poll(() => named().length).toBe(1);
  await new Promise((resolve) => setTimeout(resolve, 500));
  assert.equal(named().length, 1);
  assert.match(named()[0]?.msg ?? "", /not looked after/);
});

test("a gateway that closes waits for no answer of the upstream", async (t) => {
  let asked = 0;
  const { gateway, gateways } = await open(t, () => ({
    listTables() {
      asked += 1;
      return new Promise(() => {});
    },
  }));
  gateway();
  await expect.poll(() => asked).toBe(1);
  await gateways[0]?.close();
  assert.equal(asked, 1);
});

test("upkeep follows the properties that a table has now, however old descriptions may be", async (t) => {
  let asked = 0;
  const { gateway } = await open(t, ({ describeTable }) => ({
    async describeTable(request, call) {
      asked += 1;
      const answer = await describeTable(request, call);
      return asked > 5 ? answer : { ...answer, properties: { "lance-gateway.upkeep": "off" } };
    },
  }));
  await write(gateway({ upkeep: false }));
  asked = 0;
  gateway({ maxStalenessMs: 3_600_000 });
  const reader = gateway({ upkeep: false });
  await expect.poll(() => asked).toBeGreaterThan(5);
  await expect.poll(() => fragmentsOf(reader)).toBe(1);
});

test("the log names a table once whose storage denies the work, which is tried again after minutes", async () => {
  const logged: string[] = [];
  const log = pino({ level: "warn" }, { write: (line) => void logged.push(JSON.parse(line).table) });
  const opened = {
    storage: { context: { store: createLocalStore() }, jobs: {} },
    table: { id: ID, location: "n/t.lance" },
    release() {},
    explain: (failure: unknown) => failure,
  } as unknown as OpenedTable;
  const { withTable, times } = createForeignTables({
    catalog: { operations: {} },
    openTable: async () => opened,
    readAhead: createReadAhead({ maxBytes: 1 }),
    log,
  });
  const { signal } = new AbortController();
  const fail = (error: Error) =>
    expect(withTable(ID, () => Promise.reject(error), signal)).rejects.toBe(error);
  await fail(new LanceError("ConcurrentModification", "another commit was faster"));
  assert.deepEqual(logged, []);
  for (let tries = 0; tries < 3; tries++)
    await fail(new LanceError("ServiceUnavailable", "the storage denies access"));
  assert.deepEqual(logged, ["n$t"]);
  assert.ok((times.maxRetryMs ?? 0) >= 600_000);
});
