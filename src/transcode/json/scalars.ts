import { ScalarType } from "@bufbuild/protobuf";
import { base64Decode, base64Encode } from "@bufbuild/protobuf/wire";
import { LanceError } from "../../namespace/errors.ts";
import { FieldError, InexactNumberError } from "../field-error.ts";

const INTEGER = /^-?[0-9]+$/;
const NUMBER = /^-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?$/;
/** More digits than any 64-bit integer has. */
const MAX_INTEGER_LENGTH = 32;
const MAX_FLOAT = 3.4028234663852886e38;

/** Reads a JSON value; a bigint is an integer that was re-read from its digits. */
export type DecodeScalar = (json: unknown) => unknown;

/** Writes a value as JSON text. */
export type EncodeScalar = (value: unknown) => string;

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
