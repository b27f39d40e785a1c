import assert from "node:assert/strict";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { describe, test } from "vitest";
import { count, ID, openComposed } from "../../../test/fixtures/upstreams/composed.ts";
import { people, personStream } from "../../../test/support/arrow.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { temporaryDirectory } from "../../../test/support/directory.ts";
import { refused } from "../../../test/support/expect.ts";
import { CreateTableMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  DeclareTableRequestSchema,
  DeclareTableResponseSchema,
  DeregisterTableResponseSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import { BatchCommitTablesRequestSchema } from "../../gen/lance/namespace/v1/transaction_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";

describe("rows of an upstream's tables", () => {
  test("are created once when the answer to the declaration is lost", async (t) => {
    let isLost = true;
    const { client } = await openComposed(t, (catalog) => ({
      async declareTable(request, call) {
        const answer = await catalog.declareTable(request, call);
        if (!isLost) return answer;
        isLost = false;
        throw new LanceError("DeadlineExceeded", "the upstream did not answer in time");
      },
    }));
    await refused("DeadlineExceeded", client.createTable({ id: ID }, personStream(people(3))));
    await refused("TableNotFound", client.countTableRows({ id: ID }));
    await client.createTable({ id: ID }, personStream(people(3)));
    assert.equal(await count(client), 3n);
    await refused("TableAlreadyExists", client.createTable({ id: ID }, personStream(people(3))));
    assert.equal(await count(client), 3n);
  });

  test("are created by exactly one of several callers", async (t) => {
    const { client } = await openComposed(t);
    const created = await Promise.allSettled(
      [1, 2, 3, 4, 5, 6].map((rows) => client.createTable({ id: ID }, personStream(people(rows)))),
    );
    const [winner, ...others] = created.flatMap(({ status }, at) => (status === "fulfilled" ? [at] : []));
    assert.ok(winner !== undefined);
    assert.deepEqual(others, []);
    assert.equal(await count(client), BigInt(winner + 1));
  });

  test("that are refused leave no declared table behind", async (t) => {
    const { client, upstream } = await openComposed(t);
    await assert.rejects(client.createTable({ id: ID }, new TextEncoder().encode("no Arrow stream")));
    await refused("TableNotFound", upstream.describeTable({ id: ID }));
  });

  test("are not created from rows with an idempotency key", async (t) => {
    const { client, upstream } = await openComposed(t);
    const context = { "header.idempotency-key": "k1" };
    await refused("Unsupported", client.createTable({ id: ID, context }, personStream(people(1))));
    await refused("TableNotFound", upstream.describeTable({ id: ID }));
  });

  test("of another table at the place of a new one are neither replaced nor shown", async (t) => {
    const { path, remove } = await temporaryDirectory();
    t.onTestFinished(remove);
    const entries = new Map<string, string>();
    const nameOf = ({ id }: Call) => id.join(".");
    const { client } = await openComposed(
      t,
      () => ({
        async describeTable(_, call) {
          const location = entries.get(nameOf(call));
          if (location === undefined) throw new LanceError("TableNotFound", "no such table");
          return create(DescribeTableResponseSchema, { location });
        },
        async declareTable(_, call) {
          const location = join(path, `${nameOf(call)}.lance`);
          entries.set(nameOf(call), location);
          return create(DeclareTableResponseSchema, { location });
        },
        async deregisterTable(_, call) {
          entries.delete(nameOf(call));
          return create(DeregisterTableResponseSchema, {});
        },
      }),
      { allowedLocations: [path] },
    );
    await client.createTable({ id: ["x"] }, personStream(people(7)));
    await client.deregisterTable({ id: ["x"] });
    entries.set("y", join(path, "x.lance"));
    // Times of files are coarse.
    await new Promise((resolve) => setTimeout(resolve, 50));
    for (const mode of [CreateTableMode.CREATE, CreateTableMode.EXIST_OK, CreateTableMode.OVERWRITE]) {
      await refused("InvalidTableState", client.createTable({ id: ["x"], mode }, personStream(people(1))));
      await refused("TableNotFound", client.describeTable({ id: ["x"] }));
    }
    await refused("InvalidTableState", client.declareTable({ id: ["x"] }));
    await refused("TableNotFound", client.describeTable({ id: ["x"] }));
    assert.equal(await count(client, ["y"]), 7n);
    // A caller who chooses the place itself, and one whose answer is repeated, know what is there.
    await client.declareTable({ id: ["x"], location: join(path, "x.lance") });
    assert.equal(await count(client, ["x"]), 7n);
    const context = { "header.idempotency-key": "k1" };
    await client.declareTable({ id: ["x"], context });
    await client.declareTable({ id: ["z"] });
    await client.createTable({ id: ["z"] }, personStream(people(2)));
    assert.equal(await count(client, ["z"]), 2n);
  });

  test("are not reached by a writer who declares their location", async (t) => {
    const { backend, root } = await openComposed(t);
    const operations = backend.operations as LanceNamespace;
    const location = join(root, "data", "t.lance");
    const writer = { id: ["u"], may: (action: string) => action !== "manage" };
    const { declareTable, batchCommitTables } = LanceNamespaceService.method;
    const value = create(DeclareTableRequestSchema, { id: ["u"], location });
    await assert.rejects(
      async () => operations.declareTable(value, beginCall(declareTable, writer)),
      (error) => isLanceError(error, "PermissionDenied"),
    );
    const batch = create(BatchCommitTablesRequestSchema, {
      operations: [{ operation: { case: "declareTable", value } }],
    });
    await assert.rejects(
      async () => operations.batchCommitTables(batch, beginCall(batchCommitTables, writer)),
      (error) => isLanceError(error, "PermissionDenied"),
    );
  });
});
