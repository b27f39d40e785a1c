import { type DescMessage, isMessage, type Message } from "@bufbuild/protobuf";
import {
  type CreateMaterializedViewRequest,
  CreateMaterializedViewRequestSchema,
} from "../../gen/lance/namespace/v1/view_pb.ts";
import type { Call, ChangedKey } from "../../namespace/call/call.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isRefused } from "../../namespace/call/reception.ts";
import { errorEntry } from "../../namespace/errors.ts";
import { agreedIdentifier, type Identifier, joinIdentifier } from "../../namespace/identifier.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { actionOf } from "../../namespace/operations/method-facts.ts";
import { clipped, escapeInvisible } from "../../runtime/text.ts";
import type { OperationRequest } from "../call/interceptor.ts";
import { compileWalk, type Fields, type Walk } from "../call/scope.ts";
import type { Outcome } from "./observe.ts";

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

/** Fields that begin the identifier of an object, and the field beside them with its last name. */
const PLACES: Readonly<Record<string, string | undefined>> = {
  id: undefined,
  new_namespace_id: "newTableName",
};
const NAMES: ReadonlySet<string> = new Set(Object.keys(PLACES));

/** Fields beside an identifier by which a request names the directory of a table, or the table itself. */
const LOCATIONS = ["location", "sourceLocation"] as const;

/** The parts of a URI that may be a credential: the user before its host, and its query. */
const CREDENTIALS = /(?<=^[a-z][a-z0-9+.-]*:\/\/)[^/?]*@|\?.*$/gis;

const walks = new Map<DescMessage, Walk | undefined>();

/**
 * Returns the objects that a request names in addition to the object of the call, as far as they can be read. A location is a single
 * name, as the request writes it.
 *
 * @param most number of objects that are read; each further one is only counted, because a commit may have 100,000 with mistakes.
 * @param backend tells which tables a new view reads. Default: nothing tells.
 */
function otherObjects(
  { method, id }: Call,
  request: OperationRequest,
  most: number,
  backend?: Pick<Backend, "sourcesOf">,
): readonly Identifier[] {
  const message: Message = request.message;
  if (!walks.has(method.input)) walks.set(method.input, compileWalk(method.input, NAMES));
  const found: Identifier[] = [];
  walks.get(method.input)?.(message, (names, field, holder) => {
    const isOfCall = field === "id" && holder === message;
    if (!isOfCall)
      found.push(found.length < most ? identifierOf(names, field, holder, message as Fields, id) : names);
    if (field === "id") found.push(...locationsIn(holder));
    return names as string[];
  });
  return isMessage(message, CreateMaterializedViewRequestSchema)
    ? [...found, ...sourcesOf(message, backend)]
    : found;
}

function identifierOf(
  names: Identifier,
  field: string,
  holder: Fields,
  message: Fields,
  ofCall: Identifier,
): Identifier {
  const lastField = PLACES[field];
  if (lastField === undefined) return namedBy(names, holder, message);
  const namespace = names.length === 0 ? ofCall.slice(0, -1) : names;
  return [...namespace, String(holder[lastField])];
}

/** Operations of a commit may name their object by a single text, with a delimiter that the caller chooses. */
function namedBy(names: Identifier, holder: Fields, message: Fields): Identifier {
  const { identifier, delimiter = message["delimiter"] } = holder as {
    identifier?: string;
    delimiter?: string;
  };
  try {
    return agreedIdentifier(names, identifier, delimiter as string | undefined);
  } catch {
    // The call is refused for it.
    return names.length === 0 ? [String(identifier)] : names;
  }
}

function locationsIn(holder: Fields): Identifier[] {
  return LOCATIONS.flatMap((field) => {
    const value = holder[field];
    return typeof value === "string" && value !== "" ? [[value.replaceAll(CREDENTIALS, "")]] : [];
  });
}

function sourcesOf(
  view: CreateMaterializedViewRequest,
  backend: Pick<Backend, "sourcesOf"> | undefined,
): readonly Identifier[] {
  try {
    return backend?.sourcesOf?.(view) ?? [];
  } catch {
    // The backend refuses the view.
    return [];
  }
}
