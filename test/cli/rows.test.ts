import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it, vi } from "vitest";
import { people, personFile, personStream } from "../support/arrow.ts";
import { runCommand } from "../support/run-command.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

const LONG = "a text of more than sixty characters that a terminal cuts and a pipe does not cut";

describe("rows and versions that commands print", () => {
  let server: DirectoryServer;
  let rows: string;
  beforeAll(async () => {
    server = await startDirectoryServer();
    rows = join(server.root, "people.arrows");
    await writeFile(rows, personStream(people(300)));
    await writeFile(join(server.root, "people.arrow"), personFile(people(2)));
    await writeFile(join(server.root, "texts.csv"), `id,note,empty\n1,b,\n2,${LONG},x\n3,a,\n`);
    await run("import", join(server.root, "texts.csv"), "texts");
  });
  afterAll(() => server.close());

  const run = (...args: readonly string[]) =>
    runCommand([...args, "--uri", `http://127.0.0.1:${server.port}`], { XDG_CONFIG_HOME: server.root });

  /** Runs a command as if standard output were a terminal. */
  async function runAt(columns: number, ...args: readonly string[]): Promise<string> {
    const before = [process.stdout.isTTY, process.stdout.columns] as const;
    Object.assign(process.stdout, { isTTY: true, columns });
    try {
      return await run(...args);
    } finally {
      Object.assign(process.stdout, { isTTY: before[0], columns: before[1] });
    }
  }

  it("an import says how many rows it has written into which version", async () => {
    assert.equal(
      await run("import", rows, "counted"),
      `imported 300 rows of ${rows} into counted, version 1\n`,
    );
    const file = join(server.root, "people.arrow");
    const again = await run("import", file, "counted", "--mode", "append", "--json");
    assert.deepEqual(JSON.parse(again), { path: "counted", rows: 2, version: 2 });
    assert.match(
      await run("import", rows, "counted", "--mode", "exist-ok"),
      /^imported nothing: counted exists/,
    );
  });

  it("versions ls says what each version did", async () => {
    const table = ["history", "--mode", "overwrite"];
    await run("import", rows, ...table);
    await run("import", rows, "history", "--mode", "append");
    await run("import", join(server.root, "people.arrow"), ...table);
    const words =
      /\n3 +\S+ \S+ UTC +Overwrite +2 +\+2 -600\n2 .* Append +600 +\+300\n1 .* Overwrite +300 +\+300\n$/;
    assert.match(await run("versions", "ls", "history"), words);
    const [newest, older] = JSON.parse(await run("versions", "ls", "history", "--json"));
    assert.deepEqual([newest.operation, newest.rows_added, newest.rows_removed], ["Overwrite", 2, 600]);
    assert.deepEqual([older.rows, older.rows_added, older.rows_removed], [600, 300, 0]);
  });

  it("versions ls tells that there are older versions", async () => {
    await run("import", rows, "older");
    await run("import", rows, "older", "--mode", "append");
    const note = vi.spyOn(process.stderr, "write").mockImplementation(() => true);
    try {
      await run("versions", "ls", "older", "--limit", "1");
      await run("versions", "ls", "older", "--limit", "2");
      assert.deepEqual(note.mock.calls.flat(), ["There are older versions; --limit 0 lists all.\n"]);
    } finally {
      note.mockRestore();
    }
  });

  it("query prints all rows without --limit, and orders them", async () => {
    await run("import", rows, "ordered");
    const lines = (await run("query", "ordered", "--format", "csv", "--order-by", "id desc")).split("\n");
    assert.deepEqual([lines.length, lines[1]?.slice(0, 4)], [302, "299,"]);
    const notes = ["query", "texts", "--format", "csv", "--columns", "id"];
    assert.equal(await run(...notes, "--order-by", "empty NULLS FIRST, note"), "id\n3\n1\n2\n");
    assert.equal(await run(...notes, "--order-by", "empty desc, note desc"), "id\n2\n1\n3\n");
    await assert.rejects(run(...notes, "--order-by", "a b"), /--order-by must be columns/);
    await assert.rejects(
      run("query", "ordered", "--vector", "[0,1]", "--limit", "0"),
      /--limit 0 is for scans/,
    );
  });

  it("query cuts cells for a terminal only", async () => {
    assert.ok((await run("query", "texts")).includes(LONG));
    const shown = await runAt(200, "query", "texts");
    assert.ok(!shown.includes(LONG) && shown.includes("…"), shown);
  });

  it("query prints rows as lists if asked, or if a terminal is too narrow", async () => {
    const list = `-- row 1\nid     1\nnote   b\nempty  null\n-- row 2\nid     2\nnote   ${LONG}\nempty  x\n`;
    const query = ["query", "texts", "--order-by", "id", "--limit", "2"];
    assert.equal(await run(...query, "--expanded"), list);
    assert.equal(await runAt(20, ...query), list);
    assert.match(await runAt(20, ...query, "--format", "table"), /^id +note +empty\n/);
    await assert.rejects(run(...query, "--expanded", "--json"), /--expanded is for tables/);
  });

  it("describe names the types of columns in words, or as Arrow does", async () => {
    assert.match(await run("describe", "texts"), /\nid +64-bit integer +yes\nnote +text /);
    assert.match(await run("describe", "texts", "--arrow-types"), /\nid +int64 +yes\nnote +utf8 /);
  });

  it("ls prints entries as they arrive, and an empty list as nothing or as []", async () => {
    await run("create", "empty");
    assert.deepEqual([await run("ls", "empty"), await run("ls", "empty", "--json")], ["", "[]\n"]);
    await run("create", "full");
    for (const name of ["a", "b"]) await run("create", `full/${name}`);
    const entries = JSON.parse(await run("ls", "full", "--json"));
    assert.deepEqual(entries, [
      { kind: "namespace", path: "full/a" },
      { kind: "namespace", path: "full/b" },
    ]);
    assert.equal(await run("ls", "full"), "KIND       PATH\nnamespace  full/a\nnamespace  full/b\n");
  });
});
