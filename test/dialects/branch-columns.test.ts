import assert from "node:assert/strict";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { connect } from "@lancedb/lancedb";
import { Field, LargeBinary, Schema, Struct, Table, tableToIPC, Utf8 } from "apache-arrow";
import { afterAll, beforeAll, describe, it } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";
import { type RemoteCalls, remoteCalls } from "./remote-calls.ts";

interface Named {
  readonly name: string;
}

/** The part of a comparison that the tests read. */
interface Diff {
  readonly parentVersion: number;
  readonly mainVersion: number;
  readonly branchVersion: number;
  readonly baseMoved: boolean;
  readonly rowSummary: Readonly<Record<"unchanged" | "newOnBase" | "newOnBranch", number>>;
  readonly addedColumns: readonly Named[];
  readonly errors: readonly { readonly code: string; readonly message: string }[];
}

interface Pick {
  readonly status: string;
  readonly diff: Diff;
  readonly preview: { readonly promotedColumns: readonly string[] };
  readonly mainVersionAfter?: number;
}

describe("columns of branches, over a directory", () => {
  let server: DirectoryServer;
  let calls: RemoteCalls;
  beforeAll(async () => {
    server = await startDirectoryServer();
    calls = remoteCalls(server.port);
  });
  afterAll(() => server.close());

  let tables = 0;
  /** Creates a table of three rows, one of which is deleted, with a branch that has a column more. */
  async function branched({ adds = true } = {}): Promise<string> {
    const name = `t${tables++}`;
    await calls.upload(`table/${name}/create/`, personStream(people(3)));
    await calls.post(`table/${name}/delete/`, { predicate: "id = 1" });
    await calls.post(`table/${name}/branches/create/`, { name: "trial" });
    if (adds)
      await onTrial(name, "add_columns", {
        new_columns: [{ name: "twice", expression: "nullif(id, 99) * 2" }],
      });
    return name;
  }
  const onTrial = (name: string, route: string, json: object) =>
    calls.post(`table/${name}/${route}/`, { ...json, branch: "trial" });
  const diff = (name: string, branch = "trial") =>
    calls.post<Diff>(`table/${name}/branches/diff/`, { from_branch: branch });
  const pick = (name: string, dryRun = false, branch = "trial") =>
    calls.post<Pick>(`table/${name}/branches/cherry_pick/`, { from_branch: branch, dry_run: dryRun });
  const codes = async (name: string, branch = "trial") =>
    (await diff(name, branch)).errors.map(({ code }) => code);

  /** Reads a table with the library alone. */
  async function rowsOf(name: string): Promise<unknown[]> {
    const db = await connect(server.base);
    const rows = (await (await db.openTable(name)).query().toArray()).map((row) => ({ ...row }));
    db.close();
    return rows.map(({ id, twice }) => [Number(id), twice === null ? null : Number(twice)]);
  }

  it("are compared with those of the main branch", async () => {
    const name = await branched();
    assert.deepEqual(await diff(name), {
      fromBranch: "trial",
      parentVersion: 2,
      mainVersion: 2,
      branchVersion: 3,
      baseMoved: false,
      rowCountMain: 2,
      rowCountBranch: 2,
      rowSummary: {
        unchanged: 2,
        newOnBase: 0,
        newOnBranch: 0,
        staleRecompute: 0,
        inputsChanged: 0,
        deltaAvailable: false,
      },
      addedColumns: [{ name: "twice", dataType: "int64", nullable: true }],
      removedColumns: [],
      changedColumns: [],
      addedIndexes: [],
      removedIndexes: [],
      errors: [],
    });
  });

  it("come to the main branch as one version, and stay there without the branch", async () => {
    const name = await branched();
    const tried = await pick(name, true);
    assert.deepEqual([tried.status, tried.preview.promotedColumns], ["ready", ["twice"]]);
    assert.equal(tried.mainVersionAfter, undefined);
    assert.equal((await diff(name)).mainVersion, 2);
    const { status, mainVersionAfter, preview } = await pick(name);
    assert.deepEqual([status, mainVersionAfter, preview.promotedColumns], ["cherryPicked", 3, ["twice"]]);
    await calls.post(`table/${name}/branches/delete/`, { name: "trial" });
    const expected = [
      [0, 0],
      [2, 4],
    ];
    assert.deepEqual(await rowsOf(name), expected);
    await calls.upload(`table/${name}/insert/`, personStream(people(1, 7)));
    assert.deepEqual(await rowsOf(name), [...expected, [7, null]]);
  });

  it("come once", async () => {
    const name = await branched();
    const outcomes = await Promise.all([1, 2, 3].map(() => pick(name)));
    assert.deepEqual(outcomes.map(({ status }) => status).sort(), ["cherryPicked", "failed", "failed"]);
    assert.deepEqual(await codes(name), ["baseMoved", "nothingToApply"]);
    assert.equal((await readdir(join(server.base, `${name}.lance`, "data"))).length, 2);
  });

  it("stay on the branch if either has changed otherwise, with the reason", async () => {
    for (const [expected, change] of [
      [["baseMoved"], (name: string) => calls.upload(`table/${name}/insert/`, personStream(people(1)))],
      [["baseMoved"], (name: string) => calls.post(`table/${name}/update/`, { updates: [["name", "'x'"]] })],
      [["baseMoved"], (name: string) => calls.post(`table/${name}/delete/`, { predicate: "id = 0" })],
      [["rowCountMismatch"], (name: string) => onTrial(name, "delete", { predicate: "id = 0" })],
      [["rowsChanged"], (name: string) => onTrial(name, "update", { updates: [["name", "'x'"]] })],
      [
        ["columnChanged"],
        (name: string) => onTrial(name, "alter_columns", { alterations: [{ path: "id", nullable: true }] }),
      ],
      [["columnRemoved"], (name: string) => onTrial(name, "drop_columns", { columns: ["name"] })],
    ] as const) {
      const name = await branched();
      await change(name);
      const version = (await diff(name)).mainVersion;
      const { status, diff: found, preview } = await pick(name);
      assert.deepEqual([status, preview.promotedColumns], ["failed", []]);
      assert.deepEqual(
        found.errors.map(({ code }) => code),
        expected,
      );
      assert.equal((await diff(name)).mainVersion, version);
    }
  });

  it("are those of a branch of the main branch that has added some", async () => {
    const plain = await branched({ adds: false });
    assert.deepEqual(await codes(plain), ["nothingToApply"]);
    await onTrial(plain, "create_index", { column: "id", index_type: "BTREE" });
    assert.deepEqual(await codes(plain), ["noColumnChanges"]);
    const nested = await branched();
    await calls.post(`table/${nested}/branches/create/`, { name: "second", from_branch: "trial" });
    assert.ok((await codes(nested, "second")).includes("parentNotMain"));
    for (const route of ["diff", "cherry_pick"]) {
      await calls.refused("TableBranchNotFound", `table/${plain}/branches/${route}/`, { from_branch: "no" });
      await calls.refused("TableNotFound", `table/missing/branches/${route}/`, { from_branch: "trial" });
    }
  });

  it("leave fragments that both branches have made apart in the summary of the rows", async () => {
    const name = await branched();
    await calls.upload(`table/${name}/insert/`, personStream(people(1, 7)));
    await calls.upload(`table/${name}/insert/?branch=trial`, personStream(people(1, 8)));
    const { rowSummary } = await diff(name);
    assert.deepEqual([rowSummary.unchanged, rowSummary.newOnBase, rowSummary.newOnBranch], [2, 1, 1]);
  });

  it("are refused if they have blobs", async () => {
    const name = await branched();
    const payload = new Struct([
      new Field("data", new LargeBinary(), true),
      new Field("uri", new Utf8(), true),
    ]);
    const blob = new Field("blob", payload, true, new Map([["ARROW:extension:name", "lance.blob.v2"]]));
    const stream = tableToIPC(new Table(new Schema([blob])), "stream");
    await calls.upload(`table/${name}/add_columns/?branch=trial`, stream);
    assert.deepEqual((await diff(name)).errors, []);
    for (const dry of [true, false]) {
      const wanted = { from_branch: "trial", dry_run: dry };
      const refusal = await calls.refused("Unsupported", `table/${name}/branches/cherry_pick/`, wanted);
      assert.match(refusal, /column "blob" has blobs/);
    }
  });

  it("come in spite of a new index of the main branch", async () => {
    const name = await branched();
    await calls.post(`table/${name}/create_index/`, { column: "id", index_type: "BTREE" });
    const before = await diff(name);
    assert.deepEqual([before.baseMoved, before.mainVersion > before.parentVersion], [false, true]);
    assert.equal((await pick(name)).status, "cherryPicked");
    assert.deepEqual(await rowsOf(name), [
      [0, 0],
      [2, 4],
    ]);
  });
});
