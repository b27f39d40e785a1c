import { LANCE_TYPE_NAMES } from "../namespace/type-names.ts";
import { isJsonObject } from "../runtime/json.ts";
import type { FieldTexts } from "./dialect.ts";

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
