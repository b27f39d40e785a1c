import {
  create,
  type DescField,
  type DescMessage,
  type DescMethod,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import type { Dialect } from "../dialects/dialect.ts";
import { RestForm } from "../gen/lance/namespace/v1/options_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import { passedAnswer } from "../namespace/messages/passed-answer.ts";
import { isRead } from "../namespace/operations/method-facts.ts";
import { isJsonObject } from "../runtime/text.ts";
import { isImplicit, isRequired, type MessageRecord, oneofOf, restForm, restName } from "./descriptors.ts";
import { InexactNumberError, toInvalidInput } from "./field-error.ts";
import type { DecodeJson, JsonDecoders } from "./json/decode.ts";
import { parseJsonExactly } from "./json/parse.ts";

/**
 * Reads the body of an answer.
 *
 * @param contentType declared type of the body.
 * @param mayPass whether a plain text may pass through instead of becoming a message. Default: false.
 * @throws LanceError ServiceUnavailable
 */
export type AnswerReader = (text: string, contentType: string | undefined, mayPass?: boolean) => Message;

const JSON_TYPE = /^application\/(?:[^/;]+\+)?json\b/i;
const TEXT_TYPE = /^text\//i;

/**
 * Compiles the reader of a method's answers.
 *
 * If the body is a single field, the reader also accepts the whole message, which some servers send. An empty body and null are an empty
 * answer, but not to a read whose answer has required fields: a count would be 0 and a list empty if an upstream breaks off.
 *
 * @param field the field that is the body, or undefined if the body is the whole message.
 * @param isPlain whether the text of a whole message can go on as it is.
 */
export function createAnswerReader(
  method: DescMethod,
  field: DescField | undefined,
  decoders: JsonDecoders,
  isPlain: IsPlain,
): AnswerReader {
  const { output } = method;
  const needsBody = isRead(method) && output.fields.some(isRequired);
  const read =
    field === undefined
      ? wholeReader(output, decoders, needsBody)
      : fieldReader(output, field, { decode: decoders.field(field), needsBody });
  const readOrPass =
    (text: string): ReadJson =>
    (json) =>
      isPlain(json) ? passedAnswer(output, text) : read(json);
  const isText = field?.fieldKind === "scalar" && field.message === undefined;
  return (text, contentType, mayPass = false) => {
    if (text === "" && !needsBody) return create(output);
    const plain = isText && contentType !== undefined && TEXT_TYPE.test(contentType);
    return readJson(text, contentType, mayPass && field === undefined ? readOrPass(text) : read, plain);
  };
}

type ReadJson = (json: unknown) => Message;

function wholeReader(output: DescMessage, decoders: JsonDecoders, needsBody: boolean): ReadJson {
  const decode = decoders.message(output);
  return (json) => {
    if (needsBody) refuseNull(json);
    return decode(json ?? {}, 0) as Message;
  };
}

/** Refuses null as the answer to a read that needs one. @throws LanceError InvalidInput */
function refuseNull(json: unknown): void {
  if (json === null) throw new LanceError("InvalidInput", "the body must not be null");
}

function fieldReader(
  output: DescMessage,
  field: DescField,
  { decode, needsBody }: { readonly decode: DecodeJson; readonly needsBody: boolean },
): ReadJson {
  const name = restName(field);
  return (json) => {
    const message = create(output) as Message & MessageRecord;
    const value = isWrapped(json, name, field) ? json[name] : json;
    if (needsBody) refuseNull(value);
    if (value !== null && value !== undefined) message[field.localName] = decode(value, 0);
    return message;
  };
}

/**
 * Whether a body is the whole message instead of one of its fields: a map of texts contains no objects, and a scalar has no members.
 */
export function isWrapped(json: unknown, name: string, field: DescField): json is Record<string, unknown> {
  if (!isJsonObject(json)) return false;
  return field.fieldKind === "map" ? isJsonObject(json[name]) : Object.hasOwn(json, name);
}

function readJson(text: string, contentType: string | undefined, read: ReadJson, plain: boolean): Message {
  const json = parse(text, contentType, plain);
  try {
    try {
      return read(json);
    } catch (thrown) {
      if (!(thrown instanceof InexactNumberError)) throw thrown;
      return read(parseJsonExactly(text));
    }
  } catch (thrown) {
    throw unreadable(thrown);
  }
}

/** Returns the error for JSON that does not fit; failures of another kind stay what they are. */
export function unreadable(thrown: unknown): unknown {
  const error = toInvalidInput(thrown, "field", "the body");
  if (!(error instanceof LanceError)) return error;
  return new LanceError("ServiceUnavailable", `cannot read the upstream's response: ${error.message}`);
}

function parse(text: string, contentType: string | undefined, plain: boolean): unknown {
  try {
    const json: unknown = JSON.parse(text);
    return plain && typeof json !== "string" ? text : json;
  } catch (cause) {
    if (plain) return text;
    throw notJson(contentType, cause);
  }
}

/** Returns the error for a body that is not JSON. */
export function notJson(contentType: string | undefined, cause: unknown): LanceError {
  const said = contentType === undefined || JSON_TYPE.test(contentType) ? "" : ` but ${contentType}`;
  return new LanceError("ServiceUnavailable", `the upstream's response is not JSON${said}`, { cause });
}

/**
 * Whether a parsed answer is what the gateway would write for it, so that its text can go on without becoming a
 * message: known names only, the required ones among them, no empty value that is omitted, no `context`, and texts and
 * booleans in objects, lists and maps. Anything else needs the message: a number has several spellings.
 */
export type IsPlain = (json: unknown) => boolean;

interface Slot {
  readonly required: boolean;
  readonly isPlain: IsPlain;
}

const never: IsPlain = () => false;
const isText: IsPlain = (json) => typeof json === "string" && json.isWellFormed();
const isFlag: IsPlain = (json) => typeof json === "boolean";
const SCALARS: ReadonlyMap<ScalarType, IsPlain> = new Map([
  [ScalarType.STRING, isText],
  [ScalarType.BOOL, isFlag],
]);

/**
 * Compiles the check for a type of message.
 *
 * @param forms types of messages that are written in another form, which are never plain.
 */
export function createPlainCheck(type: DescMessage, forms: Dialect["forms"]): IsPlain {
  return messageCheck(type, forms, new Set());
}

function messageCheck(type: DescMessage, forms: Dialect["forms"], above: ReadonlySet<DescMessage>): IsPlain {
  const isObject = restForm(type) === RestForm.UNSPECIFIED && !type.typeName.startsWith("google.protobuf.");
  if (above.has(type) || forms.has(type.typeName) || !isObject) return never;
  const inside = new Set([...above, type]);
  const slots = new Map<string, Slot>();
  for (const field of type.fields) {
    if (field.name === "context" || oneofOf(field) !== undefined) continue;
    slots.set(restName(field), {
      required: isRequired(field),
      isPlain: fieldCheck(field, (message) => messageCheck(message, forms, inside)),
    });
  }
  const required = [...slots.values()].filter((slot) => slot.required).length;

  return (json) => {
    if (!isJsonObject(json)) return false;
    let missing = required;
    for (const name in json) {
      const slot = slots.get(name);
      if (slot === undefined || !slot.isPlain(json[name])) return false;
      if (slot.required) missing--;
    }
    return missing === 0;
  };
}

function fieldCheck(field: DescField, ofMessage: (type: DescMessage) => IsPlain): IsPlain {
  const isItem =
    field.message !== undefined
      ? ofMessage(field.message)
      : (field.enum === undefined && SCALARS.get(field.scalar as ScalarType)) || never;
  const mayBeEmpty = isRequired(field);
  switch (field.fieldKind) {
    case "list":
      return (json) => Array.isArray(json) && (mayBeEmpty || json.length > 0) && json.every(isItem);
    case "map":
      return field.mapKey === ScalarType.STRING ? mapCheck(isItem, mayBeEmpty) : never;
    default:
      return mayBeEmpty || !isImplicit(field) ? isItem : (json) => isItem(json) && Boolean(json);
  }
}

function mapCheck(isItem: IsPlain, mayBeEmpty: boolean): IsPlain {
  return (json) => {
    if (!isJsonObject(json)) return false;
    let isEmpty = true;
    for (const key in json) {
      isEmpty = false;
      if (!key.isWellFormed() || !isItem(json[key])) return false;
    }
    return mayBeEmpty || !isEmpty;
  };
}
