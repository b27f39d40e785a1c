import assert from "node:assert/strict";
import { onTestFinished } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import { type Answer, startUpstream, type Upstream } from "./fixture.ts";
import type { RestBackendOptions } from "./options.ts";

export const {
  describeTable,
  tableExists,
  countTableRows,
  getTableStats,
  listAllTables,
  queryTable,
  insertIntoTable,
  dropTable,
} = LanceNamespaceService.method;

/** Starts an upstream and a backend before it. The end of the test closes both. */
export async function upstreamOf(answer: Answer, options?: Partial<RestBackendOptions>): Promise<Upstream> {
  const upstream = await startUpstream(answer, options);
  onTestFinished(() => upstream.close());
  return upstream;
}

export const failing = (name: ErrorName, text?: RegExp) => (error: unknown) => {
  assert.ok(error instanceof LanceError, String(error));
  assert.equal(error.entry.name, name, error.message);
  if (text !== undefined) assert.match(error.message, text);
  return true;
};
