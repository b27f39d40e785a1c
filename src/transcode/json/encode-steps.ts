import type { DescField, DescMessage, Message } from "@bufbuild/protobuf";
import type { Dialect, FieldTexts, MessageForm } from "../../dialects/dialect.ts";
import { RestForm } from "../../gen/lance/namespace/v1/options_pb.ts";
import { ITEMS_PER_STEP, isLongMap, type Steps } from "../../runtime/pace.ts";
import { isRequired, type MessageRecord, restForm, restName } from "../descriptors.ts";
import { type EncodeJson, fieldReader, isValueForm, type JsonEncoders } from "./encode.ts";
import { wellKnownCodec } from "./well-known-types.ts";

/** Takes the texts of a long value in their order. */
export interface TextSink {
  add(text: string): void;
}

/** Writes a value as an {@link EncodeJson} does: a short one is returned, and a long one goes to a sink in steps. */
export type EncodeInSteps = (value: unknown, sink: TextSink) => string | Steps<void>;

/** Writer of long messages of a type. */
export interface StepEncoder {
  /** Whether a message may take long: it has a long list or map, or a message that may contain its own type, such as a schema. */
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
    return (value, sink) => {
      const encode = compiled.get(descriptor) ?? compile(descriptor);
      compiled.set(descriptor, encode);
      return encode(value, sink);
    };
  }

  function compile(descriptor: DescMessage): EncodeInSteps {
    const slots = descriptor.fields.map((member) => {
      const always = isRequired(member);
      return {
        name: restName(member),
        key: `${JSON.stringify(restName(member))}:`,
        read: fieldReader(member, always),
        encode: field(member),
        skipsNull: !always && isValueForm(member),
      };
    });
    const write = forms.get(descriptor.typeName)?.write;
    return write === undefined ? objectInSteps(slots) : formInSteps(slots, write);
  }

  function field(descriptor: DescField): EncodeInSteps {
    const item = descriptor.message === undefined ? encoders.item(descriptor) : message(descriptor.message);
    if (descriptor.fieldKind === "map") return mapInSteps(encoders.item(descriptor));
    return descriptor.fieldKind === "list" ? listInSteps(item) : item;
  }

  return (descriptor) => ({ mayBeLong: lengthCheck(descriptor), encode: message(descriptor) });
}

/** A field in the form that the writers of its message need. */
interface Slot {
  readonly name: string;
  readonly key: string;
  /** Returns the field's value, or undefined if it is omitted. */
  readonly read: (message: MessageRecord) => unknown;
  readonly encode: EncodeInSteps;
  /** Whether a value that would be written as null is omitted instead. */
  readonly skipsNull: boolean;
}

function objectInSteps(slots: readonly Slot[]): EncodeInSteps {
  return function* (value, sink) {
    let before = "{";
    for (const { key, read, encode, skipsNull } of slots) {
      const own = read(value as MessageRecord);
      if (own === undefined) continue;
      yield;
      const made = encode(own, sink);
      if (skipsNull && made === "null") continue;
      sink.add(before + key);
      yield* added(made, sink);
      before = ",";
    }
    sink.add(before === "{" ? "{}" : "}");
  };
}

/** Writes the fields one by one and combines them as a dialect requires, which needs their whole texts. */
function formInSteps(slots: readonly Slot[], write: NonNullable<MessageForm["write"]>): EncodeInSteps {
  return function* (value, sink) {
    const fields: Record<string, string> = {};
    for (const { name, read, encode, skipsNull } of slots) {
      const own = read(value as MessageRecord);
      if (own === undefined) continue;
      yield;
      let json = "";
      const text: TextSink = {
        add(more) {
          json += more;
        },
      };
      yield* added(encode(own, text), text);
      if (!skipsNull || json !== "null") fields[name] = json;
    }
    const written: FieldTexts | string = write(fields);
    if (typeof written === "string") {
      sink.add(written);
      return;
    }
    let before = "{";
    for (const [name, json] of Object.entries(written)) {
      sink.add(`${before}${JSON.stringify(name)}:${json}`);
      before = ",";
    }
    sink.add(before === "{" ? "{}" : "}");
  };
}

function listInSteps(encode: EncodeInSteps): EncodeInSteps {
  return function* (list, sink) {
    let before = "[";
    for (const [index, item] of (list as unknown[]).entries()) {
      if (index % ITEMS_PER_STEP === 0) yield;
      sink.add(before);
      const made = encode(item, sink);
      if (typeof made === "string") sink.add(made);
      else yield* made;
      before = ",";
    }
    sink.add(before === "[" ? "[]" : "]");
  };
}

/** @param encode the writer of a single value. */
function mapInSteps(encode: EncodeJson): EncodeInSteps {
  return function* (map, sink) {
    const values = map as Readonly<Record<string, unknown>>;
    let before = "{";
    for (const [index, key] of Object.keys(values).entries()) {
      if (index % ITEMS_PER_STEP === 0) yield;
      sink.add(`${before}${JSON.stringify(key)}:${encode(values[key])}`);
      before = ",";
    }
    sink.add(before === "{" ? "{}" : "}");
  };
}

/** Adds a value that a writer in steps has made to its sink. */
export function* added(made: string | Steps<void>, sink: TextSink): Steps<void> {
  if (typeof made === "string") sink.add(made);
  else yield* made;
}

/** Compiles {@link StepEncoder.mayBeLong}. */
function lengthCheck(descriptor: DescMessage): (message: unknown) => boolean {
  const lists = descriptor.fields.filter(({ fieldKind }) => fieldKind === "list");
  const maps = descriptor.fields.filter(({ fieldKind }) => fieldKind === "map");
  const recursive = descriptor.fields.filter(
    ({ fieldKind, message }) => fieldKind === "message" && message !== undefined && isRecursive(message),
  );
  const lengths = lists.map((member) => fieldReader(member, true));
  const entries = maps.map((member) => fieldReader(member, true));
  const presences = recursive.map((member) => fieldReader(member, false));
  return (message) =>
    lengths.some((read) => (read(message as MessageRecord) as unknown[]).length > ITEMS_PER_STEP) ||
    entries.some((read) => isLongMap(read(message as MessageRecord) as object)) ||
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

/** Length from which a text becomes bytes, which takes less than a millisecond. */
const PIECE_LENGTH = 256 * 1024;

/** JSON of an answer: its text, or the bytes of a long one in pieces, because a text of 50 MB becomes bytes in 75 ms. */
export type JsonPieces = string | readonly Buffer[];

/** Writes a message in steps, and turns its text into bytes wherever there is enough of it. */
export function* piecesOf(encode: EncodeInSteps, message: Message): Steps<JsonPieces> {
  const pieces: Buffer[] = [];
  let text = "";
  const sink: TextSink = {
    add(more) {
      text += more;
      if (text.length < PIECE_LENGTH) return;
      pieces.push(Buffer.from(text));
      text = "";
    },
  };
  yield* added(encode(message, sink), sink);
  if (pieces.length === 0) return text;
  if (text !== "") pieces.push(Buffer.from(text));
  return pieces;
}
