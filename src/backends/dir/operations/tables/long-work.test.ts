import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { Int32 } from "apache-arrow";
import { type TestContext, test } from "vitest";
import {
  failsWith,
  openClient,
  silent,
  type TestClient,
  temporaryDirectory,
} from "../../../../../test/fixtures/dir/directory-backend.ts";
import { engineWith } from "../../../../../test/fixtures/dir/engine.ts";
import { beginCall } from "../../../../../test/support/caller.ts";
import { streamOf } from "../../../../../test/support/rows.ts";
import { createPartBufferPool } from "../../../../arrow/ipc/part-buffer.ts";
import { UpdateTableRequestSchema } from "../../../../gen/lance/namespace/v1/data_pb.ts";
import { LanceNamespaceService } from "../../../../gen/lance/namespace/v1/service_pb.ts";
import type { NativeTable } from "../../engine/native/native.ts";
import { openDirectory } from "../../open-directory.ts";
import { createChangeOperations } from "../rows/change.ts";
import { insertRows } from "../rows/insert.ts";
import { requireTable } from "./find-table.ts";

const { insertIntoTable, updateTable } = LanceNamespaceService.method;
const row = streamOf({ id: { type: new Int32(), values: [1] } });

/** Opens a table with a row, whose engine fails in a way that nobody knows, after `before`. */
async function openFailing(
  t: TestContext,
  method: keyof NativeTable,
  before: (client: TestClient) => Promise<unknown>,
) {
  const root = await temporaryDirectory(t);
  const client = await openClient(t, root);
  await client.upload("createTable", "t", {}, row);
  const { context, close } = await openDirectory({ root, log: silent });
  t.onTestFinished(close);
  const engine = engineWith(context.engine, method, async () => {
    await before(client);
    throw new Error("odd");
  });
  return { ...context, engine };
}

type Failing = Awaited<ReturnType<typeof openFailing>>;

const CHANGES: Readonly<Record<string, [keyof NativeTable, (context: Failing) => Promise<unknown>]>> = {
  insert: [
    "add",
    async (context) => {
      async function* body() {
        yield row;
      }
      const target = {
        table: await requireTable(context, { id: ["t"] }),
        branch: undefined,
        overwrite: false,
      };
      const limits = { maxUploadBytes: 1e9, uploadPartBytes: 1e6 };
      const uploads = { ...limits, uploadBuffers: createPartBufferPool(limits.uploadPartBytes) };
      return insertRows(
        { ...context, ...uploads },
        target,
        body(),
        beginCall(insertIntoTable, { id: ["t"] }),
      );
    },
  ],
  update: [
    "update",
    (context) => {
      const updates = [{ column: "id", expression: "id + 1" }];
      const call = beginCall(updateTable, { id: ["t"] });
      return createChangeOperations(context).updateTable(create(UpdateTableRequestSchema, { updates }), call);
    },
  ],
};

for (const [change, [method, make]] of Object.entries(CHANGES)) {
  test(`an ${change} that fails in an unknown way is Internal while it has made no version`, async (t) => {
    const context = await openFailing(t, method, async () => {});
    await assert.rejects(make(context), failsWith("Internal"));
  });

  test(`an ${change} that fails in an unknown way is OutcomeUnknown if there is a version that it may have made`, async (t) => {
    const context = await openFailing(t, method, (client) => client.upload("insertIntoTable", "t", {}, row));
    await assert.rejects(make(context), failsWith("OutcomeUnknown"));
  });
}
