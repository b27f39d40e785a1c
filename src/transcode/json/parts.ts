import type { Steps } from "../../runtime/pace.ts";
import { MAX_JSON_DEPTH } from "../../runtime/text/json.ts";
import { FieldError, within } from "../field-error.ts";
import { setOwn } from "./decode.ts";
import { CLOSE, COLON, KINDS, NOTHING, OPEN, STEP_BYTES, TEXT, textEnd } from "./scan.ts";

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
