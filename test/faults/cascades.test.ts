import assert from "node:assert/strict";
import { type TestContext, test } from "vitest";
import { takeAllFor } from "../../src/auth/authenticator-fixture.ts";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { clientOf, silent, temporaryDirectory } from "../../src/backends/dir/test-support.ts";
import { CreateNamespaceMode, DropNamespaceBehavior } from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import type { LanceNamespace } from "../../src/namespace/lance-namespace.ts";
import { ann } from "../../src/namespace/principal-fixture.ts";
import { createCaller } from "../support/caller.ts";
import { CallError } from "../support/client.ts";

/**
 * A namespace `n` with a table, and a caller who may do everything except drop the table `n$kept`. The table is made when the
 * rights of the caller to drop what is in the namespace are decided, and before that happens.
 */
async function createWorld(t: TestContext) {
  const backend = await createDirectoryBackend({ root: await temporaryDirectory(t), log: silent });
  t.onTestFinished(() => backend.close());
  const owner = clientOf(backend);
  await owner.call("createNamespace", "n");
  await owner.call("declareTable", "n$own");
  const { dropNamespace, createNamespace } = backend.operations as LanceNamespace;
  const makeKept = () => owner.call("declareTable", "n$kept");
  const operations: Partial<LanceNamespace> = {
    ...backend.operations,
    dropNamespace: async (request, call) => {
      await makeKept();
      return dropNamespace(request, call);
    },
    createNamespace: async (request, call) => {
      await makeKept();
      return createNamespace(request, call);
    },
  };
  const caller = createCaller({
    backend: { ...backend, operations },
    limits: { maxUploadBytes: 1_000 },
    authenticator: takeAllFor(ann),
    authorizer: {
      allows: (_, { operation, object }) => !(operation === "DropTable" && object.id.at(-1) === "kept"),
      close() {},
    },
  });
  return { owner, caller };
}

const isConflict = (error: unknown) =>
  error instanceof CallError && error.message.includes("was made in the namespace meanwhile");

test("a cascade does not drop a table that was made after the decision about its contents", async (t) => {
  const { owner, caller } = await createWorld(t);
  const drop = caller.dropNamespace({ id: ["n"], behavior: DropNamespaceBehavior.CASCADE });
  await assert.rejects(drop, isConflict);
  await owner.call("describeTable", "n$kept");
  await owner.call("describeTable", "n$own");
});

test("a namespace that replaces another one does not drop such a table either", async (t) => {
  const { owner, caller } = await createWorld(t);
  const replace = caller.createNamespace({ id: ["n"], mode: CreateNamespaceMode.OVERWRITE });
  await assert.rejects(replace, isConflict);
  await owner.call("describeTable", "n$kept");
});
