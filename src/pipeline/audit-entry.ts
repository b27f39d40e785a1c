import { actionOf } from "../namespace/actions.ts";
import type { Call } from "../namespace/call.ts";
import { errorEntry } from "../namespace/errors.ts";
import { joinIdentifier } from "../namespace/identifier.ts";
import { clipped, escapeInvisible } from "../namespace/line-text.ts";
import type { OperationRequest } from "./interceptor.ts";
import type { Outcome } from "./measure.ts";
import { otherObjects } from "./other-objects.ts";

/** Moment of a call that a line is about; only downloads have a line for their begin. */
export type Stage = "begin" | "end";

/** Most objects in a line, beside the object of the call. */
const MAX_OBJECTS = 1_000;

/**
 * Returns the line of the audit log about a call, as JSON without a line break. It contains names, and nothing that
 * proves an identity.
 *
 * @param ms since the call has arrived
 */
export function auditEntry(
  call: Call,
  request: OperationRequest,
  stage: Stage,
  outcome: Outcome,
  ms: number,
): string {
  const { principal, method } = call;
  const others = otherObjects(call, request.message).map((names) => clipped(joinIdentifier(names)));
  return escapeInvisible(
    JSON.stringify({
      time: new Date().toISOString(),
      stage,
      request: call.requestId,
      principal: principal?.name,
      by: principal?.by,
      credential: principal?.credentialId,
      peer: call.peer,
      protocol: call.protocol,
      operation: method.name,
      action: actionOf(method),
      database: call.database,
      object: clipped(joinIdentifier(call.id)),
      objects: others.length === 0 ? undefined : others.slice(0, MAX_OBJECTS),
      moreObjects: others.length > MAX_OBJECTS ? others.length - MAX_OBJECTS : undefined,
      allowed: call.admitted === true || outcome === "OK",
      outcome,
      code: outcome === "OK" ? undefined : errorEntry(outcome).code,
      ms: Math.round(ms * 1000) / 1000,
    }),
  );
}
