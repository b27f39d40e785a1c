import assert from "node:assert/strict";
import { setImmediate as turn } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { test, vi } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { engineWith } from "../../../../../test/fixtures/dir/engine.ts";
import { people, personStream } from "../../../../../test/support/arrow.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import { createTurns } from "../../concurrency/turns.ts";
import { openDirectory } from "../../open-directory.ts";
import { createChangeOperations } from "../rows/change.ts";
import { openGuarded } from "./call-data.ts";

for (const next of ["nothing", "another table"]) {
  test(`work on a table that was dropped, and has ${next} in its place, does not report damage`, async (t) => {
    const root = await temporaryDirectory(t);
    const client = await openClient(t, root);
    const { context, close } = await openDirectory({ root, log: silent, maintenance: false });
    t.onTestFinished(close);
    await client.upload("createTable", "t", {}, personStream(people(3)));
    const call = beginCall(LanceNamespaceService.method.countTableRows, { id: ["t"] });
    const data = await openGuarded(context, call, {});
    await client.call("dropTable", "t");
    if (next !== "nothing") await client.call("declareTable", "t");
    await assert.rejects(
      data.wait(() => data.table.checkoutLatest()),
      failsWith("TableNotFound"),
    );
    data.release();
  });
}

test("costly work keeps its caller's turn after the call has ended, and other callers have theirs", async (t) => {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  const engineTurns = createTurns(2, 1);
  const { context, close } = await openDirectory({ root, log: silent, maintenance: false, engineTurns });
  t.onTestFinished(close);
  await client.upload("createTable", "t", {}, personStream(people(3)));
  const open = async (peer: string, signal = new AbortController().signal) => {
    const call = beginCall(LanceNamespaceService.method.countTableRows, { id: ["t"], peer, signal });
    return openGuarded(context, call, {});
  };
  const { promise: endless, resolve: end } = Promise.withResolvers<void>();
  const ending = new AbortController();
  const first = await open("10.0.0.1", ending.signal);
  first.takeTurns();
  const costly = assert.rejects(
    first.wait(() => endless),
    failsWith("Cancelled"),
  );
  ending.abort();
  await costly;
  first.release();
  const second = await open("10.0.0.1");
  second.takeTurns();
  let began = false;
  const waiting = second.wait(async () => {
    began = true;
  });
  const other = await open("10.0.0.2");
  other.takeTurns();
  assert.equal(await other.wait(async () => other.wait(async () => "nested")), "nested");
  assert.equal(await (await open("10.0.0.1")).wait(async () => "cheap"), "cheap");
  assert.equal(began, false);
  end();
  await waiting;
  assert.equal(began, true);
});

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
