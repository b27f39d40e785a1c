import assert from "node:assert/strict";
import { readdir, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { people, personStream } from "../support/arrow.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";
import { remoteCalls } from "./remote-calls.ts";

/** The answer to a clone. */
interface Clone {
  readonly location: string;
  readonly version: number;
}

describe("clones of tables", () => {
  let server: DirectoryServer;
  let calls: ReturnType<typeof remoteCalls>;
  let source: string;
  beforeAll(async () => {
    server = await startDirectoryServer();
    calls = remoteCalls(server.port);
    await calls.upload("table/t/create/", personStream(people(6)));
    await calls.upload("table/t/insert/", personStream(people(3, 6)));
    await calls.post("table/t/create_index/", { column: "id", index_type: "BTREE" });
    await calls.post("table/t/delete/", { predicate: "id = 1" });
    await calls.post("table/t/tags/create/", { tag: "one", version: 1 });
    source = (await calls.post<{ location: string }>("table/t/describe/")).location;
  });
  afterAll(() => server.close());

  const clone = (name: string, options: object = {}) =>
    calls.post<Clone>(`table/${name}/clone`, { source_location: source, is_shallow: true, ...options });
  const count = (table: string, filter?: string) =>
    calls.post<unknown>(`table/${table}/count_rows/`, { predicate: filter });
  const newest = async (table: string) =>
    (await calls.post<{ version: number }>(`table/${table}/describe/`)).version;
  /** Returns how many names each data file of a table has. */
  async function namesOfFiles(location: string): Promise<number[]> {
    const files = await readdir(join(location, "data"));
    return Promise.all(files.map(async (file) => (await stat(join(location, "data", file))).nlink));
  }

  it("have the rows, the indices and the number of the version, and stay when their source is changed and dropped", async () => {
    await calls.upload("table/gone/create/", personStream(people(6)));
    await calls.post("table/gone/create_index/", { column: "id", index_type: "BTREE" });
    await calls.post("table/gone/delete/", { predicate: "id = 1" });
    const { version, location } = await clone("kept", { source_location: "gone" });
    assert.deepEqual([version, await newest("kept")], [await newest("gone"), version]);
    await calls.post("table/kept/delete/", { predicate: "id = 2" });
    assert.deepEqual([await count("gone"), await count("kept")], [5, 4]);
    await calls.post("table/gone/drop/");
    assert.deepEqual([await count("kept", "id > 2"), await count("kept", "id = 1")], [3, 0]);
    const { indexes } = await calls.post<{ indexes: { index_name: string }[] }>("table/kept/index/list/");
    assert.deepEqual(
      indexes.map((index) => index.index_name),
      ["id_idx"],
    );
    assert.match(location, /\/data\/[0-9a-v]{14}_kept$/);
  });

  it("share files on a disk if they are shallow, and have copies if not", async () => {
    const [shallow, deep] = [await clone("shallow"), await clone("deep", { is_shallow: false })];
    assert.ok((await namesOfFiles(shallow.location)).every((names) => names > 1));
    assert.ok((await namesOfFiles(deep.location)).every((names) => names === 1));
    assert.deepEqual([await count("shallow"), await count("deep")], [8, 8]);
  });

  it("are of a version, of a tag, and of a table in a namespace", async () => {
    await calls.post("namespace/team/create", {});
    assert.equal((await clone("first", { source_version: 1 })).version, 1);
    assert.equal((await clone("team$t", { source_tag: "one" })).version, 1);
    for (const [i, place] of ["team$t", `file://${source}/`, source].entries())
      await clone(`again${i}`, { source_location: place });
    assert.deepEqual(
      await Promise.all(["first", "team$t", "again0", "again1", "again2"].map((table) => count(table))),
      [6, 6, 6, 8, 8],
    );
  });

  it("are refused for other places and versions than those of a table", async () => {
    const places = [
      "/etc",
      "/",
      "",
      "../t.lance",
      `${source}/data`,
      `${source}-other`,
      "s3://bucket/t",
      server.base,
    ];
    for (const source_location of places)
      await calls.refused("TableNotFound", "table/other/clone", { source_location });
    const refusals = [
      ["TableVersionNotFound", { source_version: 99 }],
      ["TableTagNotFound", { source_tag: "nope" }, 400],
      ["InvalidInput", { source_version: 1, source_tag: "one" }],
    ] as const;
    for (const [name, options, status] of refusals)
      await calls.refused(name, "table/other/clone", { source_location: source, ...options }, status);
    await calls.refused("TableAlreadyExists", "table/t/clone", { source_location: source });
    await calls.refused("NamespaceNotFound", "table/nope$t/clone", { source_location: source });
    const left = (await readdir(server.base)).filter((name) => /other|nope|staging/.test(name));
    assert.deepEqual(left, []);
  });

  it("of a name that several callers want belong to one of them", async () => {
    const answers = await Promise.allSettled(Array.from({ length: 4 }, () => clone("wanted")));
    assert.equal(answers.filter(({ status }) => status === "fulfilled").length, 1);
    const directories = (await readdir(server.base)).filter((name) => name.endsWith("_wanted"));
    assert.equal(directories.length, 1);
    assert.equal(await count("wanted"), 8);
  });

  it("of a table that has lost a file are refused as DataLoss, and leave nothing behind", async () => {
    await calls.upload("table/damaged/create/", personStream(people(2)));
    const { location } = await calls.post<Clone>("table/damaged/describe/");
    await rm(join(location, "data"), { recursive: true });
    await calls.refused("DataLoss", "table/other/clone", { source_location: "damaged" });
    assert.deepEqual(
      (await readdir(server.base)).filter((name) => name.includes("other")),
      [],
    );
  });
});
