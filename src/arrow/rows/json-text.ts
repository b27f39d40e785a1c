import type { Steps } from "../../runtime/pace.ts";
import type { ItemAt } from "./row-reader.ts";

/** A number as a text has it, with all its digits. */
export class NumberText {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The items of a list in Arrow, which are read one by one: a list may have millions. */
export class ListItems implements Iterable<unknown> {
  readonly length: number;
  readonly #item: ItemAt;
  readonly #start: number;

  constructor(item: ItemAt, start: number, length: number) {
    this.#item = item;
    this.#start = start;
    this.length = length;
  }

  at(index: number): unknown {
    return this.#item(this.#start + index);
  }

  *[Symbol.iterator](): Iterator<unknown> {
    for (let at = 0; at < this.length; at++) yield this.at(at);
  }
}

/** Items of a list from one step to the next. */
const ITEMS_PER_STEP = 512;

/** Length from which a text is written in parts. */
const LONG_TEXT = 256 * 1024;

/**
 * Writes a value as JSON, in steps. Big integers are numbers; what JSON has no number for is a text such as `NaN`.
 *
 * @param write called with parts of the text, none of which is much longer than a value without items or a part of a long text.
 */
export function* jsonSteps(value: unknown, write: (text: string) => void): Steps<void> {
  if (typeof value === "string" && value.length > LONG_TEXT) yield* longTextSteps(value, write);
  else if (value instanceof ListItems || Array.isArray(value)) {
    write("[");
    for (let at = 0; at < value.length; at++) {
      if (at > 0) write(",");
      const item: unknown = value.at(at);
      if (isShort(item)) write(textOfLeaf(item));
      else yield* jsonSteps(item, write);
      if (at % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    }
    write("]");
  } else if (isLeaf(value)) write(textOfLeaf(value));
  else {
    let separator = "{";
    for (const [name, item] of value instanceof Map ? value : Object.entries(value as object)) {
      write(`${separator}${JSON.stringify(name)}:`);
      if (isShort(item)) write(textOfLeaf(item));
      else yield* jsonSteps(item, write);
      separator = ",";
    }
    write(separator === "{" ? "{}" : "}");
  }
}

/** Writes a value as {@link jsonSteps} does, at once. */
export function textOfJson(value: unknown): string {
  let text = "";
  const steps = jsonSteps(value, (part) => {
    text += part;
  });
  while (!steps.next().done);
  return text;
}

/** Writes a long text in parts, each of which ends with a whole character. */
function* longTextSteps(value: string, write: (text: string) => void): Steps<void> {
  write('"');
  for (let at = 0; at < value.length; ) {
    let end = at + LONG_TEXT;
    if (isHighSurrogate(value.charCodeAt(end - 1))) end += 1;
    write(JSON.stringify(value.slice(at, end)).slice(1, -1));
    at = end;
    yield;
  }
  write('"');
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff;

/** Whether a value has no items. */
function isLeaf(value: unknown): boolean {
  return typeof value !== "object" || value === null || value instanceof NumberText;
}

function isShort(value: unknown): boolean {
  return isLeaf(value) && !(typeof value === "string" && value.length > LONG_TEXT);
}

function textOfLeaf(value: unknown): string {
  if (value instanceof NumberText) return value.text;
  switch (typeof value) {
    case "number":
      return textOfNumber(value);
    case "bigint":
      return String(value);
    case "undefined":
      throw new RangeError("a value is missing");
    default:
      return JSON.stringify(value);
  }
}

function textOfNumber(value: number): string {
  if (value === 0) return Object.is(value, -0) ? "-0" : "0";
  return Number.isFinite(value) ? String(value) : `"${value}"`;
}
