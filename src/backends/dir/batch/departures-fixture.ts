import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Int32, Table, tableToIPC, vectorFromArray } from "apache-arrow";
import type { TestContext } from "vitest";
import { beginCall } from "../../../../test/support/caller.ts";
import { DropNamespaceBehavior } from "../../../gen/lance/namespace/v1/namespace_pb.ts";
import { LanceNamespaceService } from "../../../gen/lance/namespace/v1/service_pb.ts";
import { parseIdentifier } from "../../../namespace/identifier.ts";
import { createWriteGate } from "../concurrency/write-gate.ts";
import { openDirectory } from "../open-directory.ts";
import type { DirContext } from "../operations/context.ts";
import { createNamespaceOperations } from "../operations/namespaces/namespaces.ts";
import { createDropOperations } from "../operations/tables/drop.ts";
import { openClient, silent, temporaryDirectory } from "../test-support.ts";

export const rows = tableToIPC(new Table({ id: vectorFromArray([1, 2], new Int32()) }), "stream");
const { method } = LanceNamespaceService;

/** Returns a catalog with tables, and a gateway of its own whose changes the test can observe. */
export async function createWorld(t: TestContext, ...names: string[]) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  if (names.some((name) => name.includes("$"))) await client.call("createNamespace", "n");
  for (const name of names) await client.upload("createTable", name, {}, rows);
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const base = join(root, "data");
  return {
    base,
    client,
    context,
    drop(id: string, changed: Partial<DirContext>) {
      const call = beginCall(method.dropTable, { id: parseIdentifier(id) });
      // A second drop beside it does not wait for it, as in another gateway.
      const operations = createDropOperations({ ...context, histories: createWriteGate(), ...changed });
      return operations.dropTable(create(method.dropTable.input), call);
    },
    deregister(id: string, changed: Partial<DirContext>) {
      const call = beginCall(method.deregisterTable, { id: parseIdentifier(id) });
      const operations = createDropOperations({ ...context, ...changed });
      return operations.deregisterTable(create(method.deregisterTable.input), call);
    },
    dropNamespace(changed: Partial<DirContext>) {
      const request: MessageInitShape<typeof method.dropNamespace.input> = {
        behavior: DropNamespaceBehavior.CASCADE,
      };
      const call = beginCall(method.dropNamespace, { id: ["n"] });
      const operations = createNamespaceOperations({ ...context, ...changed });
      return operations.dropNamespace(create(method.dropNamespace.input, request), call);
    },
    /** Acts as another implementation: it takes the row, keeps the directory, and does not read notes. */
    takeRow: (id: string) => context.catalog.mutate((draft) => draft.delete(id)),
    directoryOf: async (id: string) => {
      const { location } = await client.call("describeTable", id);
      return location as string;
    },
    notes: () => readdir(join(base, ".intents")),
  };
}
