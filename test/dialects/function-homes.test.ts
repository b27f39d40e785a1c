import assert from "node:assert/strict";
import { cp, readdir, rm } from "node:fs/promises";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { pino } from "pino";
import { test } from "vitest";
import { drawKey, type KeyRecord } from "../../src/auth/api-keys/key-file.ts";
import { proveByKeys } from "../../src/auth/api-keys/key-ring.ts";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { openFunctionsOf } from "../../src/backends/dir/function-homes.ts";
import { findOwnFiles } from "../../src/backends/dir/maintenance/find-leftovers.ts";
import { openDirectory } from "../../src/backends/dir/open-directory.ts";
import { people, personStream } from "../support/arrow.ts";
import { columnOf, register, registration, serveFunctions } from "./function-service.ts";
import type { RemoteCalls } from "./remote-calls.ts";

const nothing = () => assert.fail("no driver starts");

/** Returns the names of the functions and secrets of a namespace. */
async function contentsOf(calls: RemoteCalls, namespace: string): Promise<string[]> {
  const { functions } = await calls.get<{ functions: { name: string }[] }>(
    `namespace/${namespace}/function/list`,
  );
  const { secrets } = await calls.get<{ secrets: { name: string }[] }>(`namespace/${namespace}/secret/list`);
  return [...functions, ...secrets].map(({ name }) => name);
}

/** Returns the files of functions and secrets. */
async function filesOf(root: string): Promise<string[]> {
  const found = await readdir(join(root, "data", ".functions"), { recursive: true, withFileTypes: true });
  return found
    .filter((each) => each.isFile() && !each.parentPath.includes("columns"))
    .map(({ name }) => name);
}

/** Returns the directories of functions in which gc finds leftovers, and which it removes on request. */
async function leftoversOf(root: string, removes = false): Promise<string[]> {
  const { context, close } = await openDirectory({ root, log: pino({ level: "silent" }) });
  const found: string[] = [];
  try {
    for await (const { kind, path, remove } of findOwnFiles(context, Date.now() + 60_000)) {
      if (kind !== "function file") continue;
      found.push(path.split("/")[1] ?? "");
      if (removes) assert.equal(await remove(), true);
    }
  } finally {
    await close();
  }
  return found.sort();
}

const cascade = { behavior: "Cascade" };

test("a namespace with functions or secrets is dropped by a cascade alone, which takes them", async (t) => {
  const { calls, root } = await serveFunctions(t, nothing);
  await calls.post("namespace/n/create", {});
  await calls.post("namespace/n$inner/create", {});
  await calls.post("secret/n$s/create", { value: "x" });
  await calls.refused("NamespaceNotEmpty", "namespace/n/drop", {});
  await calls.post("secret/n$s/drop");
  await register(calls, "n$inner$f");
  await calls.refused("NamespaceNotEmpty", "namespace/n$inner/drop", {});
  await calls.post("function/n$inner$f/drop", { version: "1" });
  await calls.post("namespace/n$inner/drop", {});
  await calls.post("namespace/n/drop", {});

  for (const again of ["drop", "overwrite"]) {
    await calls.post("namespace/n/create", {});
    await calls.post("namespace/n$inner/create", {});
    await register(calls, "n$f");
    await register(calls, "n$inner$g");
    await calls.post("secret/n$s/create", { value: "x" });
    await calls.post("secret/n$inner$s/create", { value: "y" });
    assert.deepEqual(await contentsOf(calls, "n"), ["f", "s"]);
    if (again === "drop") {
      await calls.post("namespace/n/drop", cascade);
      await calls.post("namespace/n/create", {});
    } else await calls.post("namespace/n/create", { mode: "Overwrite" });
    await calls.post("namespace/n$inner/create", {});
    for (const namespace of ["n", "n$inner"]) assert.deepEqual(await contentsOf(calls, namespace), []);
    assert.deepEqual(await filesOf(root), [], again);
    await calls.post("namespace/n/drop", cascade);
  }
}, 60_000);

test("a namespace that is created again has nothing of a former one whose files were left behind", async (t) => {
  const { calls, root } = await serveFunctions(t, nothing);
  const [files, kept] = [join(root, "data", ".functions"), join(root, "kept")];
  await calls.post("namespace/n/create", {});
  await calls.post("secret/n$s/create", { value: "x" });
  const secret_bindings = [
    { kind: "env", variable: "TOKEN", secret_ref: { name: "s", namespace_path: ["n"] } },
  ];
  const version = await register(calls, "n$f", { secret_bindings });
  await calls.upload("table/t/create/", personStream(people(3)));
  await calls.post("table/t/add_columns/", columnOf(version, "loud"));
  await cp(files, kept, { recursive: true });
  await calls.post("namespace/n/drop", cascade);
  await rm(files, { recursive: true });
  await cp(kept, files, { recursive: true });
  await calls.post("namespace/n/create", {});
  assert.deepEqual(await leftoversOf(root), ["names", "secrets", "versions"]);
  assert.deepEqual(await contentsOf(calls, "n"), []);
  await calls.refused("TableVersionNotFound", "function/n$f/describe", { version: "1" });
  await calls.refused("TableVersionNotFound", "table/t/backfill_column", { column: "loud" }, 400);
  await calls.refused("InvalidInput", "secret/n$s/describe", {});
  await calls.refused("InvalidInput", "function/n$f/create", registration({ secret_bindings }));
  await calls.post("secret/n$s/create", { value: "y" });
  const again = await register(calls, "n$f", { secret_bindings });
  assert.deepEqual([again.version, again.object_id === version.object_id], ["1", false]);
  assert.deepEqual(await contentsOf(calls, "n"), ["f", "s"]);
  await calls.post("namespace/n/drop", cascade);
  assert.deepEqual(await filesOf(root), [], "a drop takes what another one has left");
}, 60_000);

test("gc collects the failed rows and the functions of the columns of dropped tables alone", async (t) => {
  const { calls, root } = await serveFunctions(t, async (driver) => {
    const version = Number((await driver.task()).task?.["version"]);
    const errors = [{ fragment: 0, offset: 1, type: "ValueError", message: "no" }];
    const fragments = [{ fragment: 0, skipped: 1, recorded: 1 }];
    await driver.finish({
      result: { rows: 0, version, failed: 1, source_version: version, errors, fragments },
    });
  });
  const version = await register(calls);
  for (const table of ["t", "u"]) {
    await calls.upload(`table/${table}/create/`, personStream(people(3)));
    await calls.post(`table/${table}/add_columns/`, columnOf(version, "loud"));
    const { job_id } = await calls.post(`table/${table}/backfill_column`, { column: "loud" });
    await calls.ended(job_id);
  }
  await calls.post("table/u/deregister", {});
  assert.deepEqual(await leftoversOf(root), []);
  // A drop takes them of a table in the root, whose place another one may take; a crash leaves them.
  const [files, kept] = [join(root, "data", ".functions"), join(root, "kept")];
  await cp(files, kept, { recursive: true });
  await calls.post("table/t/drop/");
  assert.deepEqual(await leftoversOf(root), []);
  await cp(kept, files, { recursive: true });
  assert.deepEqual(await leftoversOf(root, true), ["columns", "errors"]);
  assert.deepEqual(await leftoversOf(root), []);
  const left = (part: string) => readdir(join(root, "data", ".functions", part));
  assert.deepEqual([(await left("columns")).length, (await left("errors")).length], [1, 1]);
}, 60_000);

test("a gateway whose reads may be older gives a new namespace its functions and secrets", async (t) => {
  const { calls, root } = await serveFunctions(t, nothing);
  const log = pino({ level: "silent" });
  const { context, close } = await openDirectory({ root, log, maxStalenessMs: 60_000 });
  t.onTestFinished(close);
  await calls.post("namespace/n/create", {});
  await calls.post("secret/n$s/create", { value: "x" });
  await context.catalog.read();
  await calls.post("namespace/n/drop", cascade);
  await calls.post("namespace/n/create", {});
  await calls.post("secret/n$s/create", { value: "y" });
  const { secrets } = openFunctionsOf(context, { key: "k".repeat(32) });
  assert.equal(await secrets?.create(["n", "other"], "z", Date.now()), true);
  assert.deepEqual((await contentsOf(calls, "n")).sort(), ["other", "s"]);
}, 60_000);

test("a name that a crash has left without a version keeps no namespace", async (t) => {
  const { calls, root } = await serveFunctions(t, nothing);
  await calls.post("namespace/n/create", {});
  await register(calls, "n$f");
  await rm(join(root, "data", ".functions", "versions"), { recursive: true });
  assert.deepEqual(await contentsOf(calls, "n"), []);
  await calls.post("namespace/n/drop", {});
  assert.deepEqual((await readdir(join(root, "data", ".functions", "names"))).length, 0);
}, 60_000);

test("no acknowledged function is missing after a drop without a cascade", async (t) => {
  const { calls } = await serveFunctions(t, nothing);
  for (let round = 0; round < 20; round++) {
    await calls.post("namespace/n/create", {});
    const creation =
      round % 2 === 0 ? register(calls, "n$f") : calls.post("secret/n$f/create", { value: "x" });
    await sleep(round);
    const drop = calls.post("namespace/n/drop", {});
    const [created, gone] = await Promise.allSettled([creation, drop]);
    if (gone.status === "fulfilled") assert.equal(created.status, "rejected", `round ${round}`);
    else if (created.status === "fulfilled") {
      assert.deepEqual(await contentsOf(calls, "n"), ["f"]);
      await calls.post("namespace/n/drop", cascade);
    } else await calls.post("namespace/n/drop", {});
  }
}, 60_000);

test("only an owner of the whole catalog drops a namespace with functions", async (t) => {
  const [owner, scoped] = [drawKey(), drawKey()];
  const facts = { hash: "", created: "2026-01-01T00:00:00.000Z", role: "owner" } as const;
  const keys: readonly KeyRecord[] = [
    { ...facts, id: owner.id, name: "owner" },
    { ...facts, id: scoped.id, name: "scoped", scope: ["n"] },
  ];
  const find = (text: string) => keys[[owner.text, scoped.text].indexOf(text)] ?? ("unknown" as const);
  const authenticator = createAuthenticator([proveByKeys({ find, close() {} })], { failed: () => 0 });
  const { as, calls } = await serveFunctions(t, nothing, {
    ...{ context: { authenticator }, headers: { "x-api-key": owner.text } },
  });
  await calls.post("namespace/n/create", {});
  await calls.post("namespace/n$inner/create", {});
  await register(calls, "n$inner$f");
  const other = as({ "x-api-key": scoped.text });
  await other.refused("PermissionDenied", "namespace/n$inner/drop", cascade);
  await other.refused("PermissionDenied", "namespace/n$inner/create", { mode: "Overwrite" });
  await other.refused("NamespaceNotEmpty", "namespace/n$inner/drop", {});
  await calls.post("function/n$inner$f/drop", { version: "1" });
  await other.post("namespace/n$inner/drop", cascade);
}, 60_000);

test("a namespace is not created as the home of functions", async (t) => {
  const { calls } = await serveFunctions(t, nothing);
  const properties = { "lance_gateway.functions": crypto.randomUUID() };
  await calls.refused("InvalidInput", "namespace/n/create", { properties });
}, 60_000);

test("the home of functions is not among the properties that a namespace shows", async (t) => {
  const { calls } = await serveFunctions(t, nothing);
  const properties = { owner: "ada" };
  await calls.post("namespace/n/create", { properties });
  await calls.post("secret/n$s/create", { value: "x" });
  assert.deepEqual(await calls.post("namespace/n/describe", {}), { properties });
  assert.deepEqual(await calls.post("namespace/n/create", { mode: "ExistOk", properties }), { properties });
  assert.deepEqual(await calls.post("namespace/n/drop", cascade), { properties });
});
