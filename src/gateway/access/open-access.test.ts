import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { describe, expect, it, vi } from "vitest";
import { accessTo, allowing, ann, startOpa } from "../../../test/fixtures/auth/opa.ts";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { UsageError } from "../../config/option-spec.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { openAuthorizer } from "./open-access.ts";

const AUTH = ["--auth", "api-key"];

function open(args: readonly string[], lines: string[] = []) {
  const log = pino({ level: "warn" }, { write: (line: string) => void lines.push(line) });
  return openAuthorizer(readServeOptions(sourcesOf(args)), log);
}

describe("the options of a policy server", () => {
  it("refuse what contradicts, what is missing, and an address that others could answer for", async () => {
    const url = ["--opa-url", "http://localhost:8181"];
    const cases: [RegExp, readonly string[]][] = [
      [/--policy-dir and --opa-url contradict/, [...AUTH, ...url, "--policy-dir", "p"]],
      [/--opa-url requires --auth/, url],
      [/--policy-dir requires --auth/, ["--policy-dir", "p"]],
      [/need --opa-url/, [...AUTH, "--opa-token-file", "t"]],
      [
        /--opa-token-file .*missing cannot be read: ENOENT/,
        [...AUTH, ...url, "--opa-token-file", "/missing"],
      ],
      [/--opa-ca-file .*missing cannot be read: ENOENT/, [...AUTH, ...url, "--opa-ca-file", "/missing"]],
    ];
    for (const [expected, args] of cases) {
      await assert.rejects(open(args), (error) => {
        assert.ok(error instanceof UsageError);
        assert.match(error.message, expected);
        return true;
      });
    }
    for (const wrong of [
      "http://opa.example.com",
      "localhost:8181",
      "https://opa.example.com/?x=1",
      "unix:/opa",
    ])
      assert.throws(() => readServeOptions(sourcesOf(["--opa-url", wrong])), UsageError, wrong);
    for (const wrong of [
      ["--opa-timeout", "0s"],
      ["--opa-cache", "1"],
    ])
      assert.throws(() => readServeOptions(sourcesOf(wrong)), UsageError);
  });

  it("ask the usual rule, or the one of the address, with the token that the file has now", async (context) => {
    const { path, remove } = await temporaryDirectory();
    context.onTestFinished(remove);
    const file = join(path, "token");
    await writeFile(file, "one\n");
    const { origin, asked } = await startOpa(
      context.onTestFinished,
      allowing(() => true),
    );
    const token = ["--opa-token-file", file, "--opa-cache", "0s"];
    const usual = await open([...AUTH, "--opa-url", origin, ...token]);
    const other = await open([...AUTH, "--opa-url", `${origin}/v1/data/acme/may`]);
    context.onTestFinished(() => {
      usual?.close();
      other?.close();
    });
    await expect.poll(() => asked.length).toBe(2);
    assert.deepEqual(
      asked.map(({ input }) => input),
      [{ accesses: [] }, { accesses: [] }],
    );
    assert.equal(await usual?.allows(ann, accessTo("t")), true);
    assert.equal(await other?.allows(ann, accessTo("t")), true);
    assert.deepEqual(
      asked.slice(2).map(({ path: asks, headers }) => [asks, headers.authorization]),
      [
        ["/v1/data/lance/gateway/allowed", "Bearer one"],
        ["/v1/data/acme/may", undefined],
      ],
    );
    await writeFile(file, "two\n");
    await vi.waitFor(
      async () => {
        await usual?.allows(ann, accessTo("t"));
        assert.equal(asked.at(-1)?.headers.authorization, "Bearer two");
      },
      { timeout: 60_000 },
    );
  });

  it("let the gateway start before the server, or with a rule that has no value, and say so", async (context) => {
    const lines: string[] = [];
    const { origin } = await startOpa(context.onTestFinished, (response) => void response.end("{}"));
    for (const url of ["http://127.0.0.1:1", origin]) {
      const authorizer = await open([...AUTH, "--opa-url", url], lines);
      context.onTestFinished(() => authorizer?.close());
    }
    await expect.poll(() => lines.length).toBe(2);
    assert.match(lines.join("\n"), /cannot be asked yet/);
    assert.match(lines.join("\n"), /has no value/);
  });
});

describe("a folder of policies", () => {
  it("decides about all tables of a namespace at once, so that long listings stay fast", async (context) => {
    const { path, remove } = await temporaryDirectory();
    context.onTestFinished(remove);
    await writeFile(join(path, "all.cedar"), "permit (principal, action, resource);");
    const authorizer = await open([...AUTH, "--policy-dir", path]);
    context.onTestFinished(() => authorizer?.close());
    assert.equal(authorizer?.allowsSiblings?.(ann, accessTo("team", ""))?.allowed, true);
  });
});
