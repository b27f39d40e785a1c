import { LanceError } from "../namespace/errors.ts";
import { LANCE_TYPE_NAMES } from "../namespace/type-names.ts";
import { isJsonObject } from "../runtime/text.ts";
import type { FieldTexts } from "./dialect.ts";

/** Reads fields under other names; the specification's name overrides the client's. */
export function renamed(names: Readonly<Record<string, string>>): (json: unknown) => unknown {
  return (json) => {
    if (!isJsonObject(json)) return json;
    const renamedJson: Record<string, unknown> = {};
    for (const [name, value] of Object.entries(json)) {
      const ours = Object.hasOwn(names, name) ? (names[name] as string) : name;
      if (ours === name || json[ours] === undefined) renamedJson[ours] = value;
    }
    return renamedJson;
  };
}

/** Reason to refuse a field that newer clients send. */
const NEWER = "a field of newer servers, and would be without effect here";

/**
 * Reads fields as they are, and refuses those that newer clients send and that would be without effect.
 *
 * @param names the fields, or the fields with the reason for each: what it is
 * @throws LanceError Unsupported
 */
export function without(
  names: readonly string[] | Readonly<Record<string, string>>,
): (json: unknown) => unknown {
  const reasons = Array.isArray(names) ? names.map((name) => [name, NEWER] as const) : Object.entries(names);
  return (json) => {
    const found = isJsonObject(json) ? reasons.find(([name]) => (json[name] ?? null) !== null) : undefined;
    if (found === undefined) return json;
    const [name, reason] = found;
    throw new LanceError("Unsupported", `${name} is ${reason}`);
  };
}

/** Reads null or a missing field as a value. */
export function absentAs(name: string, value: unknown): (json: unknown) => unknown {
  return (json) => (isJsonObject(json) ? { ...json, [name]: json[name] ?? value } : json);
}

/** Writes the value of a field also under further names. */
export function alsoNamed(names: Readonly<Record<string, string>>): (fields: FieldTexts) => FieldTexts {
  return (fields) => {
    const all: Record<string, string> = { ...fields };
    for (const [name, also] of Object.entries(names)) {
      const text = fields[name];
      if (text !== undefined) all[also] = text;
    }
    return all;
  };
}

/** Writes a field as the whole answer. */
export function bare(name: string): (fields: FieldTexts) => string {
  return (fields) => fields[name] ?? "null";
}

/** Fills in the JSON of omitted fields. */
export function defaulted(texts: FieldTexts): (fields: FieldTexts) => FieldTexts {
  return (fields) => ({ ...texts, ...fields });
}

/** Limits an integer field to the largest value that its readers accept. */
export function atMost(name: string, largest: number): (fields: FieldTexts) => FieldTexts {
  return (fields) => {
    const text = fields[name];
    return text === undefined || Number(text) <= largest ? fields : { ...fields, [name]: String(largest) };
  };
}

/**
 * Reads a map of objects that is the bare value of a field. A wrapped map is an object whose member of that name
 * contains only objects; an object of a bare map that has that name contains a plain value.
 */
export function wrappedUnless(name: string): (json: unknown) => unknown {
  return (json) => {
    if (!isJsonObject(json)) return json;
    const inner = json[name];
    const wrapped =
      name in json
        ? isJsonObject(inner) && Object.values(inner).every(isJsonObject)
        : !Object.values(json).every(isJsonObject);
    return wrapped ? json : { [name]: json };
  };
}

const TO_LANCE: ReadonlyMap<string, string> = new Map([
  ...LANCE_TYPE_NAMES,
  // The specification has no units; its readers assume these.
  ["time32", "time32:ms"],
  ["time64", "time64:us"],
  ["timestamp", "timestamp:us:-"],
  ["duration", "duration:us"],
]);

const DECIMAL = /^decimal(\d+)$/;

/** Writes a type in Lance's own words: `logical_type`, or the name that corresponds to `type`. */
export function writeLanceType({ type = '""', logical_type: logical, ...rest }: FieldTexts): FieldTexts {
  if (logical !== undefined) return { type: logical };
  const name = JSON.parse(type) as string;
  const bits = DECIMAL.exec(name)?.[1];
  if (bits !== undefined) return { type: JSON.stringify(decimalName(bits, Number(rest["length"] ?? 0))) };
  // Lance's readers do not know maps; they see a map as a list of its entries.
  const lance = name === "map" ? "list" : (TO_LANCE.get(name) ?? name);
  return { type: JSON.stringify(lance), ...rest };
}

/** A decimal's length is its precision times 1000 plus its scale, which may be negative. */
function decimalName(bits: string, length: number): string {
  const precision = Math.round(length / 1000);
  return `decimal:${bits}:${precision}:${length - precision * 1000}`;
}

const TO_SPECIFICATION: ReadonlyMap<string, string> = new Map(
  LANCE_TYPE_NAMES.map(([specification, lance]) => [lance, specification]),
);

const LANCE_DECIMAL = /^decimal:(\d+):(\d+):(-?\d+)$/;

/** Names of Lance's with parameters, most of which the specification cannot express. */
const PARAMETERIZED = /^(time32|time64|timestamp|duration|dict):/;

/** Reads a type in Lance's own words as the specification's; the specification's words stay unchanged. */
export function readLanceType(json: unknown): unknown {
  if (!isJsonObject(json) || typeof json["type"] !== "string") return json;
  const { type } = json;
  const known = TO_SPECIFICATION.get(type);
  if (known !== undefined) return { ...json, type: known };
  const [, bits, precision, scale] = LANCE_DECIMAL.exec(type) ?? [];
  if (bits !== undefined) {
    return { ...json, type: `decimal${bits}`, length: Number(precision) * 1000 + Number(scale) };
  }
  const base = PARAMETERIZED.exec(type)?.[1];
  if (base === undefined) return json;
  // The type of its values represents a dictionary.
  const value = type.split(":")[1] ?? "";
  const name = base === "dict" ? (TO_SPECIFICATION.get(value) ?? value) : base;
  return { ...json, type: name, logical_type: json["logical_type"] ?? type };
}

/** Rewrites the types of a schema, which {@link writeLanceType} has written, in the specification's words: JSON as text. */
export function inSpecificationTypes(schema: string): string {
  return JSON.stringify(readAll(JSON.parse(schema)));
}

function readAll(json: unknown): unknown {
  if (Array.isArray(json)) return json.map(readAll);
  if (!isJsonObject(json)) return json;
  return readLanceType(Object.fromEntries(Object.entries(json).map(([key, value]) => [key, readAll(value)])));
}
