import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { test } from "vitest";
import { beginCall } from "../../../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { NativeTable } from "../../engine/native.ts";
import { openDirectory } from "../../open-directory.ts";
import { rows } from "../../rows-fixture.ts";
import { openClient, silent, temporaryDirectory } from "../../test-support.ts";
import { createColumnOperations } from "./columns.ts";

const changes = [
  ["dropped", "alterTableDropColumns", { columns: ["name"] }, "dropColumns"],
  ["renamed", "alterTableAlterColumns", { alterations: [{ path: "name", rename: "n" }] }, "alterColumns"],
  ["added", "alterTableAddColumns", { newColumns: [{ name: "n", expression: "id + 1" }] }, "addColumns"],
] as const;

for (const [what, operation, init, engineMethod] of changes) {
  test(`metadata that another gateway sets while a column is ${what} stays`, async (t) => {
    const root = await temporaryDirectory(t);
    const client = await openClient(t, root);
    await client.upload("createTable", "t", {}, rows([1]));
    const { context, close } = await openDirectory({ root, log: silent });
    t.onTestFinished(close);
    let tries = 0;
    const setBefore = (table: NativeTable) =>
      new Proxy(table, {
        get(target, key) {
          const value = target[key as keyof NativeTable] as (...args: unknown[]) => unknown;
          if (key !== engineMethod) return value.bind(target);
          return async (...args: unknown[]) => {
            if (++tries === 1) {
              await client.call("updateTableSchemaMetadata", "t", { metadata: { a: "b" } });
              const updates = [{ path: "id", metadata: { unit: { value: "m" } } }];
              await client.call("updateFieldMetadata", "t", { updates });
            }
            return value.apply(target, args);
          };
        },
      });
    const engine = {
      ...context.engine,
      async acquire(...args: Parameters<typeof context.engine.acquire>) {
        const lease = await context.engine.acquire(...args);
        return { ...lease, table: setBefore(lease.table) };
      },
    };
    const columns = createColumnOperations({ ...context, engine });
    const method = LanceNamespaceService.method[operation];
    const work = columns[operation] as (request: unknown, call: unknown) => Promise<unknown>;
    await work(create(method.input, init as never), beginCall(method, { id: ["t"] }));
    const { schema } = await client.call("describeTable", "t", { loadDetailedMetadata: true });
    assert.equal(schema?.metadata["a"], "b");
    assert.deepEqual(schema?.fields[0]?.metadata, { unit: "m" });
  });
}
