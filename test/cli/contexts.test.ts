import assert from "node:assert/strict";
import { once } from "node:events";
import { readFile, stat, writeFile } from "node:fs/promises";
import { createServer, type IncomingHttpHeaders, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { UsageError } from "../../src/config/option-spec.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgramIn } from "../support/program.ts";
import { runCommand } from "../support/run-command.ts";

describe("saved connections", () => {
  let catalog: Server;
  let uri: string;
  let folder: string;
  let remove: () => Promise<void>;
  let seen: IncomingHttpHeaders = {};
  beforeAll(async () => {
    ({ path: folder, remove } = await temporaryDirectory());
    catalog = createServer(({ headers, url = "" }, response) => {
      seen = headers;
      response.setHeader("content-type", "application/json");
      response.end(url.includes("/table/") ? '{"tables":["t"]}' : '{"namespaces":[]}');
    }).listen(0, "127.0.0.1");
    await once(catalog, "listening");
    uri = `http://127.0.0.1:${(catalog.address() as AddressInfo).port}`;
  });
  afterAll(async () => {
    catalog.close();
    await remove();
  });

  let last = 0;
  /** Returns a runner of commands of a user without connections. */
  function newUser() {
    const environment = { XDG_CONFIG_HOME: join(folder, `user-${last++}`) };
    const run = (...args: readonly string[]) => runCommand(args, environment);
    return {
      run,
      environment,
      with:
        (more: Record<string, string>) =>
        (...args: readonly string[]) =>
          runCommand(args, { ...environment, ...more }),
      file: join(environment.XDG_CONFIG_HOME, "lance-gateway", "contexts.json"),
    };
  }
  const keyOf = async (work: Promise<unknown>) => {
    seen = {};
    await work;
    return seen["x-api-key"] ?? seen.authorization;
  };
  const refused = (work: Promise<unknown>, message: RegExp) =>
    assert.rejects(work, (error: Error) => error instanceof UsageError && message.test(error.message));

  it("are used until another one is chosen, in a file for the user's eyes only", async () => {
    const { run, file } = newUser();
    assert.match(await run("context", "ls"), /no saved connections/);
    assert.equal(await run("context", "add", "here", "--uri", uri), "saved context here, which is in use\n");
    await run("context", "add", "there", "--root", folder);
    assert.match(await run("ls"), /table +t\n/);
    assert.equal(await run("context", "use", "there"), "context there is in use\n");
    assert.equal(await run("ls"), "");
    assert.match(await run("ls", "--context", "here"), /table +t\n/);
    const listed = JSON.parse(await run("context", "ls", "--json"));
    assert.deepEqual(listed[1], { name: "there", current: true, backend: "dir", place: folder, key: "" });
    assert.equal((await stat(file)).mode & 0o777, 0o600);
    await run("context", "rm", "there");
    assert.equal(JSON.parse(await readFile(file, "utf8")).current, undefined);
  });

  it("keep what commands with --rows here need of an upstream's storage", async () => {
    const { run, file } = newUser();
    const places = [
      "--storage-option",
      "aws_region=eu-central-1",
      "--allowed-location",
      "s3://bucket/tables",
    ];
    await run("context", "add", "here", "--uri", uri, ...places);
    const { options } = JSON.parse(await readFile(file, "utf8")).contexts.here;
    assert.deepEqual(options["storage-option"], ["aws_region=eu-central-1"]);
    assert.match(await run("ls"), /table +t\n/);
    await refused(run("ls", "--uri", uri, ...places), /^--storage-option has no effect without --rows here$/);
  });

  it("give way to --api-key, and to its variable unless the command line names them", async () => {
    const { run, with: runWith } = newUser();
    const keyed = runWith({ LANCE_GATEWAY_API_KEY: "of-variable", SAVED: "of-context" });
    assert.equal(await keyOf(run("ls", "--uri", uri, "--api-key", "of-flag")), "of-flag");
    assert.equal(await keyOf(keyed("ls", "--uri", uri)), "of-variable");
    assert.equal(await keyOf(keyed("ls", "--uri", uri, "--api-key", "of-flag")), "of-flag");
    await run("context", "add", "here", "--uri", uri, "--key-env", "SAVED");
    assert.equal(await keyOf(keyed("ls")), "of-variable");
    assert.equal(await keyOf(keyed("ls", "--context", "here")), "of-context");
    assert.equal(await keyOf(keyed("ls", "--context", "here", "--api-key", "of-flag")), "of-flag");
    assert.equal(await keyed("ls", "--root", folder), "");
    await refused(
      run("ls", "--root", folder, "--api-key", "k"),
      /^--api-key is for the backend rest or grpc/,
    );
    await refused(
      run("ls", "--uri", uri, "--api-key", "k", "--header", "x-api-key=l"),
      /^--api-key and --header x-api-key contradict/,
    );
  });

  it("are listed beside one that nothing can use, which the list says", async () => {
    const { run, file } = newUser();
    await run("context", "add", "good", "--uri", uri);
    const saved = JSON.parse(await readFile(file, "utf8"));
    saved.contexts.bad = { options: { uri: ["nonsense"] } };
    await writeFile(file, JSON.stringify(saved));
    const [bad, good] = JSON.parse(await run("context", "ls", "--json"));
    assert.deepEqual([bad.name, good.name, good.backend], ["bad", "good", "rest"]);
    assert.match(bad.error, /^uri must be an address of a REST API/);
    assert.match(await run("context", "ls"), /bad +uri must be an address/);
    await refused(run("ls", "--context", "bad"), /^context bad: uri must be/);
  });

  it("name the directory that gc, optimize and migrate work on, and no server", async () => {
    const { run, with: runWith } = newUser();
    const root = join(folder, "files");
    await run("create", "team", "--root", root);
    await run("context", "add", "here", "--root", root);
    await run("context", "add", "there", "--uri", uri);
    assert.equal(await run("optimize"), "There are no tables.\n");
    assert.equal(await run("gc", "--context", "here"), "Nothing is left behind.\n");
    await refused(
      run("gc", "--delete", "--older-than", "59m", "--context", "here"),
      /below 1h .*--exclusive/,
    );
    for (const more of [["--delete", "--exclusive"], []])
      assert.equal(
        await run("gc", "--older-than", "0s", ...more, "--context", "here"),
        "Nothing is left behind.\n",
      );
    const choosing = runWith({ LANCE_GATEWAY_CONTEXT: "there" });
    const naming = runWith({ LANCE_GATEWAY_URI: "http://127.0.0.1:1" });
    for (const command of ["gc", "optimize", "migrate"]) {
      await refused(naming(command), /^this command works on a directory, and .* is to http:.*; --root or/);
      await refused(choosing(command), /^this command works on a directory, and .* is to http:.*; --root or/);
      await refused(run(command, "--context", "here", "--root", root), /contradict each other/);
    }
    assert.equal(await naming("migrate", "--root", root), "There is no table without a row.\n");
    const given = runWith({ LANCE_GATEWAY_ROOT: root });
    await run("context", "use", "there");
    assert.equal(await given("migrate"), "There is no table without a row.\n");
  });

  it("take their key from a file, a variable or standard input", async () => {
    const { run, environment, with: runWith } = newUser();
    const file = join(folder, "key");
    await writeFile(file, "of-file\n");
    await run("context", "add", "file", "--uri", uri, "--key-file", file, "--bearer");
    await run("context", "add", "variable", "--uri", uri, "--key-env", "MY_KEY");
    const saving = startProgramIn(environment, "context", "add", "saved", "--uri", uri, "--key-stdin");
    saving.child.stdin?.end("of-input\n");
    assert.equal((await saving.ended).code, 0);
    assert.equal(await keyOf(run("ls", "--context", "file")), "Bearer of-file");
    assert.equal(
      await keyOf(runWith({ MY_KEY: "of-variable" })("ls", "--context", "variable")),
      "of-variable",
    );
    assert.equal(await keyOf(run("ls", "--context", "saved")), "of-input");
    await refused(run("ls", "--context", "variable"), /MY_KEY, which is not set/);
    assert.doesNotMatch(await run("context", "ls"), /of-input/);
    assert.equal(await keyOf(run("ls", "--context", "saved", "--header", "x-api-key=own")), "own");
  });

  it("send their key to no other server", async () => {
    const { run, with: runWith } = newUser();
    const file = join(folder, "key-here");
    await writeFile(file, "secret");
    await run("context", "add", "here", "--uri", "http://127.0.0.1:1", "--key-file", file);
    assert.equal(await keyOf(run("ls", "--uri", uri)), undefined);
    assert.equal(await keyOf(runWith({ LANCE_GATEWAY_URI: uri })("ls")), undefined);
    await refused(run("ls", "--context", "here", "--uri", uri), /contradict each other/);
    const both = runWith({ LANCE_GATEWAY_URI: uri, LANCE_GATEWAY_CONTEXT: "here" });
    await refused(both("ls"), /LANCE_GATEWAY_CONTEXT and .* contradict each other/);
    await assert.rejects(
      runWith({ LANCE_GATEWAY_URI: uri })("ls", "--context", "here"),
      /127\.0\.0\.1:1\/ cannot/,
    );
  });

  it("are refused when they make no sense", async () => {
    const { run, file } = newUser();
    await refused(run("context", "add", "x"), /--uri, --address or --root is missing/);
    await refused(run("context", "add", "x", "--root", folder, "--key-env", "K"), /a directory takes no key/);
    await refused(run("context", "add", "x", "--uri", uri, "--root", folder), /contradict/);
    await refused(run("context", "add", "a b", "--uri", uri), /NAME must have/);
    await run("context", "add", "x", "--uri", uri);
    await refused(run("context", "add", "x", "--uri", uri), /there is a context x; --force/);
    await refused(run("context", "use", "y"), /there is no context y/);
    await refused(run("ls", "--context", "y"), /there is no context y; there are x/);
    await writeFile(file, '{"contexts":{"x":{"options":{"uri":"http://x"}}}}');
    await assert.rejects(run("ls"), /contexts\.json has no saved connections/);
  });
});
