import type { DescField, DescMessage } from "@bufbuild/protobuf";
import type { Dialect, FieldTexts } from "../dialects/dialect.ts";
import { RestForm } from "../gen/lance/namespace/v1/options_pb.ts";
import { ITEMS_PER_STEP, type Steps, stepsOf } from "../namespace/pace.ts";
import { isRequired, type MessageRecord, restForm, restName } from "./descriptors.ts";
import { type EncodeJson, fieldReader, isValueForm, type JsonEncoders } from "./json-encode.ts";
import { wellKnownCodec } from "./json-wkt.ts";

/** Writes a value as an {@link EncodeJson} does, in steps for its lists and the messages in them. */
export type EncodeInSteps = (value: unknown) => string | Steps<string>;

/** Writer of long messages of a type. */
export interface StepEncoder {
  /** Whether a message may take long: it has a long list, or a message that may contain its own type, such as a schema. */
  mayBeLong(message: unknown): boolean;
  encode: EncodeInSteps;
}

/** Creates a compiler of writers in steps from the writers without them; each type is compiled with its first long message. */
export function createStepEncoders(
  encoders: JsonEncoders,
  forms: Dialect["forms"],
): (descriptor: DescMessage) => StepEncoder {
  const compiled = new Map<DescMessage, EncodeInSteps>();

  function message(descriptor: DescMessage): EncodeInSteps {
    if (wellKnownCodec(descriptor) !== undefined || restForm(descriptor) !== RestForm.UNSPECIFIED)
      return encoders.message(descriptor);
    return (value) => {
      const encode = compiled.get(descriptor) ?? compile(descriptor);
      compiled.set(descriptor, encode);
      return encode(value);
    };
  }

  function compile(descriptor: DescMessage): EncodeInSteps {
    const slots = descriptor.fields.map((member) => {
      const always = isRequired(member);
      return {
        name: restName(member),
        read: fieldReader(member, always),
        encode: field(member),
        skipsNull: !always && isValueForm(member),
      };
    });
    const write = forms.get(descriptor.typeName)?.write;
    return function* (value) {
      const fields: Record<string, string> = {};
      for (const { name, read, encode, skipsNull } of slots) {
        const own = read(value as MessageRecord);
        if (own === undefined) continue;
        const json = yield* stepsOf(encode(own));
        if (!skipsNull || json !== "null") fields[name] = json;
      }
      const written: FieldTexts | string = write === undefined ? fields : write(fields);
      return typeof written === "string" ? written : joined(written);
    };
  }

  function field(descriptor: DescField): EncodeInSteps {
    if (descriptor.fieldKind === "map") return encoders.value(descriptor);
    const item = descriptor.message === undefined ? encoders.item(descriptor) : message(descriptor.message);
    return descriptor.fieldKind === "list" ? listInSteps(item) : item;
  }

  return (descriptor) => ({ mayBeLong: lengthCheck(descriptor), encode: message(descriptor) });
}

function joined(fields: FieldTexts): string {
  let text = "";
  for (const [name, json] of Object.entries(fields))
    text += `${text === "" ? "" : ","}${JSON.stringify(name)}:${json}`;
  return `{${text}}`;
}

function listInSteps(encode: EncodeInSteps): EncodeInSteps {
  return function* (list) {
    const parts: string[] = [];
    let texts: string[] = [];
    for (const [index, item] of (list as unknown[]).entries()) {
      if (index % ITEMS_PER_STEP === 0) yield;
      const text = encode(item);
      texts.push(typeof text === "string" ? text : yield* text);
      if (texts.length < ITEMS_PER_STEP) continue;
      parts.push(texts.join(","));
      texts = [];
    }
    if (texts.length > 0) parts.push(texts.join(","));
    return `[${parts.join(",")}]`;
  };
}

/** Compiles {@link StepEncoder.mayBeLong}. */
function lengthCheck(descriptor: DescMessage): (message: unknown) => boolean {
  const lists = descriptor.fields.filter(({ fieldKind }) => fieldKind === "list");
  const recursive = descriptor.fields.filter(
    ({ fieldKind, message }) => fieldKind === "message" && message !== undefined && isRecursive(message),
  );
  const lengths = lists.map((member) => fieldReader(member, true));
  const presences = recursive.map((member) => fieldReader(member, false));
  return (message) =>
    lengths.some((read) => (read(message as MessageRecord) as unknown[]).length > ITEMS_PER_STEP) ||
    presences.some((read) => read(message as MessageRecord) !== undefined);
}

/** Whether a type contains a type that contains itself. */
function isRecursive(descriptor: DescMessage, above: readonly DescMessage[] = []): boolean {
  if (wellKnownCodec(descriptor) !== undefined) return false;
  if (above.includes(descriptor)) return true;
  return descriptor.fields.some(
    ({ message }) => message !== undefined && isRecursive(message, [...above, descriptor]),
  );
}
