import { createHash } from "node:crypto";
import { type DescField, type DescMessage, isMessage, type Message, toBinary } from "@bufbuild/protobuf";
import type { Call } from "../namespace/call/call.ts";

/** Returns the hash of a key and its caller: the same text of another caller is another key. */
export function hashKey({ principal }: Call, text: string): string {
  const caller = principal === undefined ? [] : [principal.by, principal.name];
  return sha256(JSON.stringify([...caller, text]));
}

/** Fields of requests that may differ between tries: credentials, entries such as trace ids, and spellings of the object. */
const OPEN_FIELDS = ["identity", "context", "identifier", "delimiter", "id"];

/** Returns the hash of a request: its operation, its database and object, and its parameters on any protocol. */
export function hashRequest({ method, database, id }: Call, message: Message): string {
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
export interface ReadBody {
  readonly data: AsyncIterable<Uint8Array>;
  /** Returns the hash of the body; undefined until it has been read to its end. */
  hash(): string | undefined;
  /** Whether the body broke off. */
  isBroken(): boolean;
}

/** Hashes a body on its way. */
export function hashBody(data: AsyncIterable<Uint8Array>): ReadBody {
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
