import assert from "node:assert/strict";
import { mkdir, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { basename, join } from "node:path";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { people, personStream } from "../../../../../test/support/arrow.ts";
import { type Disk, machineDisk } from "../../format/local/disk.ts";
import { createLocalStore } from "../../format/local/local-store.ts";
import { migrate } from "../../maintenance/migrate.ts";
import { openDirectory } from "../../open-directory.ts";

const HIDDEN = ".lance-deregistered";
const DECLARED = ".lance-reserved";

/** Work beside a rename of a file or a directory. */
interface Meanwhile {
  fits(from: string, to: string): boolean;
  before?(): Promise<unknown>;
  /** Also when the rename has failed. */
  after?(): Promise<unknown>;
}

type Client = Awaited<ReturnType<typeof openClient>>;

/** Opens two gateways on one directory, of which the first can be held in the middle of its work. */
async function openTwo(t: TestContext) {
  const root = await temporaryDirectory(t);
  let meanwhile: readonly Meanwhile[] = [];
  const failures: unknown[] = [];
  const noted = (work: Promise<unknown> | undefined) => work?.catch((error: unknown) => failures.push(error));
  let beforeFirstSync: (() => Promise<unknown>) | undefined;
  const disk: Disk = {
    ...machineDisk,
    async syncBytes(file) {
      const before = beforeFirstSync;
      beforeFirstSync = undefined;
      await noted(before?.());
      await machineDisk.syncBytes(file);
    },
    async rename(from, to) {
      const found = meanwhile.find(({ fits }) => fits(from, to));
      meanwhile = meanwhile.filter((each) => each !== found);
      await noted(found?.before?.());
      await machineDisk.rename(from, to).finally(() => noted(found?.after?.()));
    },
  };
  const storage = { store: createLocalStore("/", disk), root, engineOptions: {} };
  const base = join(root, "data");
  return {
    watched: await openClient(t, root, { storage }),
    other: await openClient(t, root),
    directory: join(base, "t.lance"),
    base,
    /** Runs a call of the first gateway, with each of the other works beside the first rename that fits it. */
    async beside(call: () => Promise<unknown>, ...works: readonly Meanwhile[]): Promise<void> {
      meanwhile = works;
      await call();
      assert.deepEqual(meanwhile, [], "no rename fits");
      assert.deepEqual(failures, []);
    },
    /** Runs a call of the first gateway, with other work before the first file that it writes is durable. */
    async besideFirstWrite(call: () => Promise<unknown>, work: () => Promise<unknown>): Promise<void> {
      beforeFirstSync = work;
      await call();
      assert.equal(beforeFirstSync, undefined, "nothing was written");
      assert.deepEqual(failures, []);
    },
  };
}

/** The rename that takes the directory of a dropped table away. */
const takesAway = (_from: string, to: string) => basename(to).startsWith(".aside-");

/** The rename that shows the directory of a declared table to implementations that list directories. */
const reveals = (from: string, to: string) => from.endsWith(HIDDEN) && to.endsWith(DECLARED);

test("a drop does not remove what another caller creates under the name before the directory is gone", async (t) => {
  const { watched, other, beside } = await openTwo(t);
  await watched.call("declareTable", "t");
  await beside(() => watched.call("dropTable", "t"), {
    fits: takesAway,
    before: () => other.upload("createTable", "t", {}, personStream(people(3))),
  });
  assert.equal((await other.call("countTableRows", "t")).count, 3n);
});

test("a name whose directory is about to be removed is free, and not a table without a row", async (t) => {
  const { watched, other, directory, beside } = await openTwo(t);
  await watched.call("declareTable", "t");
  await beside(() => watched.call("dropTable", "t"), {
    fits: takesAway,
    async before() {
      // Another program may show the directory after the drop has hidden it.
      await rm(join(directory, HIDDEN));
      await assert.rejects(other.call("tableExists", "t"), failsWith("TableNotFound"));
      await assert.rejects(other.call("dropTable", "t"), failsWith("TableNotFound"));
      assert.deepEqual((await other.call("listTables", "")).tables, []);
      assert.deepEqual((await other.call("listAllTables", "")).tables, []);
      await other.call("declareTable", "t");
    },
  });
  await other.call("tableExists", "t");
  await watched.call("dropTable", "t");
});

test("a migration gives no row to a table whose directory is about to be removed", async (t) => {
  const { watched, other, directory, base, beside } = await openTwo(t);
  await watched.call("declareTable", "t");
  await beside(() => watched.call("dropTable", "t"), {
    fits: takesAway,
    async before() {
      await rm(join(directory, HIDDEN));
      const { context, close } = await openDirectory({ root: base, log: silent });
      assert.deepEqual(await migrate(context, false).finally(close), []);
    },
  });
  await assert.rejects(other.call("tableExists", "t"), failsWith("TableNotFound"));
});

test("a table without a row is dropped by one caller alone", async (t) => {
  const { watched, other, directory, beside } = await openTwo(t);
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, DECLARED), "");
  await beside(() => watched.call("dropTable", "t"), {
    fits: takesAway,
    before: () => assert.rejects(other.call("dropTable", "t"), failsWith("TableNotFound")),
  });
  await assert.rejects(other.call("tableExists", "t"), failsWith("TableNotFound"));
});

for (const [what, change] of [
  ["renamed", (client: Client) => client.call("renameTable", "t", { newTableName: "u" })],
  ["deregistered", (client: Client) => client.call("deregisterTable", "t")],
] as const) {
  test(`a table without a row that is dropped meanwhile is not ${what}`, async (t) => {
    const { watched, other, directory, besideFirstWrite } = await openTwo(t);
    await mkdir(directory, { recursive: true });
    await writeFile(join(directory, DECLARED), "");
    await besideFirstWrite(
      () => assert.rejects(change(watched), failsWith("TableNotFound")),
      () => other.call("dropTable", "t"),
    );
    for (const name of ["t", "u"])
      await assert.rejects(other.call("tableExists", name), failsWith("TableNotFound"));
    await other.call("declareTable", "t");
  });
}

test("a declaration has succeeded when its table is dropped and its location claimed again at once", async (t) => {
  const { watched, other, directory, beside } = await openTwo(t);
  await beside(() => watched.call("declareTable", "t"), {
    fits: reveals,
    before: () => other.call("dropTable", "t"),
    async after() {
      await mkdir(directory, { recursive: true });
      await writeFile(join(directory, HIDDEN), "claimed by another");
    },
  });
  await assert.rejects(other.call("tableExists", "t"), failsWith("TableNotFound"));
  assert.deepEqual(await readdir(directory), [HIDDEN]);
});

test("a create learns that its table was filled by another caller and then dropped", async (t) => {
  const { watched, other, beside } = await openTwo(t);
  await other.call("declareTable", "t");
  const isData = (path: string) => path.endsWith(".lance");
  await beside(
    () =>
      assert.rejects(
        watched.upload("createTable", "t", {}, personStream(people(3))),
        failsWith("ConcurrentModification"),
      ),
    {
      fits: (from, to) => isData(from) && to.includes("/t.lance/"),
      after: () => other.upload("createTable", "t", {}, personStream(people(2))),
    },
    {
      fits: (from, to) => from.includes("/t.lance/") && isData(to),
      before: () => other.call("dropTable", "t"),
    },
  );
});

test("callers that declare a name of the root at the same time leave one directory", async (t) => {
  const { watched, other, base } = await openTwo(t);
  const clients = [watched, other, watched, other];
  for (let round = 0; round < 5; round++) {
    const results = await Promise.allSettled(clients.map((client) => client.call("declareTable", "t")));
    const refusals = results.flatMap((result) => (result.status === "rejected" ? [result.reason] : []));
    assert.equal(refusals.length, clients.length - 1);
    for (const refusal of refusals) assert.ok(failsWith("TableAlreadyExists")(refusal), String(refusal));
    const tables = (await readdir(base)).filter((name) => /^[^._]/.test(name));
    const { location = "" } = await other.call("describeTable", "t");
    assert.deepEqual(tables, [basename(location)]);
    assert.deepEqual(await readdir(location), [DECLARED]);
    await other.call("dropTable", "t");
  }
});

test("a declaration beside the rest of a refused one gets its usual place", async (t) => {
  const { watched, directory } = await openTwo(t);
  await watched.call("declareTable", "first");
  await watched.call("renameTable", "first", { newTableName: "t" });
  await assert.rejects(watched.call("declareTable", "t"), failsWith("TableAlreadyExists"));
  await watched.call("dropTable", "t");
  const { location } = await watched.call("declareTable", "t");
  assert.equal(location, directory);
});

/** Leaves the claim of a process that ended before its row, some hours ago. */
async function leaveClaim(directory: string, hours: number): Promise<void> {
  await mkdir(directory, { recursive: true });
  await writeFile(join(directory, HIDDEN), "claimed by a process that has ended");
  await makeOld(directory, hours);
}

async function makeOld(directory: string, hours: number): Promise<void> {
  const time = Date.now() / 1000 - hours * 3600;
  await utimes(join(directory, HIDDEN), time, time);
}

test("a name whose former claimer ended before its row gets its usual place again after an hour", async (t) => {
  const { watched, other, directory } = await openTwo(t);
  await leaveClaim(directory, 2);
  await watched.call("declareTable", "t");
  assert.equal((await other.call("describeTable", "t")).location, directory);
  assert.deepEqual(await readdir(directory), [DECLARED]);
});

test("a young claim, and one beside other files, keeps its place", async (t) => {
  for (const [hours, file] of [
    [0, undefined],
    [2, "data.lance"],
  ] as const) {
    const { watched, directory } = await openTwo(t);
    await leaveClaim(directory, hours);
    if (file !== undefined) await writeFile(join(directory, file), "");
    const { location } = await watched.call("declareTable", "t");
    assert.notEqual(location, directory);
    assert.ok((await readdir(directory)).includes(HIDDEN));
  }
});

test("a caller that is slow after its claim keeps its table, although others had the place meanwhile", async (t) => {
  const { watched, other, directory, beside } = await openTwo(t);
  await beside(() => watched.call("declareTable", "t"), {
    fits: (from, to) => from.includes(".staging-") && to === directory,
    async after() {
      await makeOld(directory, 2);
      assert.equal((await other.call("declareTable", "t")).location, directory);
      await other.call("dropTable", "t");
    },
  });
  assert.equal((await other.call("describeTable", "t")).location, directory);
  assert.deepEqual(await readdir(directory), [DECLARED]);
});

test("a count beside a table that is being created in the place of a dropped one finds no data", async (t) => {
  const { watched, other, directory } = await openTwo(t);
  await watched.upload("createTable", "t", {}, personStream(people(3)));
  await watched.call("countTableRows", "t");
  await other.call("dropTable", "t");
  await other.call("declareTable", "t");
  // The first version of a table appears in a directory that exists already.
  await mkdir(join(directory, "_versions"));
  await assert.rejects(watched.call("countTableRows", "t"), failsWith("TableNotFound"));
});
