import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Dialect } from "../../dialects/dialect.ts";
import { RestForm } from "../../gen/lance/namespace/v1/options_pb.ts";
import { ITEMS_PER_STEP, type Steps, stepsOf } from "../../runtime/pace.ts";
import { isJsonObject } from "../../runtime/text/json.ts";
import { type MessageRecord, oneofOf, restForm, restName } from "../descriptors.ts";
import { FieldError, within } from "../field-error.ts";
import { checkDepth, type DecodeJson, type JsonDecoders, setField, setOwn } from "./decode.ts";
import { wellKnownCodec } from "./well-known-types.ts";

/** Reads a JSON value as a {@link DecodeJson} does, in steps for its lists, its maps and the messages in them. */
export type DecodeInSteps = (json: unknown, depth: number) => unknown | Steps<unknown>;

/** Compiles readers in steps, which allow a required field to be missing. */
export interface StepDecoders {
  /** Returns the reader of a message. */
  message(descriptor: DescMessage): DecodeInSteps;
  /** Returns the reader of a field's value. */
  field(field: DescField): DecodeInSteps;
}

/** Creates a compiler of readers in steps from the readers without them. Each type is compiled with the first value, because few are long. */
export function createStepDecoders(decoders: JsonDecoders, forms: Dialect["forms"]): StepDecoders {
  const compiled = new Map<DescMessage, DecodeInSteps>();

  function message(descriptor: DescMessage): DecodeInSteps {
    if (wellKnownCodec(descriptor) !== undefined || restForm(descriptor) !== RestForm.UNSPECIFIED)
      return decoders.message(descriptor);
    return (json, depth) => {
      const decode = compiled.get(descriptor) ?? compile(descriptor);
      compiled.set(descriptor, decode);
      return decode(json, depth);
    };
  }

  function compile(descriptor: DescMessage): DecodeInSteps {
    const read = forms.get(descriptor.typeName)?.read;
    const slots = new Map(
      descriptor.fields.map((member) => [
        restName(member),
        { local: member.localName, oneof: oneofOf(member), decode: field(member) },
      ]),
    );
    return function* (given, depth) {
      const json = read === undefined ? given : read(given);
      if (!isJsonObject(json)) throw new FieldError("must be an object");
      checkDepth(depth);
      const decoded = create(descriptor) as MessageRecord & Message;
      for (const name in json) {
        const slot = slots.get(name);
        if (slot === undefined || json[name] === null) continue;
        try {
          setField(decoded, slot, yield* stepsOf(slot.decode(json[name], depth + 1)));
        } catch (thrown) {
          throw within(name, thrown);
        }
      }
      return decoded;
    };
  }

  function field(descriptor: DescField): DecodeInSteps {
    if (descriptor.fieldKind === "map") return mapInSteps(decoders.field(descriptor));
    const isDeep = descriptor.message !== undefined;
    const item = isDeep ? message(descriptor.message) : decoders.item(descriptor);
    return descriptor.fieldKind === "list" ? listInSteps(item, isDeep) : item;
  }

  return { message, field };
}

/** @param isDeep whether the items are read in steps, too. */
function listInSteps(decode: DecodeInSteps, isDeep: boolean): DecodeInSteps {
  return function* (json, depth) {
    if (!Array.isArray(json)) throw new FieldError("must be an array");
    checkDepth(depth);
    const list: unknown[] = json;
    let index = 0;
    try {
      for (; index < list.length; index++) {
        if (index % ITEMS_PER_STEP === 0) yield;
        const item = decode(list[index], depth + 1);
        list[index] = isDeep ? yield* stepsOf(item) : item;
      }
    } catch (thrown) {
      throw within(index, thrown);
    }
    return list;
  };
}

/** @param decode the reader of a whole map, which reads its entries in pieces. */
function mapInSteps(decode: DecodeJson): DecodeInSteps {
  return function* (json, depth) {
    if (!isJsonObject(json)) return decode(json, depth);
    const map: MessageRecord = {};
    const keys = Object.keys(json);
    for (let at = 0; at < keys.length; at += ITEMS_PER_STEP) {
      yield;
      const piece: MessageRecord = {};
      for (const key of keys.slice(at, at + ITEMS_PER_STEP)) setOwn(piece, key, json[key]);
      for (const [key, value] of Object.entries(decode(piece, depth) as object)) setOwn(map, key, value);
    }
    return map;
  };
}
