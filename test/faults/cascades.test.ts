import assert from "node:assert/strict";
import { join } from "node:path";
import { type TestContext, test } from "vitest";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import {
  CreateNamespaceMode,
  DropNamespaceBehavior,
  DropNamespaceMode,
} from "../../src/gen/lance/namespace/v1/namespace_pb.ts";
import { type ErrorName, isLanceError } from "../../src/namespace/errors.ts";
import type { Backend, LanceNamespace } from "../../src/namespace/lance-namespace.ts";
import { takeAllFor } from "../fixtures/auth/authenticator.ts";
import { ann } from "../fixtures/auth/principal.ts";
import { removeRows } from "../fixtures/catalog/catalog.ts";
import { clientOf, silent, temporaryDirectory } from "../fixtures/dir/directory-backend.ts";
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
  return { owner, caller: callerOf({ ...backend, operations }) };
}

/** Creates a caller who may do everything except drop the table `kept` of any namespace. */
function callerOf(backend: Backend) {
  return createCaller({
    backend,
    limits: { maxUploadBytes: 1_000 },
    authenticator: takeAllFor(ann),
    authorizer: {
      allows: (_, { operation, object }) => !(operation === "DropTable" && object.id.at(-1) === "kept"),
      close() {},
    },
  });
}

/**
 * Tables whose ids are given, and the same caller. Another writer has left out the rows of some of the namespaces `n` and `n$x`.
 */
async function createGaps(t: TestContext, tables: readonly string[], ...missing: string[]) {
  const root = await temporaryDirectory(t);
  const backend = await createDirectoryBackend({ root, log: silent });
  t.onTestFinished(() => backend.close());
  const owner = clientOf(backend);
  await owner.call("createNamespace", "n");
  await owner.call("createNamespace", "n$x");
  for (const id of tables) await owner.call("declareTable", id);
  await removeRows(join(root, "data"), ...missing);
  return { owner, caller: callerOf(backend) };
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

const CASCADE = { id: ["n"], behavior: DropNamespaceBehavior.CASCADE };
const OVERWRITE = { id: ["n"], mode: CreateNamespaceMode.OVERWRITE };

const failsWith = (kind: ErrorName, text: RegExp) => (error: unknown) =>
  error instanceof CallError && isLanceError(error.cause, kind) && text.test(error.message);
const isRefused = failsWith("PermissionDenied", /on n is not allowed/);
const isUndecided = failsWith("NamespaceNotEmpty", /not declared/);

test("a namespace without a row is replaced only by a caller who may drop what is in it", async (t) => {
  const { owner, caller } = await createGaps(t, ["n$own", "n$kept"], "n");
  await assert.rejects(caller.createNamespace(OVERWRITE), isRefused);
  await owner.call("describeTable", "n$kept");
  await owner.call("dropTable", "n$kept");
  await caller.createNamespace(OVERWRITE);
  await assert.rejects(owner.call("describeTable", "n$own"));
});

test("a namespace without a row loses nothing when a caller creates it, and can then be dropped by rights", async (t) => {
  const { owner, caller } = await createGaps(t, ["n$own", "n$x$kept"], "n");
  await caller.createNamespace({ id: ["n"] });
  await owner.call("describeTable", "n$own");
  await assert.rejects(caller.dropNamespace(CASCADE), isRefused);
  await owner.call("describeTable", "n$x$kept");
});

for (const tables of [["n$x$kept"], ["n$own", "n$x$kept"], ["n$own", "n$x$own"]]) {
  test(`nothing decides about tables below a namespace without a row, so they stay: ${tables.join(", ")}`, async (t) => {
    const { owner, caller } = await createGaps(t, tables, "n$x");
    await assert.rejects(caller.dropNamespace(CASCADE), isUndecided);
    await assert.rejects(caller.createNamespace(OVERWRITE), isUndecided);
    for (const id of tables) await owner.call("describeTable", id);
    // With its row, the tables below it can be found and decided about.
    await owner.call("createNamespace", "n$x");
    if (tables.includes("n$x$kept")) await assert.rejects(caller.dropNamespace(CASCADE), isRefused);
    else await caller.dropNamespace(CASCADE);
  });
}

test("a chain of namespaces without rows keeps what is below it from a caller who replaces the first", async (t) => {
  const { owner, caller } = await createGaps(t, ["n$x$kept"], "n", "n$x");
  await assert.rejects(caller.createNamespace(OVERWRITE), isUndecided);
  await owner.call("describeTable", "n$x$kept");
});

test("a cascade of a missing namespace ends as the mode says, whatever is below it", async (t) => {
  for (const tables of [[], ["n$kept"]]) {
    const { caller } = await createGaps(t, tables, "n", "n$x");
    const skip = { ...CASCADE, mode: DropNamespaceMode.SKIP };
    if (tables.length === 0) await caller.dropNamespace(skip);
    else await assert.rejects(caller.dropNamespace(skip), isRefused);
  }
});
