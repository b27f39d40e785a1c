import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import { LanceError } from "../namespace/errors.ts";
import { isJsonObject } from "../runtime/text/json.ts";
import { isRequired, type MessageRecord, restName } from "./descriptors.ts";
import { FieldError, InexactNumberError, toInvalidInput, within } from "./field-error.ts";
import type { DecodeJson, JsonDecoders } from "./json/decode.ts";
import { type ParsedJson, parseJson, parseRequestExactly } from "./json/parse.ts";
import { refuseRepeatedNames } from "./json/repeated-names.ts";

/** A request read from its body. */
export interface JsonBody {
  readonly message: Message;
  /** The body's object, if the body is the whole message. */
  readonly json: Record<string, unknown> | undefined;
}

/**
 * Reads the JSON of a body, a text or its value. An empty text and `null` mean `{}`.
 *
 * @param isBound whether a field, by its REST name, has a value from the path or the query.
 * @throws LanceError InvalidInput
 */
export type BodyReader = (
  body: string | ParsedJson | undefined,
  isBound: (name: string) => boolean,
) => JsonBody;

/**
 * Compiles the reader of a request's body.
 *
 * @param field the field that is the body, or undefined if the body is the whole message.
 */
export function createBodyReader(
  input: DescMessage,
  field: DescField | undefined,
  decoders: JsonDecoders,
): BodyReader {
  return field === undefined
    ? wholeReader(decoders.message(input))
    : fieldReader(input, field, decoders.field(field));
}

function wholeReader(decode: DecodeJson): BodyReader {
  return (body, isBound) => {
    const read = (parsed: unknown): JsonBody => {
      const json = parsed ?? {};
      if (!isJsonObject(json)) throw new LanceError("InvalidInput", "request body must be a JSON object");
      return { message: decode(json, 0, isBound) as Message, json };
    };
    return readJson(body, read);
  };
}

function fieldReader(input: DescMessage, field: DescField, decode: DecodeJson): BodyReader {
  const objectLike = field.fieldKind === "map" || field.fieldKind === "message";
  const name = restName(field);
  return (body, isBound) => {
    const read = (parsed: unknown): JsonBody => {
      const message = create(input) as Message & MessageRecord;
      const json = parsed ?? (objectLike ? {} : undefined);
      if (json !== undefined) message[field.localName] = decode(json, 0);
      else if (isRequired(field) && !isBound(name)) throw within(name, new FieldError("is required"));
      return { message, json: undefined };
    };
    return readJson(body, read);
  };
}

function readJson(body: string | ParsedJson | undefined, read: (parsed: unknown) => JsonBody): JsonBody {
  try {
    if (body === undefined || body === "") return read(undefined);
    const isParsed = typeof body !== "string";
    const value = isParsed ? body.value : parseJson(body, "request body");
    refuseRepeatedNames(isParsed ? body.text : body, value, "request body");
    try {
      return read(value);
    } catch (thrown) {
      if (!(thrown instanceof InexactNumberError)) throw thrown;
      return read(isParsed ? parseRequestExactly(body.text, body.values) : parseRequestExactly(body));
    }
  } catch (thrown) {
    throw toInvalidInput(thrown, "field", "request body");
  }
}
