import assert from "node:assert/strict";
import { test } from "vitest";
import { openClient, temporaryDirectory } from "../../../test/fixtures/dir/directory-backend.ts";
import { rows } from "../../../test/fixtures/dir/rows.ts";
import { createRoundBucket, type Rounds } from "../../../test/support/round-bucket.ts";

/** Long enough for no refresh of views to begin during the test, in milliseconds. */
const NEVER = 3_600_000;

/** The check of the catalog, alone and after a commit of this process. */
const CHECK = ["HEAD __manifest/_versions", "HEAD __manifest/_versions"];
/** The checks of a call that opens a table: a listing for each of the catalog and the table. */
const OPEN_CHECK = ["LIST __manifest/_versions", "LIST */_versions"];
const CHECK_AFTER_COMMIT = [...CHECK, "HEAD __manifest/_versions"];

/** The files of a commit of the catalog, which are written during the check, and its manifest. */
const COMMIT = ["PUT __manifest/data", "PUT __manifest/_transactions", "PUT if absent __manifest/_versions"];

/** Asserts the requests of a call in any order, and how often the call waited for answers. */
function assertRequests(found: Rounds, rounds: number, requests: readonly string[]): void {
  assert.deepEqual(found.requests.toSorted(), requests.toSorted());
  assert.equal(found.rounds, rounds);
}

test("a call on a bucket waits for few answers in a row, and asks for nothing twice", async (t) => {
  const root = await temporaryDirectory(t);
  const { storage, take } = createRoundBucket(root);
  const { call, upload } = await openClient(t, root, {
    storage,
    maintenance: false,
    autoRefresh: { settleMs: NEVER, waitMs: NEVER, lookMs: NEVER },
  });
  await call("createNamespace", "n");
  await upload("createTable", "n$t", {}, rows([1]));
  await call("countTableRows", "n$t");

  async function requestsOf(work: () => Promise<unknown>): Promise<Rounds> {
    // The check of this call finds what earlier calls have committed.
    await call("namespaceExists", "n");
    take();
    await work();
    return take();
  }
  for (const read of [
    () => call("describeTable", "n$t"),
    () => call("tableExists", "n$t"),
    () => call("listTables", "n"),
    () => call("namespaceExists", "n"),
  ])
    assertRequests(await requestsOf(read), 1, CHECK);
  const count = await requestsOf(() => call("countTableRows", "n$t"));
  assertRequests(count, 1, OPEN_CHECK);
  // The engine makes the other four requests of an insert, one after the other.
  for (const ids of [[2], [3]]) {
    const insert = await requestsOf(() => upload("insertIntoTable", "n$t", {}, rows(ids)));
    assertRequests(insert, 1, OPEN_CHECK);
  }
  const declare = await requestsOf(() => call("declareTable", "n$declared"));
  assertRequests(declare, 3, ["PUT *", ...CHECK, ...COMMIT]);
  // The engine writes on the local disk; then the files go to the bucket together, and the manifest follows.
  const created = await requestsOf(() => upload("createTable", "n$created", {}, rows([1])));
  assertRequests(created, 5, [
    ...CHECK,
    ...["PUT */data", "PUT */_transactions", "PUT if absent */_versions"],
    ...[...CHECK, ...COMMIT],
  ]);
  assert.equal((await call("countTableRows", "n$created")).count, 1n);
  const namespace = await requestsOf(() => call("createNamespace", "n$inner"));
  assertRequests(namespace, 2, [...CHECK, ...COMMIT]);

  take();
  await call("createNamespace", "n$next");
  assertRequests(take(), 2, [...CHECK_AFTER_COMMIT, ...COMMIT]);
  assert.equal((await call("countTableRows", "n$t")).count, 3n);
});
