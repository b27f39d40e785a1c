import { type DescMessage, fromJson, type JsonValue, type Message, toJson } from "@bufbuild/protobuf";
import { MAX_JSON_DEPTH } from "../../runtime/text.ts";
import { FieldError } from "../field-error.ts";

/** Reads and writes a well-known type; protobuf-es knows their JSON. */
export interface WellKnownCodec {
  decode(json: unknown, depth: number): unknown;
  encode(value: unknown): string;
}

const PROBLEMS: Readonly<Record<string, string>> = {
  "google.protobuf.Value": "must be a JSON value",
  "google.protobuf.Struct": "must be an object",
  "google.protobuf.ListValue": "must be an array",
  "google.protobuf.Timestamp": "must be a time as in RFC 3339",
  "google.protobuf.Duration": 'must be a duration in seconds, such as "1.5s"',
};

/**
 * Returns the codec of a well-known type; undefined for any other message.
 *
 * @throws Error for a well-known type without a form in the REST API.
 */
export function wellKnownCodec(message: DescMessage): WellKnownCodec | undefined {
  if (!message.typeName.startsWith("google.protobuf.")) return undefined;
  const problem = PROBLEMS[message.typeName];
  if (problem === undefined) throw new Error(`${message.typeName} has no form in the REST API`);

  function decode(json: unknown, depth: number): unknown {
    const plain = checkPlain(json, depth);
    try {
      return fromJson(message, plain);
    } catch {
      throw new FieldError(problem as string);
    }
  }
  const encode = (value: unknown) => JSON.stringify(toJson(message, value as Message));

  switch (message.typeName) {
    case "google.protobuf.Struct":
      // In a field, protobuf-es holds a Struct as the plain object itself.
      return {
        decode(json, depth) {
          if (typeof json !== "object" || json === null || Array.isArray(json)) throw new FieldError(problem);
          return checkPlain(json, depth);
        },
        encode: (value) => JSON.stringify(value),
      };
    case "google.protobuf.Value":
      return {
        decode,
        encode: (value) => (isUnsetValue(value) ? "null" : encode(value)),
      };
    default:
      return { decode, encode };
  }
}

function isUnsetValue(value: unknown): boolean {
  return (value as { kind: { case: string | undefined } }).kind.case === undefined;
}

/**
 * Checks the depth and the numbers of a JSON value, and converts integers that were re-read from their digits to
 * numbers, in place.
 */
function checkPlain(json: unknown, depth: number): JsonValue {
  if (typeof json === "bigint") return Number(json);
  if (typeof json === "number" && !Number.isFinite(json))
    throw new FieldError("must have only finite numbers");
  if (typeof json === "string" && !json.isWellFormed()) throw new FieldError("must be well-formed Unicode");
  if (typeof json === "object" && json !== null) {
    if (depth >= MAX_JSON_DEPTH) throw new FieldError("is nested too deeply");
    const container = json as Record<string, unknown>;
    for (const key of Object.keys(container)) {
      const item = container[key];
      const plain = checkPlain(item, depth + 1);
      if (plain !== item) container[key] = plain;
    }
  }
  return json as JsonValue;
}
