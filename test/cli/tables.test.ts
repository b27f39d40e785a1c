import assert from "node:assert/strict";
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { type RemoteCalls, remoteCalls } from "../dialects/remote-calls.ts";
import { people, personStream } from "../support/arrow.ts";
import { startProgram } from "../support/program.ts";
import { runCommand } from "../support/run-command.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

describe("commands on a table", () => {
  let server: DirectoryServer;
  let calls: RemoteCalls;
  let rows: string;
  beforeAll(async () => {
    server = await startDirectoryServer();
    calls = remoteCalls(server.port);
    rows = join(server.root, "people.arrows");
    await writeFile(rows, personStream(people(300)));
  });
  afterAll(() => server.close());

  const run = (...args: readonly string[]) =>
    runCommand([...args, "--uri", `http://127.0.0.1:${server.port}`], { XDG_CONFIG_HOME: server.root });
  const json = async (...args: readonly string[]) => JSON.parse(await run(...args, "--json"));

  it("name versions, read and restore them", async () => {
    await run("import", rows, "t");
    await run("import", rows, "t", "--mode", "append");
    assert.equal(await run("tags", "create", "t", "first", "1"), "created tag first for version 1\n");
    await run("tags", "update", "t", "first", "2");
    assert.equal(await run("tags", "ls", "t"), "TAG    VERSION  BRANCH\nfirst  2        main\n");
    assert.deepEqual(await json("tags", "delete", "t", "first"), { tag: "first" });
    assert.deepEqual(await json("tags", "ls", "t"), []);
    const [newest, ...older] = await json("versions", "ls", "t");
    assert.deepEqual([newest.version, older.length], [2, 1]);
    assert.match(newest.created, /^\d{4}-\d\d-\d\dT[\d:.]+Z$/);
    assert.match(
      await run("versions", "ls", "t", "--limit", "1"),
      /^VERSION .*\n2 {8}[\d-]+ [\d:]+ UTC .*\n$/,
    );
    assert.match(await run("versions", "describe", "t", "1"), /^version +1\ncreated +.* UTC\nmanifest /);
    assert.equal(await run("restore", "t", "1"), "restored version 1\n");
    assert.equal(await run("count", "t"), "300\n");
    assert.match(await run("stats", "t"), /^rows +300\nsize +\S+ KiB\n/);
    assert.equal((await json("stats", "t")).num_rows, 300);
    assert.equal(await run("prewarm", "t"), "read t; the gateway has no cache on disk\n");
    assert.deepEqual(await json("prewarm", "t", "--column", "id"), { table: "t", cache: null });
  });

  it("import refuses rows after the end of a stream", async () => {
    const twice = join(server.root, "twice.arrows");
    await writeFile(twice, Buffer.concat([personStream(people(3)), personStream(people(3))]));
    await assert.rejects(
      run("import", twice, "twice"),
      /goes on after the end of its Arrow data, at byte \d+/,
    );
    await assert.rejects(run("count", "twice"), /not found/i);
  });

  it("keep branches apart", async () => {
    await run("import", rows, "branched");
    await run("branches", "create", "branched", "trial", "--version", "1");
    const [branch] = await json("branches", "ls", "branched");
    assert.deepEqual([branch.branch, branch.from, branch.version], ["trial", "main", 1]);
    assert.match(await run("branches", "ls", "branched"), /^BRANCH .*\ntrial +main +1 +[\d-]+ [\d:]+ UTC\n$/);
    assert.equal(await run("branches", "delete", "branched", "trial"), "deleted branch trial\n");
  });

  it("build an index, wait for it and drop it", async () => {
    await run("import", rows, "indexed");
    const made = await json("index", "create", "indexed", "id", "--type", "BTREE", "--wait");
    assert.equal(made.index, "id_idx");
    assert.match(await run("index", "ls", "indexed"), /\nid_idx +BTREE +id +succeeded +300 +0 /);
    assert.match(await run("index", "stats", "indexed", "id_idx"), /rows +300\nrows not yet +0\n/);
    await run("index", "wait", "indexed");
    await assert.rejects(
      run("index", "wait", "indexed", "none", "--timeout", "1ms"),
      /none has not all rows/,
    );
    assert.equal(await run("index", "drop", "indexed", "id_idx"), "dropped index id_idx\n");
    assert.deepEqual(await json("index", "ls", "indexed"), []);
  });

  it("follow jobs to their ends", async () => {
    await run("import", rows, "filled");
    await calls.post("table/filled/add_columns/", { new_columns: [{ name: "twice", computed: "id * 2" }] });
    const { job_id: job } = await calls.post<{ job_id: string }>("table/filled/backfill_column", {
      column: "twice",
    });
    assert.match(await run("jobs", "wait", job), /state +done\n/);
    const [listed] = await json("jobs", "ls", "filled");
    assert.deepEqual([listed.job, listed.table, listed.state], [job, "filled", "DONE"]);
    assert.deepEqual(await json("jobs", "ls", "t"), []);
    assert.equal((await json("jobs", "describe", job)).result.rows_assigned, 300);
    assert.match(await run("jobs", "cancel", job), /^asked job/);
    await assert.rejects(run("jobs", "describe", "none"), /\(TransactionNotFound\)/);
    const grpc = ["jobs", "ls", "--address", `127.0.0.1:${server.port}`];
    await assert.rejects(runCommand(grpc), /no jobs.*\(Unsupported\)/);
  });

  it("print rows as CSV and JSON, with times that people read", async () => {
    await run("import", rows, "printed");
    const chosen = ["query", "printed", "--columns", "id,name,vector", "--filter", "id < 2"];
    assert.equal(await run(...chosen, "--format", "csv"), 'id,name,vector\n0,p0,"[0,0]"\n1,p1,"[1,0]"\n');
    assert.equal(await run(...chosen, "--json"), await run(...chosen, "--format", "jsonl"));
    for (const format of ["csv", "table"])
      await assert.rejects(
        run(...chosen, "--json", "--format", format),
        new RegExp(`--json and --format ${format} contradict each other$`),
      );
    assert.equal((await run(...chosen)).split("\n")[1], "0   p0    [0,0]");
    assert.equal(await run("query", "printed", "--filter", "false"), "id  name  vector\n");
  });

  it("carry rows through CSV, tabs and lines of JSON, in files and pipes", async () => {
    await run("import", rows, "source");
    const at = (name: string) => join(server.root, name);
    await run("export", "source", at("rows.csv"));
    await run("export", "source", at("rows.tsv"));
    await run("export", "source", at("rows.jsonl"));
    assert.match(await readFile(at("rows.tsv"), "utf8"), /^id\tname\tvector\n0\tp0\t\[0,0\]\n/);
    for (const name of ["rows.csv", "rows.tsv", "rows.jsonl"]) {
      const table = name.replace(".", "-");
      await run("import", at(name), table);
      await run("import", at(name), "source", "--mode", "append");
      assert.equal(
        await run("export", table, "-", "--format", "csv"),
        await readFile(at("rows.csv"), "utf8"),
      );
    }
    assert.equal(await run("count", "source"), "1200\n");
    const uri = ["--uri", `http://127.0.0.1:${server.port}`];
    const created = startProgram("import", "-", "piped", "--format", "csv", ...uri);
    const appended = startProgram("import", "-", "source", "--format", "jsonl", "--mode", "append", ...uri);
    created.child.stdin?.end("id,name\n1,a\n2,b\n");
    appended.child.stdin?.end('{"id":1}\n{"name":"x","id":2}\n');
    assert.match((await created.ended).stdout, /^imported 2 rows of standard input into piped, version 1\n$/);
    assert.equal((await appended.ended).stderr, "");
    assert.equal(await run("count", "piped", "--filter", "id > 1"), "1\n");
    assert.equal(await run("count", "source"), "1202\n");
    await assert.rejects(run("import", "-", "piped"), /--format says what it is/);
  });

  it("append a text to a declared table, which takes its columns from it", async () => {
    await calls.post("table/declared/declare", {});
    const file = join(server.root, "declared.csv");
    await writeFile(file, "id,name\n1,a\n2,b\n");
    await run("import", file, "declared", "--mode", "append");
    await run("import", file, "declared", "--mode", "append");
    assert.equal(await run("count", "declared", "--filter", "id = 1"), "2\n");
    await assert.rejects(run("import", file, "nowhere", "--mode", "append"), /'nowhere' was not found/);
  });

  it("name the version and the table of a version that does not exist", async () => {
    await run("import", rows, "versioned");
    const message =
      /^\S+ Version not found error: version 99 does not exist in table 'versioned' \(TableVersionNotFound\)$/;
    for (const words of [
      ["count", "versioned", "--version", "99"],
      ["query", "versioned", "--version", "99"],
      ["restore", "versioned", "99"],
      ["versions", "describe", "versioned", "99"],
      ["tags", "create", "versioned", "tag", "99"],
      ["branches", "create", "versioned", "branch", "--version", "99"],
    ])
      await assert.rejects(run(...words), message);
  });
});
