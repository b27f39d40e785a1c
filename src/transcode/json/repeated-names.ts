import { LanceError } from "../../namespace/errors.ts";

const COLON = 0x3a;
const BACKSLASH = 0x5c;
/** Largest code of white space in JSON. */
const SPACE = 0x20;

/**
 * Refuses JSON in which an object has a name twice. Readers differ in which of the two counts, so that a proxy could check another value
 * than the gateway executes. It compares the names in the text with those that have been parsed, which takes a small part of the time of
 * parsing.
 *
 * @param text valid JSON
 * @param value what the text has been parsed to
 * @param what name of the text, for the error
 * @throws LanceError InvalidInput
 */
export function refuseRepeatedNames(text: string, value: unknown, what: string): void {
  const first = text.indexOf(":");
  if (first === -1 || text.indexOf(":", first + 1) === -1) return;
  if (hasKeys(value, countNames(text))) return;
  const name = JSON.stringify(repeatedName(text)?.slice(0, 100));
  throw new LanceError("InvalidInput", `${what} repeats the name ${name} in an object`);
}

function countNames(text: string): number {
  let names = 0;
  for (let at = text.indexOf('"'); at !== -1; ) {
    const end = endOfText(text, at);
    const next = afterSpace(text, end);
    if (text.charCodeAt(next) === COLON) names++;
    at = text.indexOf('"', next);
  }
  return names;
}

/**
 * Whether there are as many keys as names. Lists come last, because those of numbers are long and have none. It does without
 * recursion: a short text may be nested deeper than the stack.
 */
function hasKeys(value: unknown, names: number): boolean {
  let missing = names;
  const objects: object[] = [];
  const lists: unknown[][] = [];
  const visit = (item: unknown) => {
    if (Array.isArray(item)) lists.push(item);
    else if (typeof item === "object" && item !== null) objects.push(item);
  };
  visit(value);
  while (missing > 0) {
    const object = objects.pop();
    if (object !== undefined) {
      for (const name in object) {
        missing--;
        visit((object as Record<string, unknown>)[name]);
      }
      continue;
    }
    const list = lists.pop();
    if (list === undefined) return false;
    for (const item of list) visit(item);
  }
  return true;
}

/** Returns the first name that an object has twice. */
function repeatedName(text: string): string | undefined {
  const open: Set<string>[] = [];
  for (let at = 0; at < text.length; at++) {
    const character = text[at];
    if (character === "{") open.push(new Set());
    if (character === "}") open.pop();
    if (character !== '"') continue;
    const end = endOfText(text, at);
    const written = text.slice(at, end);
    at = end - 1;
    if (text.charCodeAt(afterSpace(text, end)) !== COLON) continue;
    const name = JSON.parse(written) as string;
    if (open.at(-1)?.has(name)) return name;
    open.at(-1)?.add(name);
  }
  return undefined;
}

/** Returns the position behind the quote that ends a text, from that of its first quote. */
function endOfText(text: string, start: number): number {
  let end = text.indexOf('"', start + 1);
  while (isEscaped(text, end)) end = text.indexOf('"', end + 1);
  return end + 1;
}

function isEscaped(text: string, at: number): boolean {
  let before = at;
  while (text.charCodeAt(before - 1) === BACKSLASH) before--;
  return (at - before) % 2 === 1;
}

function afterSpace(text: string, from: number): number {
  let at = from;
  while (text.charCodeAt(at) <= SPACE) at++;
  return at;
}
