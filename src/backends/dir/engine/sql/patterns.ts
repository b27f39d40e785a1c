/*
 * A pattern may take the engine a step for each of its parts at each character of a text, so that its cost is the number of these parts after
 * its repetitions are written out. The engine would compile a pattern from a column for each row, into up to 10 MiB.
 */

/** Number of plain characters that take the time of a set of characters: they rarely match part of a text at several places at once. */
const CHARACTERS_PER_STEP = 4;

/** Parts of a pattern: plain characters, and sets of characters such as `.`, `[a-z]` and `\w`. */
interface Parts {
  characters: number;
  sets: number;
}

/** A group that is open, and its last part, which a repetition repeats. */
interface Group extends Parts {
  last: Parts;
}

const NONE: Readonly<Parts> = { characters: 0, sets: 0 };
const CHARACTER: Readonly<Parts> = { characters: 1, sets: 0 };
const SET: Readonly<Parts> = { characters: 0, sets: 1 };

const ESCAPE = /\\(?:[pPxuU]\{[^}]*\}|.)/suy;
const OPENING = /\((?:\?(?:P?<\w*>|[a-zA-Z-]*:?))?/y;
const REPETITION = /\{[^}]*\}/y;

/** Returns the number of steps that a pattern of LIKE may take at a character. */
export function stepsOfLike(pattern: string): number {
  // The engine compares these without a pattern.
  if (/^%?[^%_\\]*%?$/.test(pattern)) return 1 / 8;
  const sets = pattern.match(/[%_]/g)?.length ?? 0;
  return 1 + sets + (pattern.length - sets) / CHARACTERS_PER_STEP;
}

/** Whether a regular expression has the flag that ignores spaces and comments, in which brackets do not count. */
export function ignoresSpace(pattern: string): boolean {
  return /\(\?[a-zA-Z-]*x/.test(pattern);
}

/**
 * Returns the number of steps that a regular expression in the syntax of the engine may take at a character. The engine itself refuses one that
 * is wrong.
 */
export function stepsOfRegexp(pattern: string): number {
  const top = openGroup();
  const groups = [top];
  for (let at = 0; at < pattern.length; ) {
    const group = groups.at(-1) as Group;
    const [end, part] = partAt(pattern, at);
    const character = pattern.charAt(at);
    if (character === "(") groups.push(openGroup());
    else if (character === ")" && groups.length > 1) close(groups.pop() as Group, groups.at(-1) as Group);
    else if (character === "{") repeat(group, timesOf(pattern.slice(at, end)));
    else if ("*+?".includes(character)) repeat(group, 1);
    else endPart(group, part);
    at = end;
  }
  while (groups.length > 1) close(groups.pop() as Group, groups.at(-1) as Group);
  endPart(top, NONE);
  return top.sets + top.characters / CHARACTERS_PER_STEP;
}

/** Returns the part at a position, and its end. */
function partAt(pattern: string, at: number): [end: number, part: Readonly<Parts>] {
  switch (pattern.charAt(at)) {
    case "\\":
      return [endOf(ESCAPE, pattern, at), SET];
    case "[":
      return [endOfSet(pattern, at), SET];
    case "(":
      return [endOf(OPENING, pattern, at), NONE];
    case "{":
      return [endOf(REPETITION, pattern, at), NONE];
    case ".":
      return [at + 1, SET];
    default:
      return [at + 1, CHARACTER];
  }
}

function endOf(part: RegExp, pattern: string, at: number): number {
  part.lastIndex = at;
  return part.test(pattern) ? part.lastIndex : at + 1;
}

/** Returns the end of a set in brackets, which may have sets within it; a closing bracket in the first place is one of its characters. */
function endOfSet(pattern: string, start: number): number {
  let [at, depth] = [start, 0];
  do {
    const character = pattern.charAt(at);
    if (character === "[") {
      depth++;
      if (pattern.charAt(at + 1) === "^") at++;
      if (pattern.charAt(at + 1) === "]") at++;
    } else if (character === "]") {
      depth--;
    } else if (character === "\\") {
      at++;
    }
    at++;
  } while (depth > 0 && at < pattern.length);
  return at;
}

/** Returns how often a repetition with bounds repeats at most, or at least if it has no end. */
function timesOf(repetition: string): number {
  return Math.max(1, ...(repetition.match(/\d+/g) ?? []).map(Number));
}

function openGroup(): Group {
  return { ...NONE, last: NONE };
}

function endPart(group: Group, next: Readonly<Parts>): void {
  group.characters += group.last.characters;
  group.sets += group.last.sets;
  group.last = next;
}

/** A repeated part may match at several places at once, so that its characters count like sets. */
function repeat(group: Group, times: number): void {
  const { characters, sets } = group.last;
  group.last = { characters: 0, sets: times * Math.max(1, characters + sets) };
}

function close(group: Group, outer: Group): void {
  endPart(group, NONE);
  endPart(outer, { characters: group.characters, sets: group.sets });
}
