import { create, type DescField, type DescMessage, type Message } from "@bufbuild/protobuf";
import type { Dialect } from "../../dialects/dialect.ts";
import { RestForm } from "../../gen/lance/namespace/v1/options_pb.ts";
import { ITEMS_PER_STEP, type Steps, stepsOf } from "../../runtime/pace.ts";
import { isJsonObject, MAX_JSON_DEPTH } from "../../runtime/text.ts";
import { type MessageRecord, oneofOf, restForm, restName } from "../descriptors.ts";
import { FieldError, within } from "../field-error.ts";
import { checkDepth, type DecodeJson, type JsonDecoders, setField, setOwn } from "./decode.ts";
import { CLOSE, COLON, KINDS, NOTHING, OPEN, STEP_BYTES, TEXT, textEnd } from "./scan.ts";
import { wellKnownCodec } from "./well-known-types.ts";

/** Most bytes that are parsed in a step: a few milliseconds, whatever they contain. */
const PART_BYTES = 64 * 1024;

/** Most names of an object whose members are parsed in parts: V8 lists all names of an object at once, a million in 0.3 s. */
export const MAX_NAMES = 50_000;

const [BRACKET, BRACE] = [0x5b, 0x7b];
const CLOSING: Readonly<Record<number, number>> = { [BRACKET]: 0x5d, [BRACE]: 0x7d };

/** Options of {@link parseInParts}. */
export interface PartsOptions {
  /** Parses a text. Default: `JSON.parse`. */
  readonly parse?: (text: string) => unknown;
  /** Most bytes that are parsed in a step, if they are not a single text. Default: 64 KiB. */
  readonly partBytes?: number;
}

/**
 * Parses JSON as `JSON.parse` does, in steps: the members of long lists and objects in parts, and nothing else by itself. Looking for the
 * places between members takes about as long as parsing them.
 *
 * The steps throw SyntaxError for what is not JSON, and for long lists and objects that are nested too deeply, and FieldError for an object
 * of more than {@link MAX_NAMES} names.
 */
export function parseInParts(
  bytes: Buffer,
  { parse = JSON.parse, partBytes = PART_BYTES }: PartsOptions = {},
): Steps<unknown> {
  const parsed = (from: number, to: number) => parse(bytes.toString("utf8", from, to));

  function* value(from: number, to: number, depth: number): Steps<unknown> {
    const start = pastSpace(bytes, from);
    if (to - start <= partBytes || CLOSING[bytes[start] as number] === undefined) return parsed(from, to);
    if (depth > MAX_JSON_DEPTH) throw new SyntaxError("it is nested too deeply");
    return yield* container(start, to, depth);
  }

  /** Parses a list or an object of many bytes, of which `start` is the first. */
  function* container(start: number, to: number, depth: number): Steps<unknown> {
    const isList = bytes[start] === BRACKET;
    const list: unknown[] = [];
    const object: Record<string, unknown> = {};
    let names = 0;
    /** Where the members begin that are not parsed yet, and the last of them. */
    let [run, member] = [start + 1, start + 1];
    let pauseAt = start + STEP_BYTES;

    function setMember(name: string, item: unknown): void {
      if (++names > MAX_NAMES) throw new FieldError(`has more than ${MAX_NAMES} names`);
      setOwn(object, name, item);
    }
    /** @param mayBeEmpty whether the list or object ends where it began. */
    function addRun(end: number, mayBeEmpty: boolean): void {
      const text = bytes.toString("utf8", run, end);
      if (!mayBeEmpty && text.trim() === "") throw new SyntaxError("a member is missing");
      if (isList) for (const item of parse(`[${text}]`) as unknown[]) list.push(item);
      else for (const [name, item] of Object.entries(parse(`{${text}}`) as object)) setMember(name, item);
    }
    function* addLong(end: number): Steps<void> {
      if (isList) {
        list.push(yield* inside(list.length, member, end));
        return;
      }
      const quote = pastSpace(bytes, member);
      const nameEnd = textEnd(bytes, quote + 1) + 1;
      const colon = pastSpace(bytes, nameEnd);
      if (KINDS[bytes[quote] as number] !== TEXT || KINDS[bytes[colon] as number] !== COLON)
        throw new SyntaxError("a member has no name");
      const name = parsed(quote, nameEnd) as string;
      setMember(name, yield* inside(name, colon + 1, end));
    }
    function* inside(key: string | number, from: number, end: number): Steps<unknown> {
      try {
        return yield* value(from, end, depth + 1);
      } catch (thrown) {
        throw within(key, thrown);
      }
    }

    let level = 0;
    for (let at = start + 1; at < to; at++) {
      if (at >= pauseAt) {
        pauseAt = at + STEP_BYTES;
        yield;
      }
      const kind = KINDS[bytes[at] as number];
      if (kind === NOTHING || kind === COLON) continue;
      if (kind === TEXT) at = textEnd(bytes, at + 1);
      else if (kind === OPEN) level++;
      else if (level > 0) level -= kind === CLOSE ? 1 : 0;
      else {
        const isLast = kind === CLOSE;
        if (at - member > partBytes) {
          if (member > run) addRun(member - 1, false);
          yield* addLong(at);
          run = at + 1;
        } else if (isLast || at - run > partBytes) {
          addRun(at, isLast && run === start + 1);
          run = at + 1;
          yield;
        }
        member = at + 1;
        if (!isLast) continue;
        if (bytes[at] !== CLOSING[bytes[start] as number] || pastSpace(bytes, at + 1) < to)
          throw new SyntaxError("it does not end where it should");
        return isList ? list : object;
      }
    }
    throw new SyntaxError("it has no end");
  }

  return value(0, bytes.length, 0);
}

/** Returns the position of the first byte other than a space. */
function pastSpace(bytes: Uint8Array, from: number): number {
  let at = from;
  while (bytes[at] === 0x20 || bytes[at] === 0x0a || bytes[at] === 0x0d || bytes[at] === 0x09) at++;
  return at;
}

/** Reads a JSON value as a {@link DecodeJson} does, in steps for its lists, its maps and the messages in them. */
type DecodeInSteps = (json: unknown, depth: number) => unknown | Steps<unknown>;

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
