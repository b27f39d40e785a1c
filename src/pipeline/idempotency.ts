import { createHash } from "node:crypto";
import {
  type DescField,
  type DescMessage,
  fromBinary,
  isMessage,
  type Message,
  toBinary,
} from "@bufbuild/protobuf";
import type { Call } from "../namespace/call/call.ts";
import { isReadAction } from "../namespace/call/principal.ts";
import { type ErrorName, LanceError, toLanceError } from "../namespace/errors.ts";
import {
  type EarlierCall,
  type IdempotencyRecords,
  isEarlier,
  type KeptOutcome,
  type TakenKey,
} from "../namespace/lance-namespace.ts";
import { type Databases, databaseOf } from "./call/databases.ts";
import {
  type Interceptor,
  type Next,
  type OperationRequest,
  type OperationResponse,
  onlyFor,
} from "./call/interceptor.ts";

/** Header, and metadata in gRPC, by which a client names a call that it may repeat. */
export const IDEMPOTENCY_KEY = "idempotency-key";

/** Header of an answer that was kept from an earlier call. */
const REPLAYED = "idempotency-replayed";

const KEY = /^[\x20-\x7e]{1,255}$/;

/** Largest answer that is kept, in bytes. */
const MAX_ANSWER_BYTES = 64 * 1024;

/** Failures of calls that changed nothing, and that may end otherwise the next time. */
const RELEASING: ReadonlySet<ErrorName> = new Set(["Throttling", "ConcurrentModification"]);

/** Failures after which nobody knows whether something was changed. */
const UNCLEAR: ReadonlySet<ErrorName> = new Set([
  "OutcomeUnknown",
  "ServiceUnavailable",
  "Internal",
  "DeadlineExceeded",
  "Cancelled",
  "DataLoss",
]);

/**
 * Answers a mutation whose key was used before with the kept answer, and never executes it again. Backends without records do not see
 * these keys here; they may pass them on.
 *
 * A call with a key goes on when its client leaves, so that the client's next try finds an outcome.
 */
export function keepAnswers(databases: Databases): Interceptor {
  const keep: Interceptor = (call, request, next) => {
    const text = call.headers[IDEMPOTENCY_KEY];
    if (text === undefined) return next(call, request);
    const records = databaseOf(databases, call).backend.idempotency;
    return records === undefined ? next(call, request) : once(call, request, next, text, records);
  };
  return onlyFor(({ action }) => !isReadAction(action), keep);
}

async function once(
  call: Call,
  request: OperationRequest,
  next: Next,
  text: string,
  records: IdempotencyRecords,
): Promise<OperationResponse> {
  if (!KEY.test(text)) {
    throw new LanceError("InvalidInput", `${IDEMPOTENCY_KEY} must be 1 to 255 visible ASCII characters`);
  }
  const hash = hashRequest(call, request.message);
  const taken = await records.take(hashKey(call, text), hash);
  return isEarlier(taken) ? replay(call, request, hash, taken) : run(call, request, next, taken);
}

async function run(
  call: Call,
  request: OperationRequest,
  next: Next,
  taken: TakenKey,
): Promise<OperationResponse> {
  const body = request.kind === "upload" ? hashBody(request.data) : undefined;
  const passed = body === undefined ? request : ({ ...request, data: body.data } as OperationRequest);
  // The body still ends when the client leaves.
  call.signal = new AbortController().signal;
  call.deadline = undefined;
  const note = (work: Promise<void>) =>
    work.catch((error: unknown) => {
      // The record says that the call runs; once it has ended, later calls learn that its outcome is not known.
      call.log.warn(
        { err: error, requestId: call.requestId },
        "the outcome of an idempotency key is not kept",
      );
    });
  try {
    const response = await next(call, passed);
    await note(taken.keep({ answer: kept(call, response as Message) }, body?.hash()));
    return response;
  } catch (thrown) {
    await note(concludeFailure(taken, thrown, body));
    throw thrown;
  }
}

function concludeFailure(taken: TakenKey, thrown: unknown, body: ReadBody | undefined): Promise<void> {
  const { kind, message } = toLanceError(thrown);
  // A write needs its whole body.
  if (RELEASING.has(kind) || body?.isBroken()) return taken.release();
  return UNCLEAR.has(kind) ? taken.lose() : taken.keep({ error: { kind, message } }, body?.hash());
}

/** Returns an answer in the form that is kept: without credentials of the storage, and undefined if it is too large. */
function kept({ method }: Call, response: Message): Uint8Array | undefined {
  const copy = Object.assign(Object.create(Object.getPrototypeOf(response)), response);
  if ("storageOptions" in copy) copy.storageOptions = {};
  const bytes = toBinary(method.output, copy);
  return bytes.byteLength <= MAX_ANSWER_BYTES ? bytes : undefined;
}

async function replay(
  call: Call,
  request: OperationRequest,
  hash: string,
  earlier: EarlierCall,
): Promise<OperationResponse> {
  if (earlier.request !== hash) throw reused();
  if (earlier.state === "running") {
    const headers = { "retry-after": "1" };
    throw new LanceError(
      "ConcurrentModification",
      "a request with this idempotency key is already in progress",
      { headers },
    );
  }
  if (earlier.state === "ended") {
    const message =
      "a call with this idempotency key ended without a known outcome: look what has changed before you repeat it with another key";
    throw new LanceError("ConcurrentModification", message);
  }
  if (request.kind === "upload" && earlier.body !== undefined) {
    const body = hashBody(request.data);
    for await (const chunk of body.data) call.releaseBody(chunk.byteLength);
    if (body.hash() !== earlier.body) throw reused();
  }
  call.responseHeaders[REPLAYED] = "true";
  return answerOf(call, earlier.outcome as KeptOutcome);
}

function answerOf({ method }: Call, outcome: KeptOutcome): OperationResponse {
  if ("error" in outcome) throw new LanceError(outcome.error.kind, outcome.error.message);
  if (outcome.answer !== undefined) return fromBinary(method.output, outcome.answer) as never;
  throw new LanceError(
    "ConcurrentModification",
    "the call with this idempotency key has succeeded; its answer was too large to keep",
  );
}

function reused(): LanceError {
  return new LanceError("IdempotencyKeyReused", "the idempotency key belongs to another request");
}

/** Returns the hash of a key and its caller: the same text of another caller is another key. */
function hashKey({ principal }: Call, text: string): string {
  const caller = principal === undefined ? [] : [principal.by, principal.name];
  return sha256(JSON.stringify([...caller, text]));
}

/** Fields of requests that may differ between tries: credentials, entries such as trace ids, and spellings of the object. */
const OPEN_FIELDS = ["identity", "context", "identifier", "delimiter", "id"];

/** Returns the hash of a request: its operation, its database and object, and its parameters on any protocol. */
function hashRequest({ method, database, id }: Call, message: Message): string {
  const copy = Object.assign(Object.create(Object.getPrototypeOf(message)), message);
  for (const field of OPEN_FIELDS) {
    if (field in message) copy[field] = field === "id" ? [...id] : field === "identifier" ? "" : undefined;
  }
  if ("context" in message) copy.context = {};
  sortMaps(method.input, copy);
  const head = JSON.stringify([method.name, database ?? null, id]);
  return createHash("sha256").update(head).update(toBinary(method.input, copy)).digest("hex");
}

/** Puts the entries of the maps in a message in order: clients may send them in another with each try. */
function sortMaps(type: DescMessage, message: Message): void {
  const values = message as Message & Record<string, unknown>;
  for (const field of fieldsWithMaps(type)) {
    const { localName, oneof } = field;
    if (field.fieldKind === "map")
      values[localName] = Object.fromEntries(Object.entries(values[localName] as object).sort(byName));
    const chosen = oneof && (values[oneof.localName] as { readonly case?: string; readonly value?: unknown });
    const value = oneof === undefined ? values[localName] : chosen?.case === localName && chosen.value;
    if (field.message === undefined || !value) continue;
    const inner = field.fieldKind === "map" ? Object.values(value) : [value].flat();
    for (const each of inner) if (isMessage(each, field.message)) sortMaps(field.message, each);
  }
}

const byName = ([a]: readonly [string, unknown], [b]: readonly [string, unknown]) => (a < b ? -1 : 1);

const withMaps = new Map<DescMessage, readonly DescField[]>();

/** Returns the fields of a message that are maps, or whose messages may have some. */
function fieldsWithMaps(type: DescMessage): readonly DescField[] {
  const known = withMaps.get(type);
  if (known !== undefined) return known;
  const found = type.fields.filter((field) => field.fieldKind === "map" || hasMaps(field.message, new Set()));
  withMaps.set(type, found);
  return found;
}

function hasMaps(type: DescMessage | undefined, seen: Set<DescMessage>): boolean {
  if (type === undefined || seen.has(type)) return false;
  seen.add(type);
  return type.fields.some((field) => field.fieldKind === "map" || hasMaps(field.message, seen));
}

/** A body that is hashed while it is read. */
interface ReadBody {
  readonly data: AsyncIterable<Uint8Array>;
  /** Returns the hash of the body; undefined until it has been read to its end. */
  hash(): string | undefined;
  /** Whether the body broke off. */
  isBroken(): boolean;
}

/** Hashes a body on its way. */
function hashBody(data: AsyncIterable<Uint8Array>): ReadBody {
  const hash = createHash("sha256");
  let digest: string | undefined;
  let isBroken = false;
  async function* read(): AsyncIterable<Uint8Array> {
    try {
      for await (const chunk of data) {
        hash.update(chunk);
        yield chunk;
      }
    } catch (thrown) {
      isBroken = true;
      throw thrown;
    }
    digest = hash.digest("hex");
  }
  return { data: read(), hash: () => digest, isBroken: () => isBroken };
}

function sha256(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
