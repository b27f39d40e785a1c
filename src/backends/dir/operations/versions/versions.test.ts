import assert from "node:assert/strict";
import { readFile, rm, writeFile } from "node:fs/promises";
import { create } from "@bufbuild/protobuf";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { InsertMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { RestoreTableRequestSchema } from "../../../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { describeVersion } from "../../format/versions/version-files.ts";
import { openDirectory } from "../../open-directory.ts";
import { UPKEEP_TIMES } from "../../upkeep/activity.ts";
import { DEFAULT_POLICY } from "../../upkeep/policy.ts";
import { pruneTable } from "../../upkeep/prune-table.ts";
import { requireTable } from "../tables/find-table.ts";
import { datasetOf } from "../tables/open-data.ts";
import { createVersionOperations } from "./versions.ts";

/**
 * Restores version 2 of a table with three, while another gateway prunes it.
 *
 * @param beforeTakingBack called right before the restored version is taken back
 */
async function restoreWhilePruned(
  t: TestContext,
  beforeTakingBack: (client: TestClient) => Promise<unknown> = async () => {},
) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([1]));
  for (const id of [2, 3])
    await client.upload("insertIntoTable", "t", { mode: InsertMode.OVERWRITE }, rows([id]));
  const [{ context, close }, other] = await Promise.all([
    openDirectory({ root, log: silent }),
    openDirectory({ root, log: silent }),
  ]);
  t.onTestFinished(close);
  t.onTestFinished(other.close);
  const { signal } = new AbortController();
  const table = await requireTable(context, { id: ["t"] });
  const manifest = `/${(await describeVersion(datasetOf(context, table), 2n)).key}`;
  const bytes = await readFile(manifest);

  /** Prunes version 2, and commits the restored one right before its files go. The engine has read its manifest earlier. */
  async function restoreBetween(native: NativeTable): Promise<void> {
    let deletions = 0;
    const deleteAll: typeof other.context.store.deleteAll = async (keys) => {
      if (++deletions === 2) {
        await writeFile(manifest, bytes);
        await native.restore();
        await rm(manifest);
      }
      await other.context.store.deleteAll(keys);
    };
    // An hour later, all of these versions are old enough.
    const clock = { now: async () => Date.now() + 3_600_000 };
    const pruning = { ...other.context, clock, store: { ...other.context.store, deleteAll } };
    await pruneTable(pruning, table, { ...DEFAULT_POLICY, maxVersions: 1 }, UPKEEP_TIMES, new Map(), signal);
    assert.equal(deletions, 2);
  }
  const atVersion: typeof context.engine.atVersion = async (handle, version) => {
    const native = await context.engine.atVersion(handle, version);
    if (version !== 2) return native;
    return new Proxy(native, {
      get(target, name) {
        const member = Reflect.get(target, name);
        if (name === "restore") return () => restoreBetween(target);
        return typeof member === "function" ? member.bind(target) : member;
      },
    });
  };
  let isCalled = false;
  async function notify() {
    if (isCalled) return;
    isCalled = true;
    await beforeTakingBack(client);
  }
  const putIfAbsent: typeof context.store.putIfAbsent = async (...args) => {
    if (args[0].includes("/t.lance/_versions/")) await notify();
    return context.store.putIfAbsent(...args);
  };
  const { restoreTable } = createVersionOperations({
    ...context,
    engine: { ...context.engine, atVersion },
    store: { ...context.store, putIfAbsent },
  });
  const request = create(RestoreTableRequestSchema, { version: 2n });
  return { client, answer: restoreTable(request, { id: ["t"], signal } as unknown as Call) };
}

test("a version that another gateway prunes while it is restored is not the newest one afterwards", async (t) => {
  const { client, answer } = await restoreWhilePruned(t);
  await assert.rejects(answer, failsWith("TableVersionNotFound"));
  assert.deepEqual(idsOf(await client.query("t")), [3]);
});

test("rows that are added to a restored version stay when it is to be taken back", async (t) => {
  const { client, answer } = await restoreWhilePruned(t, (other) =>
    other.upload("insertIntoTable", "t", {}, rows([9])),
  );
  await assert.rejects(answer, failsWith("OutcomeUnknown"));
  const { count } = await client.call("countTableRows", "t", {});
  assert.equal(count, 2n);
});
