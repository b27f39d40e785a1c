import type { ArrowField, ArrowType, TimeUnit } from "../../../../../arrow/schema.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../../runtime/pace.ts";
import { comparisonsIn, type Span } from "../../sql/comparisons.ts";
import { invalidSql, type SqlToken, tokenSteps } from "../../sql/tokens.ts";

/*
 * The engine converts the constants that AND and OR compare with a column to its type, and elsewhere, for example in NOT, the column to
 * the type of the constants. So `ratio = 0.1` and `NOT (ratio = 0.1)` both find a 32-bit 0.1. It converts the terms of a sum before it
 * adds them, so that `small < 100 + 100` compares a column of 8 bits with -56. And it cuts times to the unit of the column, so that
 * `seconds < TIMESTAMP '… 00:00:00.5'` does not find second 0.
 */

/** Returns the text for an operand in place of its own; undefined to keep it. It may throw LanceError InvalidInput. */
type Edit = (tokens: readonly SqlToken[], operand: Span) => string | undefined;

interface Kind {
  /** Whether a text may have operands to look at. */
  readonly pattern: RegExp;
  /** Returns what to do with the operands that are compared with a column; undefined for a column of another kind. */
  readonly editFor: (column: ArrowField) => Edit | undefined;
}

const KINDS: readonly Kind[] = [
  {
    pattern: /\d\.|\.\d|\de/i,
    editFor: ({ type }) => (type.name === "float" ? ROUNDED[type.bits] : undefined),
  },
  {
    pattern: /[\d)]\s*[-+*/%]\s*[-\d(]/,
    editFor: ({ type }) => (type.name === "int" && type.bits < 64 ? wideSum : undefined),
  },
  { pattern: /:\d\d\.\d/, editFor: (column) => refuseFinerTimes(column) },
];

/**
 * Returns an expression whose constants mean the same wherever they are compared with a column, in steps; the same text if they do.
 *
 * The steps throw LanceError InvalidInput for a time that is finer than the unit of its column.
 */
export function* exactLiteralSteps(text: string, fields: readonly ArrowField[]): Steps<string> {
  const kinds = KINDS.filter(({ pattern, editFor }) => pattern.test(text) && has(fields, editFor));
  if (kinds.length === 0) return text;
  const tokens = yield* tokenSteps(text);
  const edits: [start: number, end: number, text: string][] = [];
  let looked = 0;
  for (const { column, operands } of yield* comparisonsIn(tokens, fields)) {
    for (const { editFor } of kinds) {
      const edit = editFor(column);
      if (edit === undefined) continue;
      for (const span of operands) {
        if (++looked % ITEMS_PER_STEP === 0) yield;
        const edited = edit(tokens, span);
        const [first, last] = [tokens[span[0]], tokens[span[1] - 1]];
        if (edited !== undefined && first && last) edits.push([first.start, last.end, edited]);
      }
    }
  }
  let [exact, done] = ["", 0];
  for (const [start, end, edited] of edits.sort(([a], [b]) => a - b)) {
    // In a = 0.1 = b, both comparisons have the number.
    if (start < done) continue;
    exact += text.slice(done, start) + edited;
    done = end;
  }
  return exact + text.slice(done);
}

function has(fields: readonly ArrowField[], editFor: Kind["editFor"]): boolean {
  return fields.some((field) => editFor(field) !== undefined || has(field.children, editFor));
}

/** Edits of numbers that are compared with floats, by bits: they round as the engine does where it converts numbers. */
const ROUNDED: Readonly<Record<16 | 32 | 64, Edit | undefined>> = {
  16: (tokens, span) => roundedNumber(tokens, span, roundedTo16Bits),
  32: (tokens, span) => roundedNumber(tokens, span, Math.fround),
  64: undefined,
};

/** Rounds to ten binary digits after the first one, or to a multiple of the smallest number of 16 bits. */
function roundedTo16Bits(value: number): number {
  const step = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(value))), -14) - 10);
  const steps = value / step;
  const whole = Math.abs(steps % 1) === 0.5 ? 2 * Math.round(steps / 2) : Math.round(steps);
  return Math.abs(whole * step) >= 2 ** 16 ? Math.sign(value) * Number.POSITIVE_INFINITY : whole * step;
}

function roundedNumber(
  tokens: readonly SqlToken[],
  [from, to]: Span,
  round: (value: number) => number,
): string | undefined {
  const number = tokens[to - 1]?.text ?? "";
  const isNegative = to - from === 2 && tokens[from]?.text === "-";
  if (tokens[to - 1]?.kind !== "number" || (to - from > 1 && !isNegative)) return undefined;
  // The engine takes a number without these for an integer.
  if (!/[.e]/i.test(number)) return undefined;
  const rounded = round(Number(number));
  if (Number.isNaN(rounded) || rounded === Number(number)) return undefined;
  const sign = isNegative ? "-" : "";
  return Number.isFinite(rounded) ? `${sign}${rounded}` : `CAST(${sign}${number} AS DOUBLE)`;
}

const ARITHMETIC = new Set("+ - * / % ( )".split(" "));

/** Has a sum of integers added before it is converted. */
function wideSum(tokens: readonly SqlToken[], [from, to]: Span): string | undefined {
  if (to - from < 3) return undefined;
  let text = "";
  for (let at = from; at < to; at++) {
    const token = tokens[at] as SqlToken;
    if (token.kind === "number" ? !/^\d+$/.test(token.text) : !ARITHMETIC.has(token.text)) return undefined;
    text += ` ${token.text}`;
  }
  return `CAST(${text.trim()} AS BIGINT)`;
}

/** Number of digits of a fraction of a second, by unit. */
const DIGITS: Readonly<Record<TimeUnit, number>> = { s: 0, ms: 3, us: 6, ns: 9 };
const FRACTION = /:\d\d\.(\d*[1-9])/;

function refuseFinerTimes({ name, type }: ArrowField): Edit | undefined {
  const digits = digitsOf(type);
  if (digits === undefined) return undefined;
  return (tokens, [from, to]) => {
    for (let at = from; at < to; at++) {
      const { kind, text, start } = tokens[at] as SqlToken;
      const [, fraction = ""] = kind === "quoted" ? (FRACTION.exec(text) ?? []) : [];
      if (fraction.length <= digits) continue;
      const bound =
        digits === 0 ? "without a fraction of a second" : `with at most ${digits} digits of a second`;
      throw invalidSql(
        `the engine would cut the time to the unit of column ${JSON.stringify(name)}, and compare with another one; give one ${bound}`,
        start,
      );
    }
    return undefined;
  };
}

function digitsOf(type: ArrowType): number | undefined {
  return type.name === "timestamp" || type.name === "time" ? DIGITS[type.unit] : undefined;
}
