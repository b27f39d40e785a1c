import assert from "node:assert/strict";
import { copyFile, cp, readdir } from "node:fs/promises";
import { join } from "node:path";
import { type TestContext, test } from "vitest";
import { temporaryDirectory } from "../support/directory.ts";
import { columnOf, register, type ServiceChanges, serveFunctions, withTable } from "./function-service.ts";
import type { RemoteCalls } from "./remote-calls.ts";

const secretsOf = (root: string) => join(root, "data", ".functions", "secrets");

/** Serves a catalog with a table whose column needs the secret `token`; the values of drivers come into a list. */
async function serveSecret(t: TestContext, value: string, changes?: ServiceChanges) {
  const seen: unknown[] = [];
  const served = await serveFunctions(
    t,
    async (driver) => {
      try {
        const { task } = await driver.task();
        seen.push((task as unknown as { function: { secrets: unknown } }).function.secrets);
        await driver.finish({ result: { rows: 0, version: 2, failed: 0 } });
      } catch (error) {
        await driver.finish({ failure: { message: (error as Error).message, retryable: false } });
      }
    },
    changes,
  );
  const { calls } = served;
  await withTable(calls);
  await calls.post("secret/token/create", { value });
  const secret_bindings = [{ kind: "env", variable: "TOKEN", secret_ref: { name: "token" } }];
  await calls.post("table/t/add_columns/", columnOf(await register(calls, "f", { secret_bindings }), "loud"));
  return { ...served, seen };
}

async function refresh(calls: RemoteCalls): Promise<string | undefined> {
  const { job_id } = await calls.post("table/t/backfill_column", { column: "loud" });
  return (await calls.ended(job_id)).failure?.message;
}

const CANNOT = /the secret token cannot be opened: .* set it again \(alter_secret\)/;

test("a secret of another catalog with the same key cannot take the place of one", async (t) => {
  const [one, other] = [await serveSecret(t, "own"), await serveSecret(t, "foreign")];
  const [name = ""] = await readdir(secretsOf(other.root));
  assert.deepEqual(await readdir(secretsOf(one.root)), [name]);
  await copyFile(join(secretsOf(other.root), name), join(secretsOf(one.root), name));
  assert.match((await refresh(one.calls)) ?? "", CANNOT);
  assert.deepEqual(one.seen, []);
  await one.calls.post("secret/token/alter", { value: "again" });
  assert.equal(await refresh(one.calls), undefined);
  assert.deepEqual(one.seen, [{ TOKEN: "again" }]);
}, 60_000);

test("a secret of another name, or of a former namespace of the name, cannot take the place of one", async (t) => {
  const { root, calls, seen } = await serveSecret(t, "own");
  const before = await readdir(secretsOf(root));
  await calls.post("secret/other/create", { value: "foreign" });
  const [foreign = ""] = (await readdir(secretsOf(root))).filter((name) => !before.includes(name));
  await copyFile(join(secretsOf(root), foreign), join(secretsOf(root), before[0] ?? ""));
  assert.match((await refresh(calls)) ?? "", CANNOT);
  assert.deepEqual(seen, []);
}, 60_000);

test("the secrets of a catalog that was moved, or has another key, are to be set again", async (t) => {
  const former = await serveSecret(t, "own");
  const moved = await temporaryDirectory();
  t.onTestFinished(moved.remove);
  await cp(former.root, moved.path, { recursive: true });
  for (const changes of [{ root: moved.path }, { root: former.root, functions: { key: "o".repeat(32) } }]) {
    const { calls } = await serveFunctions(
      t,
      async (driver) => {
        const message = await driver.task().then(
          () => "opened",
          (error: Error) => error.message,
        );
        await driver.finish({ failure: { message, retryable: false } });
      },
      changes,
    );
    assert.match((await refresh(calls)) ?? "", CANNOT);
    await calls.post("secret/token/alter", { value: "own" });
    assert.match((await refresh(calls)) ?? "", /opened/);
  }
}, 60_000);
