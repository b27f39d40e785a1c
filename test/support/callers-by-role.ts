import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { isReadAction } from "../../src/namespace/call/principal.ts";
import { errorEntry } from "../../src/namespace/errors.ts";
import { OPERATIONS } from "../../src/namespace/operations/operations.ts";
import type { AnyOperation } from "../../src/namespace/operations/touch.ts";
import { personStream } from "./arrow.ts";
import { CallError, type Failure, type LanceClient } from "./client.ts";

type Call = (request?: { context?: object }, body?: unknown) => Promise<unknown>;
type Calls = Readonly<Record<string, Call | undefined>>;

/** Returns a client whose changes each have an idempotency key of their own. */
export function withIdempotencyKeys(client: LanceClient): LanceClient {
  return changing(client, (call) => (request = {}, ...rest) => {
    const context = { ...request.context, "header.idempotency-key": randomUUID() };
    return call({ ...request, context }, ...rest);
  });
}

/**
 * Returns a client that reads as the reader, and makes each change as the owner after it was refused to the reader. A request that
 * nobody can make fails alike for both.
 */
export function withRefusedChanges(reader: LanceClient, owner: LanceClient): LanceClient {
  return changing(reader, (refused, operation) => async (request, body) => {
    // A refused call leaves its body unread.
    const failure = await failureOf(refused(request, body && personStream([])));
    const granted = (owner as unknown as Record<string, Call>)[operation] as Call;
    if (failure?.code === errorEntry("PermissionDenied").code) {
      const { httpStatus = 403, grpcCode = 7 } = failure;
      assert.deepEqual({ httpStatus, grpcCode }, { httpStatus: 403, grpcCode: 7 }, operation);
      return granted(request, body);
    }
    assert.equal(failure?.code, errorEntry("InvalidInput").code, `${operation} is refused to a reader`);
    const answer = granted(request, body);
    assert.deepEqual(await failureOf(answer), failure, operation);
    return answer;
  });
}

/** Returns a client with other functions in place of its changes. */
function changing(client: LanceClient, change: (call: Call, operation: string) => Call): LanceClient {
  const calls = Object.entries(client as unknown as Calls).map(([operation, call]) => [
    operation,
    call !== undefined && !isReadAction(OPERATIONS[operation as AnyOperation].action)
      ? change(call, operation)
      : call,
  ]);
  return Object.fromEntries(calls) as LanceClient;
}

/** Returns the failure of a call; undefined for a call that succeeds. */
export async function failureOf(call: Promise<unknown>): Promise<Failure | undefined> {
  return call.then(
    () => undefined,
    (error: unknown) => {
      if (error instanceof CallError) return error.failure;
      throw error;
    },
  );
}
