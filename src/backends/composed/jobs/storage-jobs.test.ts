import assert from "node:assert/strict";
import { mkdir, readdir, readFile, rm, utimes, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { type TestContext, test } from "vitest";
import { silent, temporaryDirectory } from "../../../../test/fixtures/dir/directory-backend.ts";
import { endless, gate } from "../../../../test/fixtures/dir/jobs.ts";
import { beginCall } from "../../../../test/support/caller.ts";
import { until } from "../../../../test/support/until.ts";
import type { Call } from "../../../namespace/call/call.ts";
import { LanceError } from "../../../namespace/errors.ts";
import { METHODS } from "../../../namespace/operations/operations.ts";
import type { FoundTable } from "../../dir/data/table-source.ts";
import { createLocalStore } from "../../dir/format/local/local-store.ts";
import type { Job } from "../../dir/jobs/job.ts";
import { createJobRoom, type JobRoom } from "../../dir/jobs/room.ts";
import type { JobWork } from "../../dir/jobs/running-jobs.ts";
import type { KeptTable } from "../kept-table.ts";
import { createStorageJobs, type JobCall } from "./storage-jobs.ts";

const LOCATION = "t.lance";
const TABLE: FoundTable = {
  id: ["ns", "t"],
  location: LOCATION,
  path: "/t.lance",
  properties: {},
  listed: true,
};
const THERE: Omit<KeptTable, "table"> = {
  isThere: async () => true,
  renew: async () => undefined,
  release() {},
};

const callOf = (name: string): Call =>
  beginCall(METHODS.createTableIndex, { principal: { by: "key", name } as unknown as Call["principal"] });

/** Opens a gateway's jobs on the tables of a directory. */
function gateway(t: TestContext, root: string, work: JobWork = endless, room: JobRoom = createJobRoom()) {
  const noted: string[] = [];
  const onJobs = (id: readonly string[]) => void noted.push(id.join("."));
  const times = { leaseMs: 300, retryMs: 0 };
  const jobs = createStorageJobs({ store: createLocalStore(root), room, log: silent, onJobs, times });
  jobs.ofRows.define("work", work);
  t.onTestFinished(() => jobs.close());
  /** Begins a call of a caller on the table. */
  const begin = (name: string, kept: Partial<KeptTable> = {}): JobCall => ({
    call: callOf(name),
    table: TABLE,
    keep: () => ({ ...THERE, table: TABLE, ...kept }),
  });
  async function start(name: string, kept: Partial<KeptTable> = {}): Promise<string> {
    const by = begin(name, kept);
    const end = jobs.bind(by);
    const request = { kind: "work", table: TABLE.id, spec: { location: LOCATION } };
    const { id } = await jobs.ofRows.submit(request, name, by.call);
    end();
    return id;
  }
  const state = async (id: string) => (await jobs.of(TABLE).get(id))?.state;
  return { jobs, begin, start, state, noted };
}

test("a job's record is in the directory of its table, where other gateways find it by its id", async (t) => {
  const root = await temporaryDirectory(t);
  const [held, open] = gate();
  const first = gateway(t, root, async () => {
    await held;
    return { rows: 1 };
  });
  const second = gateway(t, root);
  const id = await first.start("a");
  assert.match(id, /^[0-9a-f-]{36}\.[\w-]+$/);
  await until(async () => (await second.state(id)) === "running");
  assert.deepEqual(await readdir(join(root, LOCATION, ".lance-gateway", ".jobs", "open")), [
    `${id.split(".")[0]}.json`,
  ]);
  open();
  await until(async () => (await second.state(id)) === "succeeded");
  assert.deepEqual(
    (await second.jobs.of(TABLE).list()).map((job) => [job.id, job.table]),
    [[id, TABLE.id]],
  );
  assert.deepEqual(first.noted, ["ns.t"]);
});

test("a job is cancelled through another gateway", async (t) => {
  const root = await temporaryDirectory(t);
  const [first, second] = [gateway(t, root), gateway(t, root)];
  const id = await first.start("a");
  await until(async () => (await second.state(id)) === "running");
  assert.equal(await second.jobs.of(TABLE).cancel(id), true);
  await until(async () => (await first.state(id)) === "cancelled");
});

test("a job of a gateway that has ended goes on with the next call of its caller, and of no other", async (t) => {
  const root = await temporaryDirectory(t);
  const first = gateway(t, root);
  const id = await first.start("a");
  await first.jobs.close();
  const second = gateway(t, root, async () => ({ rows: 1 }));
  await second.jobs.goOn(second.begin("b"));
  assert.equal(await second.state(id), "queued");
  // A look for an index that is being built is enough.
  const end = second.jobs.bind(second.begin("a"));
  assert.equal((await second.jobs.ofRows.open(LOCATION)).length, 1);
  await until(async () => (await second.state(id)) === "succeeded");
  end();
});

test("a record that names another table is not acted on", async (t) => {
  const root = await temporaryDirectory(t);
  const first = gateway(t, root);
  const id = await first.start("a");
  await first.jobs.close();
  let ran = 0;
  const second = gateway(t, root, async () => ({ rows: ++ran }));
  const by = second.begin("a");
  await second.jobs.goOn({ ...by, table: { ...TABLE, id: ["ns", "other"] } });
  await second.jobs.goOn({ ...by, table: { ...TABLE, location: "other.lance" } });
  assert.deepEqual([await second.state(id), ran], ["queued", 0]);
});

test("a job on a table that is gone upstream fails, and writes nothing where the table was", async (t) => {
  const root = await temporaryDirectory(t);
  const own = gateway(t, root);
  let isThere = true;
  const id = await own.start("a", { isThere: async () => isThere });
  await until(async () => (await own.state(id)) === "running");
  isThere = false;
  await assert.rejects(own.jobs.ofRows.ended(id, 60_000), /no table "ns\$t" at this location/);
  await rm(join(root, LOCATION), { recursive: true });
  await own.jobs.close();
  assert.deepEqual(await readdir(root), []);
});

test("a job fails with the reason when the upstream denies the table to its caller", async (t) => {
  const root = await temporaryDirectory(t);
  const own = gateway(t, root);
  const isThere = async () => {
    throw new LanceError("PermissionDenied", "not yours");
  };
  const id = await own.start("a", { isThere });
  const job = await own.jobs.ofRows.ended(id, 60_000);
  assert.deepEqual([job?.state, job?.error?.name], ["failed", "PermissionDenied"]);
  assert.match(job?.error?.message ?? "", /denies the table .*: not yours/);
});

test("a job goes on without the upstream, until its credentials end and cannot be renewed", async (t) => {
  const root = await temporaryDirectory(t);
  const own = gateway(t, root);
  const isThere = async () => {
    throw new LanceError("ServiceUnavailable", "down");
  };
  let failure: string | undefined;
  const ends = Date.now() + 1_500;
  const renew = async () => ({ ends, life: 1_500, failure });
  const id = await own.start("a", { isThere, renew });
  await sleep(500);
  assert.equal(await own.state(id), "running");
  failure = "the token has expired";
  const job = await own.jobs.ofRows.ended(id, 60_000);
  assert.ok(Date.now() < ends, "the record is written with the credentials");
  assert.equal(job?.error?.name, "Unauthenticated");
  assert.match(job?.error?.message ?? "", /cannot be renewed: the token has expired/);
});

test("the jobs of all storages share the room, which callers take turns to use", async (t) => {
  const room = createJobRoom(1);
  const [held, open] = gate();
  const order: string[] = [];
  const work: JobWork = async ({ startedBy = "" }) => {
    order.push(startedBy);
    await held;
    return {};
  };
  const one = gateway(t, await temporaryDirectory(t), work, room);
  const other = gateway(t, await temporaryDirectory(t), work, room);
  const ids = [await one.start("a"), await one.start("a"), await one.start("a")];
  const late = await other.start("b");
  assert.deepEqual([room.size, room.countOf("a"), room.countOf("b")], [4, 3, 1]);
  await until(async () => order.length === 1);
  open();
  await until(async () => (await other.state(late)) === "succeeded");
  for (const id of ids) await until(async () => (await one.state(id)) === "succeeded");
  assert.notEqual(order.at(-1), (await other.jobs.of(TABLE).get(late))?.startedBy);
  await until(async () => room.size === 0);
});

/** Changes the open records of the table's jobs, as any writer of its directory can. */
async function forge(root: string, copies: number, change: (record: Job, copy: number) => object) {
  const directory = join(root, LOCATION, ".lance-gateway", ".jobs", "open");
  const [name = ""] = await readdir(directory);
  const record = JSON.parse(await readFile(join(directory, name), "utf8")) as Job;
  for (let copy = 1; copy <= copies; copy++) {
    const id = `00000000-0000-4000-8000-${String(copy).padStart(12, "0")}`;
    await writeFile(
      join(directory, `${id}.json`),
      JSON.stringify({ ...record, id, ...change(record, copy) }),
    );
  }
}

test("records that a writer of the directory has made take no room from other callers", async (t) => {
  const root = await temporaryDirectory(t);
  const first = gateway(t, root);
  await first.start("a");
  await first.jobs.close();
  await forge(root, 700, () => ({}));
  const room = createJobRoom();
  const second = gateway(t, root, endless, room);
  await second.jobs.goOn(second.begin("a"));
  assert.ok(room.size > 1 && room.size <= 500, `${room.size} jobs`);
  await second.start("b");
});

test("a forged record ends, and lets the gateway close", async (t) => {
  const root = await temporaryDirectory(t);
  const first = gateway(t, root);
  await first.start("a");
  await first.jobs.close();
  await forge(root, 1, () => ({ attempts: 1e15, begun: 5 }));
  const second = gateway(t, root, async () => ({ rows: 1 }));
  await second.jobs.goOn(second.begin("a"));
  await second.jobs.close();
});

test("a caller who does not have the table any more ends no job of another caller", async (t) => {
  const root = await temporaryDirectory(t);
  const [held, open] = gate();
  let began = 0;
  const own = gateway(t, root, async (job, signal) => {
    if (++began === 1) return endless(job, signal);
    await held;
    return { rows: 1 };
  });
  let isThere = true;
  const lost = await own.start("a", { isThere: async () => isThere });
  await until(async () => began === 1);
  const kept = await own.start("b");
  await until(async () => (await own.state(lost)) === "running" && (await own.state(kept)) === "running");
  const waiting = own.jobs.ofRows.ended(kept, 60_000);
  isThere = false;
  await assert.rejects(own.jobs.ofRows.ended(lost, 60_000), /no table/);
  open();
  assert.equal((await waiting)?.state, "succeeded");
  assert.equal(await own.state(kept), "succeeded");
});

test("a job that no process runs is cancelled by any caller who may write its record", async (t) => {
  const root = await temporaryDirectory(t);
  const first = gateway(t, root);
  const id = await first.start("a");
  await first.jobs.close();
  let ran = 0;
  const second = gateway(t, root, async () => ({ rows: ++ran }));
  assert.equal(await second.jobs.of(TABLE).cancel(id), true);
  await second.jobs.goOn(second.begin("b"));
  await until(async () => (await second.state(id)) === "cancelled");
  assert.equal(ran, 0);
});

test("a job of a table that was dropped does not go on with a new table in the same place", async (t) => {
  const root = await temporaryDirectory(t);
  const versions = join(root, LOCATION, "_versions");
  await mkdir(versions, { recursive: true });
  const create = (at: number) => writeVersion(join(versions, "18446744073709551614.manifest"), at);
  await create(Date.now() - 60_000);
  const first = gateway(t, root);
  const left = await first.start("a");
  await first.jobs.close();
  let ran = 0;
  const second = gateway(t, root, async (_, signal) => {
    ran += 1;
    return endless(_, signal);
  });
  await second.jobs.goOn(second.begin("a"));
  await until(async () => ran === 1);
  await create(Date.now() + 60_000);
  await assert.rejects(second.jobs.ofRows.ended(left, 60_000), /no table/);
  await second.jobs.close();
  const third = gateway(t, root, async () => ({ rows: ++ran }));
  await third.jobs.goOn(third.begin("a"));
  const end = third.jobs.bind(third.begin("a"));
  assert.deepEqual(await third.jobs.ofRows.open(LOCATION), []);
  end();
  assert.equal(ran, 1);
});

async function writeVersion(path: string, at: number): Promise<void> {
  await writeFile(path, "");
  await utimes(path, at / 1000, at / 1000);
}
