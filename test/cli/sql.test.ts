import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFile, stat } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { connect } from "../../src/client/index.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { MAIN, NODE } from "../support/node-command.ts";
import { runCommand } from "../support/run-command.ts";
import { runInTerminal, type Typed } from "../support/terminal.ts";

describe("lance-gateway sql", () => {
  let folder: Awaited<ReturnType<typeof temporaryDirectory>>;
  let root: string;
  beforeAll(async () => {
    folder = await temporaryDirectory();
    root = join(folder.path, "root");
    await using ns = await connect("dir", { root });
    await ns.createNamespace({ id: ["team"] });
    await ns.createTable({ id: ["team", "people"] }, [
      { id: 1, name: "Ada" },
      { id: 2, name: "Grace" },
    ]);
  });
  afterAll(() => folder.remove());
  const run = (...args: readonly string[]) => runCommand(["sql", ...args, "--root", root]);

  /** Types keys into the command in a terminal, and returns what it shows. */
  const typed = (keys: Typed, ...args: readonly string[]) => {
    const environment = { XDG_STATE_HOME: folder.path, XDG_CONFIG_HOME: folder.path };
    return runInTerminal(["sql", ...args, "--root", root], keys, environment).shown;
  };

  it("writes rows to files of every format, and replaces none without being asked", async () => {
    for (const ending of ["arrow", "arrows", "parquet", "csv", "tsv", "jsonl"]) {
      const file = join(folder.path, `rows.${ending}`);
      await run("SELECT * FROM team.people ORDER BY id", "--output", file);
      await runCommand(["import", file, `from_${ending}`, "--root", root]);
      expect(await run(`SELECT name FROM from_${ending} WHERE id = 2`, "--format", "csv")).toBe(
        "name\nGrace\n",
      );
      await expect(run("SELECT 1", "--output", file)).rejects.toThrow(/exists; --force replaces it/);
    }
    expect(await readFile(join(folder.path, "rows.tsv"), "utf8")).toBe("id\tname\n1\tAda\n2\tGrace\n");
  });

  it("creates, fills, refreshes, describes, lists and drops materialized views", async () => {
    const made = "CREATE MATERIALIZED VIEW team.few AS SELECT name FROM team.people WHERE id < 2";
    expect(await run(made, "--format", "csv")).toBe("Count\n1\n");
    expect(await run("FROM team.few", "--format", "csv")).toBe("name\nAda\n");
    await run("INSERT INTO team.people VALUES (0, 'Alan')");
    expect(await run("REFRESH MATERIALIZED VIEW team.few", "--format", "csv")).toBe("Count\n1\n");
    expect(await run("DESCRIBE MATERIALIZED VIEW team.few", "--format", "jsonl")).toContain(
      '"query":"SELECT name FROM \\"team\\".\\"people\\" WHERE id < 2","auto_refresh":false',
    );
    expect(await run("SHOW MATERIALIZED VIEWS", "--format", "csv")).toBe("name\n");
    await run("CREATE MATERIALIZED VIEW v AS SELECT * FROM team.people");
    expect(await run("SHOW MATERIALIZED VIEWS LIMIT 1", "--format", "csv")).toBe("name\nv\n");
    await run("DROP MATERIALIZED VIEW v");
    await run("DROP MATERIALIZED VIEW team.few");
    await run("DELETE FROM team.people WHERE id = 0");
    await expect(run("FROM team.few")).rejects.toThrow(/was not found/);
  });

  it("runs the statements of its standard input, up to the first that fails", async () => {
    const [node, ...flags] = NODE;
    const child = spawn(node, [...flags, MAIN, "sql", "--root", root, "--format", "jsonl"], {
      env: { ...process.env, XDG_CONFIG_HOME: folder.path },
    });
    let [out, err] = ["", ""];
    child.stdout.on("data", (piece) => (out += piece));
    child.stderr.on("data", (piece) => (err += piece));
    child.stdin.end("SELECT 1 AS a;\nSELECT count(*) AS n\nFROM team.people; SELECT nothing; SELECT 2;\n");
    expect(await once(child, "close")).toEqual([1, null]);
    expect(out).toBe('{"a":1}\n{"n":2}\n');
    expect(err).toMatch(/^lance-gateway: .*nothing/);
  });

  it("asks on a terminal before a statement changes or removes data", async () => {
    await run("CREATE TABLE asked AS SELECT 1 AS a");
    const drop = "DROP TABLE asked";
    const question = "DROP TABLE asked, which changes or removes data? [y/N]";
    expect(typed([[question, "n\r"]], drop)).toContain("nothing was done; --yes does it without asking");
    const shell: Typed = [
      ["lance>", `${drop};\r`],
      ["Run it? [y/N]", "\r"],
      ["nothing was done", "\\q\r"],
    ];
    expect(typed(shell)).toContain("nothing was done");
    expect(await run("SELECT a FROM asked", "--format", "csv")).toBe("a\n1\n");
    expect(typed([], drop, "--yes")).not.toContain("[y/N]");
    await expect(run("SELECT a FROM asked")).rejects.toThrow(/asked/);
  });

  it("is a shell on a terminal, whose lines only their user can read", async () => {
    const keys: Typed = [
      ["lance>", "\\d\r"],
      ["team.people", "SELECT name\r"],
      ["...", "FROM team.people WHERE id = 2;\r"],
      ["Grace", "SELECT count(*) FROM range(100000000000) a, range(1000) b;\r"],
      ["range(1000) b;", "\u0003"],
      ["cancelled", "SELECT 41 + 1 AS answer;\r"],
      ["42", "\\q\r"],
    ];
    expect(typed(keys)).toContain("42");
    const file = join(folder.path, "lance-gateway", "sql-history");
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect((await readFile(file, "utf8")).split("\n")).toContain("SELECT 41 + 1 AS answer;");
  });
});
