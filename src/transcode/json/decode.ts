import { create, type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import type { Dialect } from "../../dialects/dialect.ts";
import { RestForm } from "../../gen/lance/namespace/v1/options_pb.ts";
import { isJsonObject, MAX_JSON_DEPTH } from "../../runtime/text.ts";
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
import { FieldError, within } from "../field-error.ts";
import { enumDecoder, scalarDecoder, scalarFromText } from "./scalars.ts";
import { wellKnownCodec } from "./well-known-types.ts";

/**
 * Reads a JSON value at a depth of nesting. It throws FieldError.
 *
 * `isBound` returns whether a field, by its REST name, has a value from elsewhere, so that a required field may be
 * missing; it applies to the outermost message only.
 */
export type DecodeJson = (json: unknown, depth: number, isBound?: (name: string) => boolean) => unknown;

/** Compiles readers of JSON; each message type is compiled once. */
export interface JsonDecoders {
  /** Returns the reader of a message. */
  message(descriptor: DescMessage): DecodeJson;
  /** Returns the reader of a field's value. */
  field(field: DescField): DecodeJson;
  /**
   * Returns the reader of an item of a repeated field or of a value of a map; for another field, that of its value.
   */
  item(field: DescField): DecodeJson;
}

/**
 * Creates a compiler of readers. The compiler throws Error for a descriptor without a form in JSON.
 *
 * @param forms how a dialect writes messages that are objects, by the names of their types.
 * @param lenient whether required fields may be missing, and values of enums unknown, which count as unspecified.
 */
export function createJsonDecoders(forms?: Dialect["forms"], lenient = false): JsonDecoders {
  const compiled = new Map<DescMessage, DecodeJson>();

  function message(descriptor: DescMessage): DecodeJson {
    const known = compiled.get(descriptor);
    if (known !== undefined) return known;
    // A message type may contain itself: references to it go through this meanwhile.
    let decode: DecodeJson | undefined;
    compiled.set(descriptor, (json, depth) => (decode as DecodeJson)(json, depth));
    decode = compile(descriptor);
    compiled.set(descriptor, decode);
    return decode;
  }

  function compile(descriptor: DescMessage): DecodeJson {
    const wellKnown = wellKnownCodec(descriptor);
    if (wellKnown !== undefined) return wellKnown.decode;
    switch (restForm(descriptor)) {
      case RestForm.VALUE:
        return compileValue(descriptor, field(valueField(descriptor)));
      case RestForm.TUPLE:
        return compileTuple(descriptor, tupleFields(descriptor).map(slotOf));
      default:
        checkRestNames(descriptor);
        return inForm(descriptor, compileObject(descriptor, descriptor.fields.map(slotOf)));
    }
  }

  function inForm(descriptor: DescMessage, decode: DecodeJson): DecodeJson {
    const read = forms?.get(descriptor.typeName)?.read;
    return read === undefined ? decode : (json, depth, isBound) => decode(read(json), depth, isBound);
  }

  function slotOf(descriptor: DescField): Slot {
    return {
      name: restName(descriptor),
      local: descriptor.localName,
      oneof: oneofOf(descriptor),
      required: !lenient && isRequired(descriptor),
      decode: field(descriptor),
      implicit: isImplicit(descriptor),
    };
  }

  function field(descriptor: DescField): DecodeJson {
    switch (descriptor.fieldKind) {
      case "message":
        return message(descriptor.message);
      case "list":
        return listDecoder(item(descriptor));
      case "map":
        return mapDecoder(item(descriptor), descriptor.mapKey);
      default:
        return item(descriptor);
    }
  }

  function item(descriptor: DescField): DecodeJson {
    if (descriptor.enum !== undefined) return enumDecoder(descriptor.enum, lenient);
    if (descriptor.message !== undefined) return message(descriptor.message);
    const longAsString = "longAsString" in descriptor && descriptor.longAsString;
    return scalarDecoder(descriptor.scalar as ScalarType, longAsString);
  }

  return { message, field, item };
}

/** A field in the form that the reader of its message needs. */
interface Slot {
  readonly name: string;
  readonly local: string;
  readonly oneof: string | undefined;
  readonly required: boolean;
  readonly implicit: boolean;
  readonly decode: DecodeJson;
}

function compileObject(descriptor: DescMessage, slots: readonly Slot[]): DecodeJson {
  const byName = new Map(slots.map((slot) => [slot.name, slot]));
  const required = slots.filter((slot) => slot.required);
  return (json, depth, isBound) => {
    if (!isJsonObject(json)) throw new FieldError("must be an object");
    checkDepth(depth);
    const message = create(descriptor) as MessageRecord & Message;
    let missing = required.length;
    for (const name in json) {
      const slot = byName.get(name);
      const value = json[name];
      if (slot === undefined || value === null) continue;
      if (slot.required) missing--;
      try {
        setField(message, slot, slot.decode(value, depth + 1));
      } catch (thrown) {
        throw within(name, thrown);
      }
    }
    if (missing > 0) {
      for (const { name } of required) {
        if (hasValue(json, name) || isBound?.(name)) continue;
        throw within(name, new FieldError("is required"));
      }
    }
    return message;
  };
}

function compileValue(descriptor: DescMessage, decode: DecodeJson): DecodeJson {
  const local = valueField(descriptor).localName;
  return (json, depth) => {
    const message = create(descriptor) as MessageRecord & Message;
    if (json !== null) message[local] = decode(json, depth);
    return message;
  };
}

function compileTuple(descriptor: DescMessage, slots: readonly Slot[]): DecodeJson {
  const problem = `must be an array of ${slots.length} values`;
  return (json, depth) => {
    if (!Array.isArray(json) || json.length !== slots.length) throw new FieldError(problem);
    checkDepth(depth);
    const message = create(descriptor) as MessageRecord & Message;
    for (const [index, slot] of slots.entries()) {
      if (json[index] === null && !slot.required && !slot.implicit) continue;
      try {
        message[slot.local] = slot.decode(json[index], depth + 1);
      } catch (thrown) {
        throw within(index, thrown);
      }
    }
    return message;
  };
}

/** Sets a field, of a oneof only once. @throws FieldError */
export function setField(message: MessageRecord, slot: Pick<Slot, "local" | "oneof">, value: unknown): void {
  if (slot.oneof === undefined) {
    message[slot.local] = value;
    return;
  }
  if ((message[slot.oneof] as { case: string | undefined }).case !== undefined) {
    throw new FieldError("must not be given beside another field of its kind");
  }
  message[slot.oneof] = { case: slot.local, value };
}

function listDecoder(decode: DecodeJson): DecodeJson {
  return (json, depth) => {
    if (!Array.isArray(json)) throw new FieldError("must be an array");
    checkDepth(depth);
    // Nobody else reads the parsed list: a second one of half a million numbers costs the collector more than decoding.
    const list: unknown[] = json;
    let index = 0;
    try {
      for (; index < list.length; index++) list[index] = decode(list[index], depth + 1);
    } catch (thrown) {
      throw within(index, thrown);
    }
    return list;
  };
}

function mapDecoder(decode: DecodeJson, keyType: ScalarType): DecodeJson {
  const keyDecoder = scalarDecoder(keyType);
  return (json, depth) => {
    if (!isJsonObject(json)) throw new FieldError("must be an object");
    checkDepth(depth);
    const map: MessageRecord = {};
    for (const key in json) {
      try {
        if (keyType !== ScalarType.STRING) keyDecoder(scalarFromText(keyType, key));
        else keyDecoder(key);
        setOwn(map, key, decode(json[key], depth + 1));
      } catch (thrown) {
        throw within(key, thrown);
      }
    }
    return map;
  };
}

/** Sets a key that somebody else chose: assigning `__proto__` would change the prototype. */
export function setOwn(map: MessageRecord, key: string, value: unknown): void {
  if (key !== "__proto__") map[key] = value;
  else Object.defineProperty(map, key, { value, enumerable: true, configurable: true, writable: true });
}

/** @throws FieldError */
export function checkDepth(depth: number): void {
  if (depth >= MAX_JSON_DEPTH) throw new FieldError("is nested too deeply");
}

/** Whether an object of JSON has an own value other than null under a name. */
export function hasValue(json: Record<string, unknown>, name: string): boolean {
  return Object.hasOwn(json, name) && json[name] !== null;
}
