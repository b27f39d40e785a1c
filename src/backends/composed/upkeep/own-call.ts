import { randomUUID } from "node:crypto";
import type { Logger } from "pino";
import { type Call, createCall } from "../../../namespace/call/call.ts";
import type { Identifier } from "../../../namespace/identifier.ts";
import { METHODS } from "../../../namespace/operations/operations.ts";

const NO_SIGNAL = new AbortController().signal;

/**
 * Creates a call that no client has sent: the upstream sees the gateway's own credentials, if it has any.
 *
 * @param signal ends it. Default: it has no end
 */
export function callOfUpkeep(
  method: keyof typeof METHODS,
  id: Identifier,
  log: Logger,
  signal: AbortSignal = NO_SIGNAL,
): Call {
  const call = createCall({
    method: METHODS[method],
    protocol: "rest",
    requestId: randomUUID(),
    headers: Object.create(null),
    signal,
    deadline: undefined,
    accept: undefined,
    log,
  });
  call.id = id;
  return call;
}
