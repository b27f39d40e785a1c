import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, onTestFinished } from "vitest";
import { sourcesOf } from "../../test/support/command-line.ts";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { readConfiguration } from "./configuration.ts";
import { type Environment, type OptionSpec, UsageError } from "./option-spec.ts";
import { SERVE_OPTIONS } from "./options/groups.ts";
import { secretsOf } from "./secrets.ts";

async function read(args: readonly string[], environment: Environment = {}) {
  return (await readConfiguration(sourcesOf(args, environment), environment)).options;
}

async function fileWith(text: string): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const file = join(path, "secret");
  await writeFile(file, text);
  return file;
}

/** An upstream that gets the gateway's own token. */
const AT_SERVICE = ["--uri", "http://a", "--upstream-identity", "service"];

describe("values in files", () => {
  it("have an option for each option with a secret", () => {
    const specs: readonly OptionSpec[] = Object.values(SERVE_OPTIONS);
    const held = new Set(specs.map(({ holds }) => holds));
    const without = specs.filter(({ secret, flag }) => secret && !held.has(flag)).map(({ flag }) => flag);
    // The one has no credentials, and the other no password, which is in a file of its own.
    assert.deepEqual(without, ["client-storage-option", "rate-limit-redis"]);
  });

  it("apply to the same backends as the values, and belong to the same place", () => {
    const specs: readonly OptionSpec[] = Object.values(SERVE_OPTIONS);
    for (const { holds, backends, place, repeatable, flag } of specs) {
      const of = specs.find((spec) => spec.flag === holds);
      if (of === undefined) continue;
      assert.deepEqual([backends, place, repeatable], [of.backends, of.place, of.repeatable], flag);
    }
  });

  it("lose the newline at their end, and nothing else", async () => {
    const file = await fileWith(" to ken \n\n");
    assert.equal((await read([...AT_SERVICE, "--upstream-token-file", file])).upstreamToken, " to ken \n");
    const windows = await fileWith("token\r\n");
    assert.equal((await read([...AT_SERVICE, "--upstream-token-file", windows])).upstreamToken, "token");
  });

  it("follow the names of pairs, beside pairs that are given directly", async () => {
    const file = await fileWith("hush=1\n");
    const pair = (name: string) => ["--storage-option-file", `${name}=${file}`];
    const direct = ["--storage-option", "aws_region=eu"];
    assert.deepEqual((await read([...direct, ...pair("aws_secret_access_key")])).storageOptions, [
      ["aws_region", "eu"],
      ["aws_secret_access_key", "hush=1"],
    ]);
    await assert.rejects(read([...direct, ...pair("AWS_region")]), {
      message: "--storage-option and --storage-option-file contradict each other",
    });
  });

  it("are refused beside the value from the same place, and override it from a later place", async () => {
    const file = await fileWith("token");
    const args = [...AT_SERVICE, "--upstream-token-file", file];
    await assert.rejects(read([...args, "--upstream-token", "t"]), {
      message: "--upstream-token and --upstream-token-file contradict each other",
    });
    const environment = { LANCE_GATEWAY_UPSTREAM_TOKEN: "other" };
    assert.equal((await read(args, environment)).upstreamToken, "token");
    const variable = { LANCE_GATEWAY_UPSTREAM_TOKEN_FILE: file };
    assert.equal((await read([...AT_SERVICE, "--upstream-token", "t"], variable)).upstreamToken, "t");
  });

  it("are refused with the name of the file if it is missing or empty, without its content", async () => {
    const key = (file: string) => read(["--uri", "http://a", "--upstream-api-key-file", file]);
    await assert.rejects(key("/missing"), {
      message: "--upstream-api-key-file /missing cannot be read: ENOENT",
    });
    await assert.rejects(key(await fileWith("\n")), /--upstream-api-key-file .*secret is empty$/);
    const short = await fileWith("short-secret");
    await assert.rejects(
      read(["--page-token-secret-file", short]),
      (error) => error instanceof UsageError && !error.message.includes("short-secret"),
    );
  });

  it("are secrets for the log", async () => {
    const file = await fileWith("hush-hush\n");
    const options = await read(["--uri", "http://a", "--header-file", `x-key=${file}`]);
    assert.ok(secretsOf({ options }, {}).includes("hush-hush"));
  });
});
