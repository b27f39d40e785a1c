import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { test, vi } from "vitest";
import {
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { engineWith } from "../../../../../test/fixtures/dir/engine.ts";
import { people, personStream } from "../../../../../test/support/arrow.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { openDirectory } from "../../open-directory.ts";
import { createChangeOperations } from "../rows/change.ts";

test("a change that takes longer than ten seconds is noted for other processes until it ends", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, personStream(people(3)));
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
  t.onTestFinished(close);
  const isNoted = () => context.work.isAtWork("t.lance");
  t.onTestFinished(() => void vi.useRealTimers());
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
  const seen: boolean[] = [];
  const engine = engineWith(context.engine, "delete", async () => {
    vi.advanceTimersByTime(9_000);
    await turn();
    seen.push(await isNoted());
    vi.advanceTimersByTime(1_000);
    while (!(await isNoted())) await turn();
    seen.push(true);
  });
  const { deleteFromTable } = createChangeOperations({ ...context, engine });
  const method = LanceNamespaceService.method.deleteFromTable;
  const call = beginCall(method, { id: ["t"] });
  const { numDeletedRows } = await deleteFromTable(create(method.input, { predicate: "id = 1" }), call);
  assert.equal(numDeletedRows, 1n);
  assert.deepEqual(seen, [false, true]);
  assert.equal(await isNoted(), false);
});
