import { type DescEnum, ScalarType } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { rest_value } from "../../gen/lance/namespace/v1/options_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { optionOf } from "../../namespace/option.ts";
import { FieldError, InexactNumberError } from "../field-error.ts";

const INTEGER = /^-?[0-9]+$/;
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
/** More digits than any 64-bit integer has. */
const MAX_INTEGER_LENGTH = 32;
const MAX_FLOAT = 3.4028234663852886e38;

/** Reads a JSON value; a bigint is an integer that was re-read from its digits. */
type DecodeScalar = (json: unknown) => unknown;

/** Writes a value as JSON text. */
type EncodeScalar = (value: unknown) => string;

/**
 * Returns the reader of a scalar type.
 *
 * 64-bit integers become bigint, unless `longAsString`. It throws InexactNumberError for an integer that lost digits,
 * and FieldError for anything else that does not fit.
 */
export function scalarDecoder(type: ScalarType, longAsString = false): DecodeScalar {
  switch (type) {
    case ScalarType.STRING:
      return decodeString;
    case ScalarType.BOOL:
      return decodeBool;
    case ScalarType.BYTES:
      return decodeBytes;
    case ScalarType.DOUBLE:
      return floatDecoder(Number.MAX_VALUE);
    case ScalarType.FLOAT:
      return floatDecoder(MAX_FLOAT);
    case ScalarType.INT32:
    case ScalarType.SINT32:
    case ScalarType.SFIXED32:
      return int32Decoder(-(2 ** 31), 2 ** 31 - 1);
    case ScalarType.UINT32:
    case ScalarType.FIXED32:
      return int32Decoder(0, 2 ** 32 - 1);
    case ScalarType.INT64:
    case ScalarType.SINT64:
    case ScalarType.SFIXED64:
      return int64Decoder(-(2n ** 63n), 2n ** 63n - 1n, longAsString);
    case ScalarType.UINT64:
    case ScalarType.FIXED64:
      return int64Decoder(0n, 2n ** 64n - 1n, longAsString);
  }
}

/** Whether the values of a scalar type may be numbers that JSON has no form for. */
export function isFloat(type: ScalarType | undefined): boolean {
  return type === ScalarType.DOUBLE || type === ScalarType.FLOAT;
}

/**
 * Returns the writer of a field of floats, for a number as well as for a list. A null in place of a number would be a field that is not
 * set, so that a search lost its bound.
 *
 * @throws LanceError InvalidInput for NaN and the infinities
 */
export function floatEncoder(name: string): EncodeScalar {
  return (value) => {
    const text = JSON.stringify(value);
    if (!text.includes("null")) return text;
    throw new LanceError("InvalidInput", `${name} must be a finite number, because JSON has no other`);
  };
}

/** Returns the writer of a scalar type other than floats. */
export function scalarEncoder(type: ScalarType): EncodeScalar {
  switch (type) {
    case ScalarType.STRING:
      return JSON.stringify;
    case ScalarType.BYTES:
      return (value) => `"${base64Encode(value as Uint8Array)}"`;
    default:
      return String;
  }
}

/**
 * Converts the text of a query parameter or a path to the JSON value that the scalar's reader takes.
 *
 * @throws FieldError
 */
export function scalarFromText(type: ScalarType, text: string): unknown {
  switch (type) {
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return text;
    case ScalarType.BOOL:
      return text === "true" ? true : text === "false" ? false : text;
    case ScalarType.DOUBLE:
    case ScalarType.FLOAT:
      return NUMBER.test(text) ? Number(text) : text;
    default:
      if (text.length > MAX_INTEGER_LENGTH || !INTEGER.test(text)) throw new FieldError("must be an integer");
      return BigInt(text);
  }
}

function decodeString(json: unknown): string {
  if (typeof json !== "string") throw new FieldError("must be a string");
  if (!json.isWellFormed()) throw new FieldError("must be well-formed Unicode");
  return json;
}

function decodeBool(json: unknown): boolean {
  if (typeof json !== "boolean") throw new FieldError("must be true or false");
  return json;
}

function decodeBytes(json: unknown): Uint8Array {
  if (typeof json !== "string") throw new FieldError("must be a string in base64");
  try {
    return base64Decode(json);
  } catch {
    throw new FieldError("must be a string in base64");
  }
}

function floatDecoder(max: number): DecodeScalar {
  return (json) => {
    const value = typeof json === "bigint" ? Number(json) : json;
    if (typeof value !== "number") throw new FieldError("must be a number");
    if (!(Math.abs(value) <= max)) throw new FieldError(`must be a number of at most ${max}`);
    return value;
  };
}

function int32Decoder(min: number, max: number): DecodeScalar {
  const problem = `must be an integer from ${min} to ${max}`;
  return (json) => {
    const value = typeof json === "bigint" ? Number(json) : json;
    if (typeof value !== "number" || !Number.isInteger(value)) throw new FieldError("must be an integer");
    if (value < min || value > max) throw new FieldError(problem);
    // Turns minus zero into zero.
    return value + 0;
  };
}

function int64Decoder(min: bigint, max: bigint, asString: boolean): DecodeScalar {
  const problem = `must be an integer from ${min} to ${max}`;
  return (json) => {
    let value: bigint;
    if (typeof json === "bigint") {
      value = json;
    } else {
      if (typeof json !== "number" || Number.isNaN(json)) throw new FieldError("must be an integer");
      if (!Number.isSafeInteger(json)) {
        if (Math.abs(json) > Number.MAX_SAFE_INTEGER) throw new InexactNumberError(problem);
        throw new FieldError("must be an integer");
      }
      value = BigInt(json);
    }
    if (value < min || value > max) throw new FieldError(problem);
    return asString ? value.toString() : value;
  };
}

/** Returns the spelling that the REST API writes: its own, or the value's name in PascalCase without the prefix. */
export function restSpelling(descriptor: DescEnum, value: DescEnum["values"][number]): string {
  return optionOf(value, rest_value) || toPascalCase(withoutPrefix(descriptor, value.name));
}

/**
 * Returns the reader of an enum. It accepts all spellings in use, ignoring case, `_`, `-` and surrounding quotes,
 * because clients differ in all of these. It throws FieldError with the known spellings.
 *
 * @param lenient whether an unknown text is read as the value with the number 0.
 */
export function enumDecoder(descriptor: DescEnum, lenient = false): DecodeScalar {
  const numbers = new Map<string, number>();
  const spellings: string[] = [];
  for (const value of descriptor.values) {
    const spelling = restSpelling(descriptor, value);
    for (const name of [spelling, value.name, withoutPrefix(descriptor, value.name)]) {
      const known = numbers.get(normalize(name));
      if (known !== undefined && known !== value.number) {
        throw new Error(`${descriptor.typeName}: "${name}" stands for two values`);
      }
      numbers.set(normalize(name), value.number);
    }
    if (value.number !== 0 || !value.name.endsWith("_UNSPECIFIED")) spellings.push(spelling);
  }
  const problem = `must be one of ${spellings.join(", ")}`;
  return (json) => {
    const number =
      typeof json === "string" ? (numbers.get(normalize(json)) ?? (lenient ? 0 : undefined)) : undefined;
    if (number === undefined) throw new FieldError(problem);
    return number;
  };
}

/** Returns the writer of an enum. It writes a number without a name, which a newer peer may have sent, unchanged. */
export function enumEncoder(descriptor: DescEnum): EncodeScalar {
  const texts = new Map(
    descriptor.values.map((value) => [value.number, JSON.stringify(restSpelling(descriptor, value))]),
  );
  return (value) => texts.get(value as number) ?? String(value);
}

function withoutPrefix(descriptor: DescEnum, name: string): string {
  const prefix = descriptor.sharedPrefix ?? "";
  return name.toLowerCase().startsWith(prefix.toLowerCase()) ? name.slice(prefix.length) : name;
}

function toPascalCase(name: string): string {
  return name
    .split("_")
    .map((word) => word.charAt(0).toUpperCase() + word.slice(1).toLowerCase())
    .join("");
}

function normalize(spelling: string): string {
  return spelling.replaceAll(/[_\-"']/g, "").toLowerCase();
}
