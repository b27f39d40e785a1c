import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { describe, it } from "vitest";
import { startProgram } from "../../test/support/program.ts";
import { runCommand } from "../../test/support/run-command.ts";
import { environmentName, UsageError } from "../config/option-spec.ts";
import { OPTION_GROUPS } from "../config/options/groups.ts";
import { COMMANDS } from "./commands/table.ts";
import { runProgram } from "./program.ts";
import { EXAMPLES } from "./terminal/help.ts";

async function printed(...args: readonly string[]): Promise<string> {
  const { code, stdout, stderr } = await startProgram(...args).ended;
  assert.deepEqual([code, stderr], [0, ""]);
  return stdout;
}

/** Names of all commands that run: `versions ls` for one of a group. */
const ENTRIES = Object.entries(COMMANDS).flatMap(([name, entry]) =>
  "commands" in entry ? Object.keys(entry.commands).map((each) => `${name} ${each}`) : [name],
);

/** Loads a command by its name. */
async function definitionOf(name: string) {
  const [first = "", second = ""] = name.split(" ");
  const entry = COMMANDS[first];
  assert.ok(entry !== undefined);
  const found = "commands" in entry ? entry.commands[second] : entry;
  assert.ok(found !== undefined);
  return found.load();
}

const helpOf = (...command: readonly string[]) => runCommand([...command, "--help-all"]);

describe("help", () => {
  it("fits on a screen, with examples, and names every command", async () => {
    const [help, command] = await Promise.all([printed("--help"), printed("help")]);
    assert.equal(help, command);
    assert.match(help, /\nExamples:\n {2}lance-gateway serve /);
    assert.ok(help.trimEnd().split("\n").length <= 30, help);
    for (const name of Object.keys(COMMANDS)) assert.match(help, new RegExp(`\\b${name}\\b`));
  });

  it("lists the common options of a command with examples, and says how to get the others", async () => {
    for (const name of ["serve", "query", "import"]) {
      const help = await printed(name, "--help");
      assert.match(help, new RegExp(`\\nExamples:\\n {2}lance-gateway ${name} `));
      assert.match(help, /\n {2}--help-all +List all \d+ options/);
    }
    assert.match(
      await printed("versions", "-h"),
      /\n {2}lance-gateway versions ls .*\n[\s\S]*\n {2}describe +Describe/,
    );
    const key = /--api-key KEY +API key\. Prefer LANCE_GATEWAY_API_KEY: the list of processes shows this/;
    assert.match((await printed("ls", "--help")).replaceAll(/\s+/g, " "), key);
  });

  it("has at most 30 lines for every command, and --help-all lists all options", async () => {
    for (const name of ENTRIES) {
      const brief = await runCommand([...name.split(" "), "--help"]);
      assert.ok(brief.trimEnd().split("\n").length <= 30, brief);
      const { groups } = await definitionOf(name);
      const full = await helpOf(...name.split(" "));
      for (const { flag } of groups.flatMap(({ options }) => Object.values(options)))
        assert.match(full, new RegExp(`^  --${flag}(?: |$)`, "m"), name);
      for (const [flag] of brief.matchAll(/(?<=^ {2})--[a-z-]+/gm))
        assert.ok(full.includes(`  ${flag}`), flag);
    }
    for (const name of Object.keys(COMMANDS).filter((each) => !ENTRIES.includes(each))) {
      const brief = await runCommand([name, "--help"]);
      assert.ok(brief.trimEnd().split("\n").length <= 30, brief);
    }
  });

  it("lists every command with its summary with --help-all", async () => {
    const text = (await printed("--help-all")).replaceAll(/\s+/g, " ");
    for (const [name, { summary }] of Object.entries(COMMANDS)) assert.ok(text.includes(`${name} `), summary);
    for (const { summary } of Object.values(COMMANDS)) assert.ok(text.includes(summary), summary);
  });

  it("names the documentation, which is there", async () => {
    const [, path = ""] = /^Documentation: (.+)$/m.exec(await printed("--help")) ?? [];
    assert.match(await readFile(path, "utf8"), /^# Documentation$/m);
  });

  it("lists the options of a command in groups, with their variables", async () => {
    const [brief, command] = await Promise.all([printed("serve", "--help"), printed("help", "serve")]);
    assert.equal(brief, command);
    const help = await printed("serve", "--help-all");
    for (const [heading, options] of Object.entries(OPTION_GROUPS)) {
      assert.ok(help.includes(`\n${heading}:\n`), heading);
      for (const { flag } of Object.values(options)) {
        assert.ok(help.includes(`--${flag}`), flag);
        assert.ok(help.includes(environmentName(flag)), flag);
      }
    }
    assert.match(help.replaceAll(/\s+/g, " "), /Port to listen on; 0 for a free one\. \(default: 2333, env:/);
  });

  it("shows operands, and keeps an option of a command apart from one of the program", async () => {
    const help = await printed("count", "-h");
    assert.match(help, /^Usage: lance-gateway count \[options\] <TABLE>\n/);
    assert.match(help, /--version N/);
    assert.equal(await printed("-v"), await printed("--version"));
  });
});

describe("the examples of the help", () => {
  it("are for every command, and for no other", () => {
    assert.deepEqual(Object.keys(EXAMPLES).toSorted(), ENTRIES.toSorted());
  });

  it("have options that their commands have", async () => {
    for (const [name, lines] of Object.entries(EXAMPLES)) {
      const help = await helpOf(...name.split(" "));
      for (const [flag] of lines.join(" ").matchAll(/(?<= |^)--[a-z-]+/g))
        assert.ok(help.includes(`${flag} `) || help.includes(`${flag}\n`), `${name} ${flag}`);
    }
  });
});

describe("wrong use", () => {
  const nowhere = ["--uri", "http://127.0.0.1:1"];
  const importing = (mode: string) => ["import", "x.csv", "t", "--mode", mode, ...nowhere];
  const indexing = (type: string) => ["index", "create", "t", "c", "--type", type, ...nowhere];
  const CASES: readonly (readonly [args: readonly string[], message: RegExp])[] = [
    [[], /^a command is missing; see lance-gateway --help$/],
    [["serv"], /^unknown command 'serv' \(Did you mean serve\?\)$/],
    [["help", "nothing"], /^unknown command 'nothing'; see lance-gateway --help$/],
    [["serve", "--prot", "1"], /^unknown option '--prot' \(Did you mean --port\?\)$/],
    [["serve", "--uptsream-token=marked"], /^unknown option '--uptsream-token'$/],
    [["serve", "--prot=mark'ed"], /^unknown option '--prot'( \(Did you mean --port\?\))?$/],
    [["serve", "--root"], /^option '--root <DIR\|URI>' argument missing$/],
    [["serve", "--managed-versioning=no"], /^option '--managed-versioning' takes no value$/],
    [["serve", "--metrics=false"], /^option '--metrics' takes no value$/],
    [["versions"], /^versions needs one of ls, describe$/],
    [["versions", "--root", "x"], /^versions needs one of ls, describe$/],
    [["serve", "extra"], /^too many arguments for 'serve'/],
    [["count"], /^missing required argument 'TABLE'$/],
    [
      ["serve", "--port", "0", "--auth", "api-key", "--api-keys-file", "/proc/nope.json"],
      /^--api-keys-file \/proc\/nope\.json does not exist \(ENOENT\); lance-gateway keys create makes it$/,
    ],
    [["keys", "list", "--file", "x", "--name", "ann"], /^keys list takes no --name$/],
    [["keys", "revoke", "--file", "x", "--expires", "1d", "id"], /^keys revoke takes no --expires$/],
    [["keys", "list", "--file", "x", "id"], /^keys list takes no ID$/],
    [["policy", "check", "x", "--principal", "api-key:ann"], /^policy check takes no --principal$/],
    [["policy", "check", "x", "--dir", "y"], /^DIR and --dir both name/],
    [["policy", "print-roles", "x"], /^policy print-roles takes no DIR$/],
    [["policy", "print-roles", "--dir", "x"], /^policy print-roles takes no --dir$/],
    [["config", "schema", "x"], /^config schema takes no FILE$/],
    [["config", "schema", "--port", "1"], /^config schema takes no --port$/],
    [["config", "print", "x", "--config", "y"], /^FILE and --config both name/],
    [["context", "add", "x", "--uri", "http://127.0.0.1:1", "--bearer"], /^--bearer requires --key-file/],
    [[...importing("append"), "--property", "a=b"], /^--property is for a new table/],
    [[...indexing("BTREE"), "--distance", "l2"], /are for vectors, and --type is BTREE$/],
    [[...indexing("IVF_PQ"), "--with-position"], /^--with-position has no effect without --type FTS$/],
    [[...indexing("FTS"), "--timeout", "1s"], /^--timeout has no effect without --wait$/],
    [["drop", "n", "--cascade", ...nowhere], /^--cascade has no effect without --namespace$/],
    [["query", "t", "--vector-column", "v", ...nowhere], /^--vector-column has no effect without --vector$/],
    [["gc", "--yes", "--root", "x"], /^--yes has no effect without --delete$/],
    [
      ["ls", "--header", "a=b"],
      /^--header is for the backend rest or grpc or polaris or lakekeeper or unity, and the backend is dir$/,
    ],
    [["ls", "--upstream-key", "x", ...nowhere], /^--upstream-key has no effect without --upstream-cert$/],
    [
      ["serve", "--root", "x", "--upstream-timeout", "5s"],
      /^--upstream-timeout is for the backend rest or grpc/,
    ],
    [
      ["serve", "--upstream-timeout", "5s"],
      /^--upstream-timeout is for the backend rest or grpc or glue or polaris or lakekeeper or unity, and/,
    ],
    [["serve", "--opa-timeout", "5s"], /^--opa-timeout has no effect without --opa-url$/],
    [["serve", "--worker-timeout", "9s"], /^--worker-timeout has no effect with --workers 1$/],
    [["serve", "--listen", "unix:/x", "--port", "1"], /^--port has no effect with --listen$/],
    [["serve", "--vend-access", "read"], /^--vend-access has no effect without --vend$/],
    [
      ["serve", "--uri", "http://a", "--aws-region", "r"],
      /^--aws-region has no effect without --upstream-identity sigv4$/,
    ],
    [
      ["serve", "--uri", "http://a", "--table-upkeep", "on"],
      /^--table-upkeep has no effect without --rows here$/,
    ],
    ...[
      "--upkeep-fragments=5",
      "--upkeep-concurrency=2",
      "--table-retention=1d",
      "--table-history=all",
    ].flatMap((flag): [string[], RegExp][] => [
      [
        ["serve", "--uri", "http://a", flag, "--rows", "here"],
        /^--(?:upkeep|table)-\w+ has no effect without --table-upkeep on$/,
      ],
      [
        ["serve", "--root", "x", flag, "--no-maintenance"],
        /^--(?:upkeep|table)-\w+ has no effect with --no-maintenance true$/,
      ],
    ]),
    ...["--max-staleness=1", "--upload-part-size=8MiB", "--table-idle-seconds=9", "--storage-option=a=b"].map(
      (flag): [string[], RegExp] => [
        ["serve", "--backend", "glue", flag],
        /^--[a-z-]+ has no effect without --rows here$/,
      ],
    ),
    [["completion", "tcsh"], /Allowed choices are zsh, bash, fish/],
  ];
  for (const [args, message] of CASES) {
    it(`is explained in one line for "${args.join(" ")}"`, async () => {
      await assert.rejects(runProgram(args, {}), (error) => {
        assert.ok(error instanceof UsageError, String(error));
        assert.match(error.message, message);
        return true;
      });
    });
  }
});

describe("completion", () => {
  const offered = async (...words: readonly string[]) =>
    (await printed("complete", "--", ...words)).split("\n").map((line) => line.split("\t")[0]);

  it("prints a script for each shell", async () => {
    for (const shell of ["bash", "zsh", "fish"]) {
      assert.match(await printed("completion", shell), /lance-gateway complete --/);
    }
  });

  it("offers commands, options and the words that an option takes", async () => {
    assert.deepEqual(await offered("se"), ["serve", ":4", ""]);
    assert.deepEqual(await offered("serve", "--por"), ["--port", ":4", ""]);
    assert.deepEqual(await offered("serve", "--upstream-dialect", ""), [
      "specification",
      "lancedb",
      ":4",
      "",
    ]);
    assert.deepEqual(await offered("import", "--mode", "app"), ["append", ":4", ""]);
  });

  it("leaves file names of options and operands to the shell, which quotes them", async () => {
    assert.deepEqual(await offered("serve", "--config", "package.j"), [":0", ""]);
    assert.deepEqual(await offered("import", "--mode", "append", "LICEN"), [":0", ""]);
    assert.deepEqual(await offered("serve", "--root", "src/conf"), [":0", ""]);
    assert.match(await printed("completion", "bash"), /\ncomplete -o default -F (\w+) lance-gateway\n$/);
  });

  it("describes itself as the help does", async () => {
    assert.match(await printed("complete", "--", "compl"), /^completion\tprint a completion script/);
  });
});
