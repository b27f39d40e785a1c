import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import {
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { idsOf, rows } from "../../../../../test/fixtures/dir/rows.ts";
import { CloneTableRequestSchema } from "../../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { InsertMode } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import type { Call } from "../../../../namespace/call/call.ts";
import { openDirectory } from "../../open-directory.ts";
import { UPKEEP_TIMES } from "../../upkeep/activity.ts";
import { DEFAULT_POLICY } from "../../upkeep/policy.ts";
import { pruneTable } from "../../upkeep/prune-table.ts";
import { createCloneOperations } from "./clone.ts";
import { requireTable } from "./find-table.ts";

test("a version is not pruned while it is cloned", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, rows([1]));
  for (const id of [2, 3, 4])
    await client.upload("insertIntoTable", "t", { mode: InsertMode.OVERWRITE }, rows([id]));
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const { signal } = new AbortController();
  const table = await requireTable(context, { id: ["t"] });
  // An hour later, all of these versions are old enough.
  const later = { ...context, clock: { now: async () => Date.now() + 3_600_000 } };
  const policy = { ...DEFAULT_POLICY, maxVersions: 1 };
  const copy = async (from: string, to: string) => {
    await pruneTable(later, table, policy, UPKEEP_TIMES, new Map(), signal);
    return context.store.copy(from, to);
  };
  const { cloneTable } = createCloneOperations({ ...context, store: { ...context.store, copy } });
  const request = create(CloneTableRequestSchema, { sourceLocation: table.path, sourceVersion: 2n });
  await cloneTable(request, { id: ["c"], signal } as unknown as Call);
  assert.deepEqual(idsOf(await client.query("c")), [2]);
  assert.equal((await client.call("listTableVersions", "t")).versions.length, 2);
});
