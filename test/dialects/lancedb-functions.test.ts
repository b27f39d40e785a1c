import assert from "node:assert/strict";
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { pino } from "pino";
import { type TestContext, test } from "vitest";
import { drawKey, type KeyRecord } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { openPolicyFolder } from "../../src/auth/cedar/policy-folder.ts";
import { rolePolicies } from "../../src/auth/cedar/read-policies.ts";
import { isLanceError } from "../../src/namespace/errors.ts";
import { people, personStream } from "../support/arrow.ts";
import { temporaryDirectory } from "../support/directory.ts";
import {
  columnOf,
  register,
  registration,
  type ServiceChanges,
  SOURCE,
  serveFunctions,
  type Version,
  withTable,
} from "./function-service.ts";
import type { RemoteCalls } from "./remote-calls.ts";

const [owner, writer, reader, scoped, analyst] = [drawKey(), drawKey(), drawKey(), drawKey(), drawKey()];
const facts = { hash: "", created: "2026-01-01T00:00:00.000Z" } as const;
const keys: readonly KeyRecord[] = [
  { ...facts, id: owner.id, name: "owner", role: "owner" },
  { ...facts, id: writer.id, name: "writer", role: "writer" },
  { ...facts, id: reader.id, name: "reader", role: "reader" },
  { ...facts, id: scoped.id, name: "scoped", role: "owner", scope: ["t", "n"] },
  { ...facts, id: analyst.id, name: "analyst", role: "none" },
];
const texts = [owner, writer, reader, scoped, analyst].map(({ text }) => text);
const authenticator = createAuthenticator(
  [proveByKeys({ find: (text: string) => keys[texts.indexOf(text)] ?? ("unknown" as const), close() {} })],
  { failed: () => 0 },
);

/** Serves a directory with a table `t`. */
async function serve(t: TestContext, drive: Parameters<typeof serveFunctions>[1], changes?: ServiceChanges) {
  const served = await serveFunctions(t, drive, changes);
  await withTable(served.calls);
  return served;
}

/** The changes by which callers have keys, and the client that of an owner. */
const withKeys = { context: { authenticator }, headers: { "x-api-key": owner.text } };

const nothing = () => assert.fail("no driver starts");

test("LanceDB's clients register, list, describe and drop functions", async (t) => {
  const { calls } = await serve(t, nothing);
  const first = await register(calls);
  assert.deepEqual([first.name, first.version, first["disabled"]], ["shout", "1", false]);
  assert.match(String(first["created_at"]), /^\d{4}-/);
  assert.equal((await register(calls)).version, "1", "the same definition is the same version");
  const second = await register(calls, "shout", { source: `${SOURCE}\n` });
  assert.deepEqual([second.version, second.object_id], ["2", first.object_id]);
  assert.notEqual(second.image.manifest_digest, first.image.manifest_digest);
  await register(calls, "other");
  const listed = await calls.get<{ functions: Version[]; page_token?: string }>(
    "namespace/$/function/list?include_definition=true&limit=2",
  );
  assert.deepEqual(
    listed.functions.map(({ name, version }) => `${name} ${version}`),
    ["other 1", "shout 1"],
  );
  const rest = await calls.get<{ functions: Version[] }>(
    `namespace/$/function/list?page_token=${listed.page_token}`,
  );
  const described = await calls.post("function/shout/describe", { version: "2" });
  assert.deepEqual(rest.functions[0]?.["definition"], described);
  // The result of the job is the version, with lists that may be empty.
  assert.deepEqual(second, { namespace_path: [], secret_bindings: [], ...described });
  await calls.refused("TableVersionNotFound", "function/shout/describe", { version: "3" });
  await calls.refused("TableVersionNotFound", "function/shout/drop", { version: "3" });
  assert.deepEqual(await calls.post("function/shout/drop", { version: "1" }), { dropped: true });
  assert.deepEqual(await calls.post("function/shout/drop", { version: "1" }), { dropped: false });
  assert.notEqual((await register(calls)).object_id, first.object_id);
  await calls.refused("NamespaceNotFound", "function/missing$f/create", registration());
  await calls.post("namespace/n/create", {});
  assert.deepEqual((await register(calls, "n$f"))["namespace_path"], ["n"]);
}, 60_000);

test("definitions that the workers would not run are refused", async (t) => {
  const { calls } = await serve(t, nothing);
  const own = registration();
  const bundle = (files: unknown) => {
    const source = JSON.stringify({ files });
    const { artifact } = registration({ source });
    return { ...own, artifact: { ...artifact, kind: "python_bundle" } };
  };
  const output = (arrow_type: string) => ({
    ...own,
    signature: { ...own.signature, output: { kind: "scalar", arrow_type, nullable: false } },
  });
  const environment = (more: object) => ({
    ...own,
    runtime: { ...own.runtime, environment: { kind: "pip", ...more } },
  });
  for (const [name, body] of [
    ["InvalidInput", { ...own, artifact: { ...own.artifact, digest: `sha256:${"0".repeat(64)}` } }],
    ["InvalidInput", { ...own, artifact: { ...own.artifact, entrypoint: "os.system" } }],
    ["Unsupported", { ...own, artifact: { ...own.artifact, kind: "pickle" } }],
    ["PayloadTooLarge", registration({ source: "x".repeat(1024 * 1024 + 3) })],
    ["InvalidInput", bundle({ "user_function.py": "", "../x.py": "" })],
    ["InvalidInput", bundle({ "user_function.py": "", "a/../../x.py": "" })],
    ["InvalidInput", bundle({ "a.py": "" })],
    ["Unsupported", output("list<utf8>")],
    ["Unsupported", output("struct<a: int>")],
    [
      "Unsupported",
      { ...own, signature: { ...own.signature, output: { kind: "named_struct", fields: [] } } },
    ],
    ["Unsupported", environment({ kind: "conda" })],
    ["InvalidInput", environment({ packages: ["--index-url=http://x"] })],
    ["InvalidInput", { ...own, signature: { ...own.signature, inputs: [] } }],
  ] as const)
    await calls.refused(name, "function/f/create", body);
  await calls.refused("InvalidInput", "function/f-g/create", own);
}, 60_000);

test("secrets are sealed, shown to nobody, and handed to drivers alone", async (t) => {
  let task: Record<string, unknown> | undefined;
  const { calls, root, ray } = await serve(t, async (driver) => {
    try {
      task = (await driver.task()).task;
    } catch (error) {
      return driver.finish({ failure: { message: (error as Error).message, retryable: false } });
    }
    return driver.finish({ result: { rows: 0, version: Number(task?.["version"]), failed: 0 } });
  });
  const value = "never-show-this";
  const bound = (name: string) => ({
    secret_bindings: [{ kind: "env", variable: "TOKEN", secret_ref: { name } }],
  });
  await calls.refused("InvalidInput", "function/f/create", registration(bound("token")));
  await calls.post("secret/token/create", { value: "former" });
  await calls.refused("InvalidTableState", "secret/token/create", { value }, 400);
  await calls.post("secret/token/alter", { value });
  await calls.refused("InvalidInput", "secret/missing/alter", { value });
  await calls.refused("InvalidInput", "secret/missing/drop");
  await calls.refused("PayloadTooLarge", "secret/big/create", { value: "x".repeat(64 * 1024 + 1) });
  assert.deepEqual(await calls.get("namespace/$/secret/list"), { secrets: [{ name: "token" }] });
  const { name, created_at_millis, updated_at_millis } = await calls.post("secret/token/describe");
  assert.equal(name, "token");
  assert.ok(Number(updated_at_millis) > Number(created_at_millis));
  const version = await register(calls, "f", bound("token"));
  await calls.post("table/t/add_columns/", columnOf(version, "loud"));
  const { job_id } = await calls.post("table/t/backfill_column", { column: "loud" });
  const job = await calls.ended(job_id);
  assert.deepEqual([job.job_state, job.result?.["rows_failed"]], ["DONE", 0]);
  assert.deepEqual((task as unknown as { function?: { secrets: unknown } })?.function?.secrets, {
    TOKEN: value,
  });
  assert.doesNotMatch(JSON.stringify([job, [...ray.jobs]]), new RegExp(value));
  for (const file of await readdir(root, { recursive: true, withFileTypes: true })) {
    if (!file.isFile()) continue;
    // The records of a run go with its job.
    const content = await readFile(join(file.parentPath, file.name)).catch(() => Buffer.alloc(0));
    assert.ok(!content.includes(value), `${file.name} has the value`);
  }
  await calls.post("secret/token/drop");
  const again = await calls.post("table/t/backfill_column", { column: "loud" });
  const { failure } = await calls.ended(again["job_id"]);
  assert.match(String(failure?.message), /the secret token, which is bound to TOKEN, does not exist/);
}, 60_000);

test("secrets are refused without a key", async (t) => {
  const { calls } = await serve(t, nothing, { functions: {} });
  const refusal = await calls.refused("Unsupported", "secret/token/create", { value: "x" });
  assert.match(refusal, /--function-secret-key-file/);
}, 60_000);

test("only an owner of the whole catalog has functions run", async (t) => {
  const { as, calls } = await serve(
    t,
    (driver) => driver.finish({ failure: { message: "none", retryable: false } }),
    withKeys,
  );
  const version = await register(calls);
  const { job_id } = await calls.post("function/shout/create", registration());
  await calls.post("table/t/add_columns/", columnOf(version, "loud"));
  await calls.post("namespace/n/create", {});
  for (const { text } of [writer, reader, scoped]) {
    const other = as({ "x-api-key": text });
    const refused = (path: string, body?: unknown) => other.refused("PermissionDenied", path, body);
    await refused("table/t/add_columns/", columnOf(version, "other"));
    await refused("table/t/backfill_column", { column: "loud" });
    await refused("table/t/errors", {});
    await refused("jobs/describe", { job_id });
    // A scope covers what is in it, but no function of it.
    for (const place of ["", "n$"]) {
      await refused(`function/${place}shout/create`, registration());
      for (const what of ["describe", "drop"])
        await refused(`function/${place}shout/${what}`, { version: "1" });
      for (const what of ["create", "alter"]) await refused(`secret/${place}s/${what}`, { value: "x" });
      for (const what of ["describe", "drop"]) await refused(`secret/${place}s/${what}`);
    }
    for (const what of ["function", "secret"])
      for (const id of ["$", "n"])
        await assert.rejects(other.get(`namespace/${id}/${what}/list`), /403/, `${what} ${id}`);
  }
}, 60_000);

test("a policy for a namespace gives no functions in it", async (t) => {
  const directory = await temporaryDirectory();
  t.onTestFinished(directory.remove);
  const policy = `permit (principal == User::"api-key:analyst", action, resource in Namespace::"n");`;
  await writeFile(join(directory.path, "all.cedar"), `${rolePolicies()}\n${policy}\n`);
  const authorizer = await openPolicyFolder({ directory: directory.path, log: pino({ level: "silent" }) });
  const { as, calls } = await serve(t, nothing, {
    ...withKeys,
    context: { authenticator, authorizer },
  });
  await calls.post("namespace/n/create", {});
  await calls.upload("table/n$t/create/", personStream(people(3)));
  const version = await register(calls, "n$f");
  await calls.post("secret/n$s/create", { value: "x" });
  await calls.post("table/n$t/add_columns/", columnOf(version, "loud"));
  const other = as({ "x-api-key": analyst.text });
  await other.post("table/n$t/describe/", {});
  for (const [path, body] of [
    ["function/n$f/create", registration()],
    ["function/n$f/describe", { version: "1" }],
    ["function/n$f/drop", { version: "1" }],
    ["secret/n$x/create", { value: "x" }],
    ["secret/n$s/alter", { value: "y" }],
    ["secret/n$s/describe"],
    ["secret/n$s/drop"],
    ["table/n$t/add_columns/", columnOf(version, "other")],
    ["table/n$t/backfill_column", { column: "loud" }],
    ["table/n$t/errors", {}],
  ] as const)
    await other.refused("PermissionDenied", path, body);
  for (const what of ["function", "secret"])
    await assert.rejects(other.get(`namespace/n/${what}/list`), /403/, what);
}, 60_000);

test("a driver is told that its function is gone, and is not started again", async (t) => {
  let calls: RemoteCalls;
  const { calls: own, ray } = await serve(t, async (driver) => {
    await calls.post("function/shout/drop", { version: "1" });
    await assert.rejects(driver.task(), (error) => isLanceError(error, "InvalidInput"));
    await driver.finish({ failure: { message: "gone", retryable: false } });
  });
  calls = own;
  const version = await register(calls);
  await calls.post("table/t/add_columns/", columnOf(version, "loud"));
  const { job_id } = await calls.post("table/t/backfill_column", { column: "loud" });
  const { failure } = await calls.ended(job_id);
  assert.match(String(failure?.message), /gone/);
  assert.equal([...ray.jobs].length, 1);
}, 60_000);

test("a refresh reports the rows for which its function has failed", async (t) => {
  const error = { fragment: 0, offset: 2, type: "ValueError", message: "cannot shout" };
  const { calls } = await serve(t, async (driver) => {
    const { task } = await driver.task();
    const version = Number(task?.["version"]);
    const fragments = [{ fragment: 0, skipped: 3, recorded: 1 }];
    await driver.finish({
      result: { rows: 0, version, failed: 3, source_version: version, errors: [error], fragments },
    });
  });
  const version = await register(calls);
  await calls.refused("InvalidInput", "table/t/add_columns/", columnOf(version, "loud", "id"));
  await calls.refused("TableColumnNotFound", "table/t/add_columns/", columnOf(version, "loud", "nope"), 400);
  await calls.refused(
    "TableVersionNotFound",
    "table/t/add_columns/",
    columnOf({ ...version, version: "7" }, "loud"),
    400,
  );
  await calls.post("table/t/add_columns/", columnOf(version, "loud"));
  const { job_id } = await calls.post<{ job_id: string }>("table/t/backfill_column", { column: "loud" });
  const { result } = await calls.ended(job_id);
  assert.deepEqual(
    [result?.["rows_assigned"], result?.["rows_failed"], result?.["rows_remaining"]],
    [0, 3, 3],
  );
  const { records, fragments, truncated } = await calls.post<{
    records: object[];
    fragments: object[];
    truncated: boolean;
  }>("table/t/errors", { column: "loud" });
  const [{ created_at_millis, ...record } = { created_at_millis: 0 }] = records as {
    created_at_millis: number;
  }[];
  assert.ok(created_at_millis > 0 && !truncated && records.length === 1);
  assert.deepEqual(record, {
    ...{ job_id, fragment_id: 0, row_offset: 2, column: "loud", function: "shout", function_version: "1" },
    ...{ table_version: 2, error_type: "ValueError", error_message: "cannot shout" },
  });
  assert.deepEqual(fragments, [{ job_id, fragment_id: 0, rows_skipped: 3, rows_recorded: 1 }]);
  assert.deepEqual((await calls.post("table/t/errors", { column: "other" }))["records"], []);
  await calls.post("function/shout/drop", { version: "1" });
  await calls.refused("TableVersionNotFound", "table/t/backfill_column", { column: "loud" }, 400);
}, 60_000);
