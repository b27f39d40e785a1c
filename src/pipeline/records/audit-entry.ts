import type { Call, ChangedKey } from "../../namespace/call/call.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isRefused } from "../../namespace/call/reception.ts";
import { errorEntry } from "../../namespace/errors.ts";
import { joinIdentifier } from "../../namespace/identifier.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { actionOf } from "../../namespace/operations/actions.ts";
import { clipped, escapeInvisible } from "../../runtime/text/line-text.ts";
import type { OperationRequest } from "../call/interceptor.ts";
import type { Outcome } from "./call-metrics.ts";
import { otherObjects } from "./other-objects.ts";

/** Moment of a call that a line is about; only downloads have a line for their begin. */
export type Stage = "begin" | "end";

/** Most objects in a line, beside the object of the call, and most groups and objects of a key. */
const MAX_OBJECTS = 1_000;

/**
 * Returns the line of the audit log about a call, as JSON without a line break. It contains names, and nothing that
 * proves an identity.
 *
 * @param ms since the call has arrived
 * @param backend of the call. Default: the sources of a new view are not known.
 */
export function auditEntry(
  call: Call,
  request: OperationRequest,
  stage: Stage,
  outcome: Outcome,
  ms: number,
  backend?: Backend,
): string {
  const { principal } = call;
  const others = otherObjects(call, request, MAX_OBJECTS, backend);
  const named = others.slice(0, MAX_OBJECTS).map((names) => clipped(joinIdentifier(names)));
  const members = [
    `"time":"${timeNow()}","stage":"${stage}"`,
    member("request", call.requestId),
    principal === undefined ? "" : membersOfCaller(principal),
    member("peer", call.peer),
    member("protocol", call.protocol),
    membersOfMethod(call.method),
    member("database", call.database),
    member("object", isUnknown(call) ? undefined : clipped(joinIdentifier(call.id))),
    member("objects", named.length === 0 ? undefined : named),
    member("moreObjects", others.length > MAX_OBJECTS ? others.length - MAX_OBJECTS : undefined),
    membersOfKey(call.changedKey),
    member("allowed", isAllowed(call, outcome)),
    member("outcome", outcome),
    member("code", outcome === "OK" ? undefined : errorEntry(outcome).code),
    member("ms", Math.round(ms * 1000) / 1000),
  ];
  return escapeInvisible(`{${members.join("")}}`);
}

/** Returns the member about a key that the call creates or revokes; nothing if it does neither. */
function membersOfKey(key: ChangedKey | undefined): string {
  if (key === undefined) return "";
  const { id, name, role, groups = [], scope = [], expires } = key;
  const bounded = (texts: readonly string[]) =>
    texts.length === 0 ? undefined : texts.slice(0, MAX_OBJECTS).map(clipped);
  return member("key", { id, name, role, groups: bounded(groups), scope: bounded(scope), expires });
}

/** Whether the gateway let a call through to its backend, or answered it itself. */
export function isAllowed({ admitted }: Call, outcome: Outcome): boolean {
  return admitted === true || outcome === "OK";
}

/** Whether only the message, which was not read, names the object of a call. */
function isUnknown({ reception, id }: Call): boolean {
  return isRefused(reception) && id.length === 0;
}

/** Returns a member of a JSON object with the comma before it; nothing for a value that is undefined. */
function member(name: string, value: unknown): string {
  return value === undefined ? "" : `,"${name}":${JSON.stringify(value)}`;
}

const membersOfCaller = once<Principal>(
  ({ name, by, credentialId }) =>
    member("principal", name) + member("by", by) + member("credential", credentialId),
);

const membersOfMethod = once<Call["method"]>(
  (method) => member("operation", method.name) + member("action", actionOf(method)),
);

/** Returns a function that makes the text of each object once. */
function once<T extends object>(make: (of: T) => string): (of: T) => string {
  const made = new WeakMap<T, string>();
  return (of) => {
    const known = made.get(of);
    if (known !== undefined) return known;
    const text = make(of);
    made.set(of, text);
    return text;
  };
}

let lastTime = { ms: Number.NaN, text: "" };

/** Returns the time as text, which takes longer to make than the rest of a line. */
function timeNow(): string {
  const ms = Date.now();
  if (ms !== lastTime.ms) lastTime = { ms, text: new Date(ms).toISOString() };
  return lastTime.text;
}
