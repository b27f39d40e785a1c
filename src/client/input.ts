import {
  create,
  type DescField,
  type DescMessage,
  type DescOneof,
  fromJson,
  type Message,
} from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { LanceError } from "../namespace/errors.ts";
import { FieldError, toInvalidInput, within } from "../transcode/field-error.ts";
import { createJsonDecoders } from "../transcode/json/decode.ts";

const decoders = createJsonDecoders();

/** Short forms of messages whose meaning needs no field names: a vector as numbers, columns as names. */
const SHORT_FORMS: Readonly<Record<string, (value: unknown) => object | undefined>> = {
  "lance.namespace.v1.QueryVector": (value) => {
    if (!isList(value)) return undefined;
    const rows = [...value];
    return rows.length > 0 && rows.every(isList) ? { multiVector: rows } : { singleVector: rows };
  },
  "lance.namespace.v1.FloatVector": (value) => (isList(value) ? { values: [...value] } : undefined),
  "lance.namespace.v1.QueryColumns": (value) => (isList(value) ? { columnNames: [...value] } : undefined),
  "lance.namespace.v1.FullTextQuery": (value) =>
    typeof value === "string" ? { stringQuery: { query: value } } : undefined,
};

/**
 * Creates the message of a request from the caller's object: 64-bit integers may be numbers, enums may be names, and
 * some messages have a short form.
 *
 * @throws LanceError InvalidInput, naming the field that does not fit or does not exist.
 */
export function toMessage(descriptor: DescMessage, input: object): Message {
  try {
    return messageOf(descriptor, input);
  } catch (thrown) {
    throw toInvalidInput(thrown, "field", "the request");
  }
}

function messageOf(descriptor: DescMessage, input: unknown): Message {
  const object = SHORT_FORMS[descriptor.typeName]?.(input) ?? input;
  if (typeof object !== "object" || object === null || isList(object))
    throw new FieldError("must be an object");
  const init: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(object)) {
    // A message from elsewhere has its type's name among its fields.
    if (value === undefined || value === null || name.startsWith("$")) continue;
    const field = descriptor.field[name];
    const oneof = descriptor.oneofs.find(({ localName }) => localName === name);
    if (oneof === undefined && (field === undefined || field.oneof !== undefined)) {
      const choice = field?.oneof && `; ${field.oneof.localName} is an object of case and value`;
      const message = `${descriptor.name} has no field ${JSON.stringify(name)}${choice ?? ""}`;
      throw new LanceError("InvalidInput", message);
    }
    try {
      init[name] = oneof === undefined ? fieldValue(field as DescField, value) : choiceOf(oneof, value);
    } catch (thrown) {
      throw within(name, thrown);
    }
  }
  return create(descriptor, init);
}

/** Returns the chosen field of several, which is an object of its name as `case` and its value. */
function choiceOf({ fields }: DescOneof, choice: unknown): unknown {
  const { case: name, value, ...others } = choice as { readonly case?: unknown; readonly value?: unknown };
  if (name === undefined) return { case: undefined };
  const field = fields.find(({ localName }) => localName === name);
  if (field === undefined || value === undefined || value === null || Object.keys(others).length > 0) {
    const names = fields.map(({ localName }) => localName).join(", ");
    throw new FieldError(`must be an object of case and value, whose case is one of ${names}`);
  }
  try {
    return { case: name, value: fieldValue(field, value) };
  } catch (thrown) {
    throw within(field.localName, thrown);
  }
}

function fieldValue(field: DescField, value: unknown): unknown {
  switch (field.fieldKind) {
    case "list":
      if (!isList(value)) throw new FieldError("must be an array");
      return Array.from(value, (item, index) => inside(index, () => itemOf(field, item)));
    case "map": {
      if (typeof value !== "object") throw new FieldError("must be an object");
      const entries = Object.entries(value as object).filter(([, item]) => item !== undefined);
      return Object.fromEntries(entries.map(([key, item]) => [key, inside(key, () => itemOf(field, item))]));
    }
    default:
      return itemOf(field, value);
  }
}

function itemOf(field: DescField, value: unknown): unknown {
  const { message } = field;
  if (message !== undefined) {
    if (message.typeName === ValueSchema.typeName) return fromJson(ValueSchema, value as never);
    return message.typeName.startsWith("google.protobuf.") ? value : messageOf(message, value);
  }
  if (field.enum !== undefined && typeof value === "number") return value;
  if (value instanceof Uint8Array) return value;
  return decoders.item(field)(value, 0);
}

function inside<T>(key: string | number, run: () => T): T {
  try {
    return run();
  } catch (thrown) {
    throw within(key, thrown);
  }
}

function isList(value: unknown): value is readonly unknown[] {
  return Array.isArray(value) || (ArrayBuffer.isView(value) && !(value instanceof DataView));
}
