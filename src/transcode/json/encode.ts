import { create, type DescField, type DescMessage, type ScalarType } from "@bufbuild/protobuf";
import type { Dialect, FieldTexts, MessageForm } from "../../dialects/dialect.ts";
import { RestForm } from "../../gen/lance/namespace/v1/options_pb.ts";
import {
  checkRestNames,
  isImplicit,
  isRequired,
  type MessageRecord,
  oneofOf,
  restForm,
  restName,
  tupleFields,
  valueField,
} from "../descriptors.ts";
import { enumEncoder, floatEncoder, isFloat, scalarEncoder } from "./scalars.ts";
import { wellKnownCodec } from "./well-known-types.ts";

/** Writes a value as JSON text. */
export type EncodeJson = (value: unknown) => string;

/** Compiles writers of JSON; each message type is compiled once. */
export interface JsonEncoders {
  /** Returns the writer of a message. */
  message(descriptor: DescMessage): EncodeJson;
  /**
   * Returns the writer of a request that is an object, without the given fields (local names). It omits a required
   * message that is not set, which the server then refuses.
   */
  object(descriptor: DescMessage, excluded: ReadonlySet<string>): EncodeJson;
  /** Returns the writer of a field, which takes the field's message; it writes an unset value as null. */
  field(field: DescField): EncodeJson;
  /** Returns the writer of the value of a field. */
  value(field: DescField): EncodeJson;
  /**
   * Returns the writer of an item of a repeated field or of a value of a map; for another field, that of its value.
   */
  item(field: DescField): EncodeJson;
}

/**
 * Creates a compiler of writers. The compiler throws Error for a descriptor without a form in JSON.
 *
 * @param forms how a dialect writes messages that are objects, by the names of their types.
 */
export function createJsonEncoders(forms?: Dialect["forms"]): JsonEncoders {
  const compiled = new Map<DescMessage, EncodeJson>();

  function message(descriptor: DescMessage): EncodeJson {
    const known = compiled.get(descriptor);
    if (known !== undefined) return known;
    // A message type may contain itself: references to it go through this meanwhile.
    let encode: EncodeJson | undefined;
    compiled.set(descriptor, (value) => (encode as EncodeJson)(value));
    encode = compile(descriptor);
    compiled.set(descriptor, encode);
    return encode;
  }

  function compile(descriptor: DescMessage): EncodeJson {
    const wellKnown = wellKnownCodec(descriptor);
    if (wellKnown !== undefined) return wellKnown.encode;
    switch (restForm(descriptor)) {
      case RestForm.VALUE:
        return field(valueField(descriptor));
      case RestForm.TUPLE: {
        const fields = tupleFields(descriptor).map(field);
        return (value) => `[${fields.map((encode) => encode(value)).join(",")}]`;
      }
      default:
        return withFields(descriptor, descriptor.fields, isRequired);
    }
  }

  function object(descriptor: DescMessage, excluded: ReadonlySet<string>): EncodeJson {
    const fields = descriptor.fields.filter(({ localName }) => !excluded.has(localName));
    return withFields(descriptor, fields, (member) => isRequired(member) && member.fieldKind !== "message");
  }

  function withFields(
    descriptor: DescMessage,
    fields: readonly DescField[],
    isAlwaysWritten: (field: DescField) => boolean,
  ): EncodeJson {
    checkRestNames(descriptor);
    const slots = fields.map((member) => slotOf(member, isAlwaysWritten(member)));
    const write = forms?.get(descriptor.typeName)?.write;
    return write === undefined ? compileObject(slots) : compileForm(fields, slots, write);
  }

  function field(descriptor: DescField): EncodeJson {
    const slot = slotOf(descriptor, true);
    return (owner) => {
      const value = slot.read(owner as MessageRecord);
      return value === undefined ? "null" : slot.encode(value);
    };
  }

  function slotOf(descriptor: DescField, always: boolean): Slot {
    const key = `${JSON.stringify(restName(descriptor))}:`;
    return {
      key,
      nextKey: `,${key}`,
      read: fieldReader(descriptor, always),
      encode: value(descriptor),
      skipsNull: !always && isValueForm(descriptor),
    };
  }

  function value(descriptor: DescField): EncodeJson {
    const encode = item(descriptor);
    const takesLists = encode === JSON.stringify || isFloat(descriptor.scalar);
    if (descriptor.fieldKind === "list") return takesLists ? encode : listEncoder(encode);
    if (descriptor.fieldKind === "map") return encode === JSON.stringify ? encode : mapEncoder(encode);
    return encode;
  }

  function item(descriptor: DescField): EncodeJson {
    if (descriptor.enum !== undefined) return enumEncoder(descriptor.enum);
    if (descriptor.message !== undefined) return message(descriptor.message);
    if (isFloat(descriptor.scalar)) return floatEncoder(restName(descriptor));
    return scalarEncoder(descriptor.scalar as ScalarType);
  }

  return { message, object, field, value, item };
}

/** A field in the form that the writer of its message needs. */
interface Slot {
  readonly key: string;
  readonly nextKey: string;
  /** Returns the field's value, or undefined if it is omitted. */
  readonly read: (message: MessageRecord) => unknown;
  readonly encode: EncodeJson;
  /** Whether a value that would be written as null is omitted instead. */
  readonly skipsNull: boolean;
}

function compileObject(slots: readonly Slot[]): EncodeJson {
  return (message) => {
    let text = "";
    for (const slot of slots) {
      const value = slot.read(message as MessageRecord);
      if (value === undefined) continue;
      const json = slot.encode(value);
      if (slot.skipsNull && json === "null") continue;
      text += (text === "" ? slot.key : slot.nextKey) + json;
    }
    return `{${text}}`;
  };
}

/** Writes the fields one by one and combines them as a dialect requires. */
function compileForm(
  described: readonly DescField[],
  slots: readonly Slot[],
  write: NonNullable<MessageForm["write"]>,
): EncodeJson {
  const names = described.map(restName);
  return (message) => {
    const fields: Record<string, string> = {};
    for (const [index, slot] of slots.entries()) {
      const value = slot.read(message as MessageRecord);
      if (value === undefined) continue;
      const json = slot.encode(value);
      if (!slot.skipsNull || json !== "null") fields[names[index] as string] = json;
    }
    const written: FieldTexts | string = write(fields);
    if (typeof written === "string") return written;
    const members = Object.entries(written).map(([name, json]) => `${JSON.stringify(name)}:${json}`);
    return `{${members.join(",")}}`;
  };
}

/** Whether a field is a message in the form of its only value. */
export function isValueForm(field: DescField): boolean {
  return field.fieldKind === "message" && restForm(field.message) === RestForm.VALUE;
}

/** Returns how a field's value is read from its message; `always` is for a field that is always written. */
export function fieldReader(field: DescField, always: boolean): (message: MessageRecord) => unknown {
  const local = field.localName;
  const oneof = oneofOf(field);
  if (oneof !== undefined) {
    return (message) => {
      const chosen = message[oneof] as { case: string | undefined; value?: unknown };
      return chosen.case === local ? chosen.value : undefined;
    };
  }
  switch (field.fieldKind) {
    case "list":
      if (always) break;
      return (message) => ((message[local] as unknown[]).length > 0 ? message[local] : undefined);
    case "map":
      if (always) break;
      return (message) => {
        for (const _key in message[local] as object) return message[local];
        return undefined;
      };
    case "message":
      if (!always || wellKnownCodec(field.message) !== undefined) break;
      return (message) => message[local] ?? create(field.message);
    default:
      if (always || !isImplicit(field)) break;
      return (message) => (isZero(message[local]) ? undefined : message[local]);
  }
  return (message) => message[local];
}

function isZero(value: unknown): boolean {
  return !value || (value instanceof Uint8Array && value.length === 0);
}

function listEncoder(encode: EncodeJson): EncodeJson {
  return (list) => {
    let text = "";
    for (const item of list as unknown[]) text += text === "" ? encode(item) : `,${encode(item)}`;
    return `[${text}]`;
  };
}

function mapEncoder(encode: EncodeJson): EncodeJson {
  return (map) => {
    let text = "";
    for (const [key, value] of Object.entries(map as object)) {
      text += `${text === "" ? "" : ","}${JSON.stringify(key)}:${encode(value)}`;
    }
    return `{${text}}`;
  };
}
