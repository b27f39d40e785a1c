import assert from "node:assert/strict";
import { once } from "node:events";
import { mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import { UsageError } from "../../src/config/option-spec.ts";
import { people, personFile, personStream, rowsOf } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgram } from "../support/program.ts";
import { runCommand } from "../support/run-command.ts";
import { type DirectoryServer, startDirectoryServer } from "../support/server.ts";

describe("commands on a catalog", () => {
  let server: DirectoryServer;
  let folder: string;
  let remove: () => Promise<void>;
  beforeAll(async () => {
    server = await startDirectoryServer();
    ({ path: folder, remove } = await temporaryDirectory());
    await writeFile(join(folder, "people.arrows"), personStream(people(5)));
    await writeFile(join(folder, "people.arrow"), personFile(people(5)));
  });
  afterAll(async () => {
    await server.close();
    await remove();
  });

  const places = (): Record<string, string[]> => ({
    rest: ["--uri", `http://127.0.0.1:${server.port}`],
    grpc: ["--address", `127.0.0.1:${server.port}`],
    dir: ["--root", join(folder, "own")],
  });

  /** Runs a command as users do, in a process of its own. */
  async function run(place: readonly string[], ...args: readonly string[]): Promise<string> {
    const { code, stdout, stderr } = await startProgram(...args, ...place).ended;
    assert.equal(code, 0, stderr);
    return stdout;
  }

  const runHere = (place: readonly string[], ...args: readonly string[]) =>
    runCommand([...args, ...place], { XDG_CONFIG_HOME: folder });

  /** Returns the message of a command that fails; it prints nothing, so that it can run in this process. */
  async function refused(kind: "usage" | "failure", name: string, ...args: readonly string[]) {
    const error = await runProgram([name, ...args], {}).then(
      () => assert.fail(`${name} ${args.join(" ")} succeeds`),
      (thrown: unknown) => thrown as Error,
    );
    assert.equal(error instanceof UsageError, kind === "usage", error.message);
    assert.match(error.message, /^[^\n]+$/, "one line");
    return error.message;
  }

  it("work, for people and for programs", async () => {
    const place = places()["rest"] as string[];
    assert.equal(await run(place, "create", "team", "--property", "owner=ada"), "created namespace team\n");
    const file = join(folder, "people.arrow");
    assert.match(
      await run(place, "import", file, "team/people"),
      /^imported .* into team\/people, version 1\n$/,
    );
    await run(place, "import", join(folder, "people.arrows"), "team/people", "--mode", "append");
    const [described, count, listed, rows, one] = await Promise.all([
      run(place, "describe", "team", "--json"),
      run(place, "count", "team/people", "--filter", "id < 3"),
      run(place, "ls", "team", "--json"),
      run(place, "query", "team/people", "--json", "--columns", "id,name", "--filter", "id = 4"),
      run(place, "query", "team/people", "--vector", "[3,0]", "--limit", "1", "--columns", "name"),
    ]);
    assert.deepEqual(JSON.parse(described).properties, { owner: "ada" });
    assert.equal(count, "6\n");
    assert.deepEqual(JSON.parse(listed), [{ kind: "table", path: "team/people" }]);
    assert.equal(rows, '{"id":4,"name":"p4"}\n'.repeat(2));
    assert.match(one, /^name +_distance\np3 +0\n$/);
    const toRoot = refused("usage", "rename", "team/people", "persons", ...place);
    assert.match(await toRoot, /NEW-PATH needs a namespace/);
    await run(place, "rename", "team/people", "team/persons");
    assert.match(await run(place, "describe", "team/persons"), /version +2\n[\s\S]*COLUMN +TYPE/);
    await run(place, "drop", "team/persons");
    assert.match(await run(place, "drop", "team", "--namespace", "--cascade"), /^removed namespace/);
  });

  for (const name of ["grpc", "dir"]) {
    it(`work over ${name}`, async () => {
      const place = places()[name] as string[];
      await runHere(place, "import", join(folder, "people.arrow"), `of-${name}`);
      assert.equal(await runHere(place, "count", `of-${name}`), "5\n");
    });
  }

  it("carry rows through files of every format", async () => {
    const place = places()["rest"] as string[];
    const at = (file: string) => join(folder, file);
    await runHere(place, "import", at("people.arrows"), "files");
    for (const format of ["arrow", "arrows", "feather", "parquet"])
      await runHere(place, "export", "files", at(`out.${format}`));
    assert.deepEqual(rowsOf(await readFile(at("out.arrow"))), rowsOf(personFile(people(5))));
    assert.deepEqual(rowsOf(await readFile(at("out.arrows"))), rowsOf(personFile(people(5))));
    await runHere(place, "import", at("out.parquet"), "again");
    await runHere(place, "export", "again", at("again.arrow"), "--filter", "id >= 2");
    assert.deepEqual(rowsOf(await readFile(at("again.arrow"))), rowsOf(personFile(people(3, 2))));
    assert.match(await refused("failure", "export", "files", at("out.arrow"), ...place), /exists; --force/);
  });

  it("leave a directory as it is when they only read", async () => {
    const root = join(folder, "untouched");
    await mkdir(root);
    const place = ["--root", root];
    assert.equal(await runHere(place, "ls"), "");
    assert.equal(await runHere(place, "jobs", "ls", "--json"), "[]\n");
    await assert.rejects(runHere(place, "query", "t"), /TableNotFound/);
    assert.deepEqual(await readdir(root), []);
    await runHere(place, "create", "team");
    assert.match(await runHere(place, "ls"), /namespace +team/);
  });

  it("measure a catalog", async () => {
    const place = places()["rest"] as string[];
    const figures = JSON.parse(
      await run(place, "bench", "--duration", "50ms", "--connections", "2", "--json"),
    );
    assert.ok(figures.calls > 0);
    assert.ok(figures.p50Ms <= figures.p99Ms);
  });

  it("say in one line what is wrong, and leave nothing half", async () => {
    const place = places()["rest"] as string[];
    await mkdir(join(folder, "bad"));
    const bad = (name: string) => join(folder, "bad", name);
    await writeFile(bad("junk.parquet"), "junk");
    await writeFile(bad("junk.arrow"), "junkjunkjunk");
    await writeFile(bad("cut.arrow"), personFile(people(5)).subarray(0, 700));
    const answers = await Promise.all([
      refused("usage", "ls", "--root", join(folder, "missing")),
      refused("usage", "count", ...place),
      refused("usage", "rename", "a", "b", "c", ...place),
      refused("usage", "ls", "--nonsense", ...place),
      refused("usage", "query", "t", "--vector", "three", ...place),
      refused("usage", "query", "t", "--vector", "[]", ...place),
      refused("usage", "import", "rows.txt", "t", ...place),
      refused("failure", "count", "missing/table", ...place),
      refused("failure", "ls", "--uri", "http://127.0.0.1:1"),
      refused("failure", "import", bad("missing.arrow"), "t", ...place),
      refused("failure", "import", bad("junk.parquet"), "t", ...place),
      refused("failure", "import", bad("junk.arrow"), "t", ...place),
      refused("failure", "import", bad("cut.arrow"), "t", ...place),
      refused("failure", "export", "missing", bad("out.parquet"), ...place),
      refused("failure", "describe", "t", ...place),
    ]);
    const expected = [
      /there is no directory/,
      /missing required argument 'TABLE'/,
      /too many arguments for 'rename'/,
      /nonsense/,
      /--vector must be a JSON array/,
      /--vector must be a JSON array/,
      /--format says what it is/,
      /\(TableNotFound|NamespaceNotFound\)/,
      /cannot be reached/,
      /missing\.arrow cannot be read/,
      /not a Parquet file/,
      /not an Arrow IPC file/,
      /has been cut off/,
      /\(TableNotFound\)/,
      /there is no table and no namespace t/,
    ];
    for (const [index, pattern] of expected.entries()) assert.match(answers[index] as string, pattern);
    assert.deepEqual((await readdir(join(folder, "bad"))).toSorted(), [
      "cut.arrow",
      "junk.arrow",
      "junk.parquet",
    ]);
  });

  it("end at Ctrl-C", async () => {
    const silent = createServer().listen(0, "127.0.0.1");
    await once(silent, "listening");
    const { port } = silent.address() as AddressInfo;
    const uri = `http://127.0.0.1:${port}`;
    // Its standard input stays open.
    const upload = ["import", "-", "t", "--format", "arrows", "--uri", uri];
    const endings = [];
    for (const args of [["ls", "--uri", uri], upload]) {
      const program = startProgram(...args);
      if (args === upload) program.child.stdin?.write(personStream(people(5)));
      await once(silent, "request");
      program.child.kill("SIGINT");
      const { code, stderr } = await program.ended;
      endings.push([code, stderr]);
    }
    silent.closeAllConnections();
    silent.close();
    assert.deepEqual(endings, [
      [130, "lance-gateway: cancelled\n"],
      [130, "lance-gateway: cancelled; the change may have been made, so look before you repeat it\n"],
    ]);
  });
});
