import { describe, expect, test } from "vitest";
import { INTERRUPTED, type LineReader } from "./line-reader.ts";
import { isBlank, runShell, type ShellOptions, splitStatements } from "./sql-shell.ts";

/** Runs a shell on some lines, and returns what it ran and said. */
async function shell(lines: readonly string[], more: Partial<ShellOptions> = {}) {
  const notes: string[] = [];
  const waiting = [...lines];
  let interrupt = () => {};
  const reader: LineReader = {
    async ask(prompt) {
      notes.push(prompt.trim());
      return waiting.shift();
    },
    async whileRunning(stop, work) {
      interrupt = stop;
      return work();
    },
    close() {},
  };
  const work = runShell({
    ...{ reader, isTerminal: true, asks: true, output: {}, signal: new AbortController().signal },
    async run(statement, output, signal) {
      if (statement === "fail") throw new Error("no such table");
      if (statement === "wait") {
        interrupt();
        signal.throwIfAborted();
      }
      notes.push(`run ${statement} ${JSON.stringify(output)}`);
    },
    async *tables() {
      yield* ["people", "team.orders"];
    },
    say: (text) => void notes.push(text.replace(/\d+ ms/, "N ms")),
    textOf: (thrown) => `error: ${(thrown as Error).message}`,
    ...more,
  });
  return { notes, failure: await work.then(() => undefined, String) };
}

const ran = async (lines: readonly string[]) =>
  (await shell(lines)).notes.filter((note) => !/^(?:lance>|\.\.\.)$/.test(note));

test("a statement goes on until its semicolon, with another prompt", async () => {
  expect((await shell(["SELECT", "'a;", "b'; SELECT 2;"])).notes).toEqual([
    ...["lance>", "...", "...", "run SELECT\n'a;\nb' {}", "run SELECT 2 {}", "lance>"],
  ]);
});

test("Ctrl-C gives up what is typed, and cancels what runs, but not the shell", async () => {
  expect(await ran(["SELECT 1", INTERRUPTED, "wait;", "SELECT 2;"])).toEqual([
    "cancelled",
    "run SELECT 2 {}",
  ]);
});

test("a statement that changes or removes data asks first, unless it need not", async () => {
  const lines = ["DROP TABLE t;", "y", "DELETE FROM t;", "", "UPDATE t SET a = 1;", INTERRUPTED, "SELECT 1;"];
  expect(await ran(lines)).toEqual([
    ...["This statement changes or removes data. Run it? [y/N]", "run DROP TABLE t {}"],
    ...["This statement changes or removes data. Run it? [y/N]", "nothing was done"],
    ...["This statement changes or removes data. Run it? [y/N]", "nothing was done", "run SELECT 1 {}"],
  ]);
  expect((await shell(["DROP TABLE t;"], { asks: false })).notes).toContain("run DROP TABLE t {}");
});

test("a failure is told, and the shell goes on", async () => {
  expect(await ran(["fail;", "SELECT 1;"])).toEqual(["error: no such table", "run SELECT 1 {}"]);
});

test("a failure ends a script, whose last statement needs no semicolon", async () => {
  const { notes, failure } = await shell(["fail; SELECT 1;"], { isTerminal: false });
  expect([notes, failure]).toEqual([["lance>"], "Error: no such table"]);
  expect((await shell(["SELECT 1 -- x"], { isTerminal: false })).notes).toContain("run SELECT 1 -- x {}");
});

test("commands list tables and columns, and choose the output", async () => {
  expect(
    await ran([
      ...["\\d", "\\d team.orders;", "\\timing", "SELECT 1;", "\\timing", "\\format csv", "\\o a b.parquet"],
      ...["SELECT 2;", "\\o", "\\x", "SELECT 3;", "\\format pdf", "\\no", "\\q", "SELECT 4;"],
    ]),
  ).toEqual([
    ...["people", "team.orders", 'run DESCRIBE team.orders {"format":"table"}', "Timing is on."],
    ...["run SELECT 1 {}", "Time: N ms", "Timing is off."],
    'run SELECT 2 {"format":"csv","expanded":false,"file":"a b.parquet"}',
    ...["Rows are lists.", 'run SELECT 3 {"format":"csv","expanded":true}'],
    ...["\\format takes one of table, csv, tsv, jsonl", "there is no command \\no; \\? lists them"],
  ]);
});

describe("the statements of a text", () => {
  test.each([
    ["SELECT 1", [], "SELECT 1"],
    ["SELECT 1; SELECT\n2;", ["SELECT 1", "SELECT\n2"], ""],
    [";;SELECT 1;", ["SELECT 1"], ""],
    ["SELECT ';', '''; ', 'open ;", [], "SELECT ';', '''; ', 'open ;"],
    ['SELECT "a;""b" FROM t; x', ['SELECT "a;""b" FROM t'], " x"],
    ["SELECT 1 -- a; b\n; y", ["SELECT 1 -- a; b"], " y"],
    ["SELECT 1 -- a; b", [], "SELECT 1 -- a; b"],
    ["SELECT /* ; */ 1; /* ;", ["SELECT /* ; */ 1"], " /* ;"],
    ["/* a /* ; */ ; DROP TABLE t; */ SELECT 1; x", ["/* a /* ; */ ; DROP TABLE t; */ SELECT 1"], " x"],
    ["/* a /* b */; DROP TABLE t;", [], "/* a /* b */; DROP TABLE t;"],
    ["SELECT E'a\\'; DROP TABLE t; --'; x", ["SELECT E'a\\'; DROP TABLE t; --'"], " x"],
    ["SELECT e'a\\'; DROP", [], "SELECT e'a\\'; DROP"],
    ["SELECT 1 -- a\r; y", ["SELECT 1 -- a"], " y"],
    ["SELECT $$;$$, $a$ ; $$ $a$; z", ["SELECT $$;$$, $a$ ; $$ $a$"], " z"],
    ["SELECT $a$ ;", [], "SELECT $a$ ;"],
    ["SELECT $1; SELECT 2", ["SELECT $1"], " SELECT 2"],
  ])("end at semicolons outside of quotes and comments: %s", (text, statements, rest) => {
    expect(splitStatements(text)).toEqual({ statements, rest });
  });

  test("comments alone are none", () => {
    expect(isBlank(" -- a\n/* b */ ")).toBe(true);
    expect(isBlank("/* a /* b */ */")).toBe(true);
    expect(isBlank("-- a\n1")).toBe(false);
    expect(isBlank("-- a\r1")).toBe(false);
    expect(isBlank("/* a")).toBe(false);
  });
});
