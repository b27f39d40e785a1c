import assert from "node:assert/strict";
import { inspect } from "node:util";
import { type ErrorName, errorEntry } from "../../src/namespace/errors.ts";
import { CallError } from "./client.ts";

/** Runs a call that must fail with one of the given rows of the error table, and returns its error. */
export async function refused(
  names: ErrorName | readonly ErrorName[],
  call: Promise<unknown>,
): Promise<CallError> {
  const wanted = [names].flat().map((name) => errorEntry(name).code);
  const error = await call.then(
    (answer) =>
      assert.fail(`expected ${[names].flat().join(" or ")}, got ${inspect(answer, { maxArrayLength: 10 })}`),
    (thrown: unknown) => thrown,
  );
  if (!(error instanceof CallError)) throw error;
  assert.ok(
    wanted.includes(error.failure.code as number),
    `expected ${[names].flat().join(" or ")} (${wanted}), got: ${error.message}`,
  );
  return error;
}
