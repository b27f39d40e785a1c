import { createHash } from "node:crypto";
import { type Message, toBinary } from "@bufbuild/protobuf";
import type { Call } from "../namespace/call.ts";

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
  const head = JSON.stringify([method.name, database ?? null, id]);
  return createHash("sha256").update(head).update(toBinary(method.input, copy)).digest("hex");
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
