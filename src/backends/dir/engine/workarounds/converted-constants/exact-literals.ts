import type { ArrowField, ArrowType, TimeUnit } from "../../../../../arrow/schema.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../../runtime/pace.ts";
import { comparisonsIn } from "../../sql/comparisons.ts";
import { invalidSql } from "../../sql/tokens.ts";
import {
  isGroup,
  partsOf,
  type SqlEdit,
  type SqlNode,
  type SqlOperation,
  type SqlTree,
  withoutBrackets,
} from "../../sql/tree.ts";

/*
 * The engine converts the constants that AND and OR compare with a column to its type, and elsewhere, for example in NOT, the column to
 * the type of the constants. So `ratio = 0.1` and `NOT (ratio = 0.1)` both find a 32-bit 0.1. It converts the terms of a sum before it
 * adds them, so that `small < 100 + 100` compares a column of 8 bits with -56. And it cuts times to the unit of the column, so that
 * `seconds < TIMESTAMP '… 00:00:00.5'` does not find second 0.
 */

/** Returns the text for an operand in place of its own; undefined to keep it. It may throw LanceError InvalidInput. */
type Edit = (operand: SqlNode, text: string) => string | undefined;

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
    pattern: /[\d)]\s*(?:[-+*/%]|<<|>>)\s*[-\d(]/,
    editFor: ({ type }) => (type.name === "int" && type.bits < 64 ? wideSum : undefined),
  },
  { pattern: /:\d\d\.\d/, editFor: (column) => refuseFinerTimes(column) },
];

/**
 * Returns the changes after which constants mean the same wherever they are compared with a column, in steps.
 *
 * The steps throw LanceError InvalidInput for a time that is finer than the unit of its column.
 */
export function* exactLiteralSteps(tree: SqlTree, fields: readonly ArrowField[]): Steps<SqlEdit[]> {
  const { text } = tree;
  const kinds = KINDS.filter(({ pattern, editFor }) => pattern.test(text) && has(fields, editFor));
  if (kinds.length === 0) return [];
  const edits: SqlEdit[] = [];
  let looked = 0;
  for (const { column, operands } of yield* comparisonsIn(tree, fields)) {
    for (const { editFor } of kinds) {
      const edit = editFor(column);
      if (edit === undefined) continue;
      for (const operand of operands) {
        if (++looked % ITEMS_PER_STEP === 0) yield;
        const { start, end } = withoutBrackets(operand);
        const edited = edit(withoutBrackets(operand), text);
        if (edited !== undefined) edits.push({ start, end, text: edited });
      }
    }
  }
  return edits;
}

function has(fields: readonly ArrowField[], editFor: Kind["editFor"]): boolean {
  return fields.some((field) => editFor(field) !== undefined || has(field.children, editFor));
}

/** Edits of numbers that are compared with floats, by bits: they round as the engine does where it converts numbers. */
const ROUNDED: Readonly<Record<16 | 32 | 64, Edit | undefined>> = {
  16: (operand) => roundedNumber(operand, roundedTo16Bits),
  32: (operand) => roundedNumber(operand, Math.fround),
  64: undefined,
};

/** Rounds to ten binary digits after the first one, or to a multiple of the smallest number of 16 bits. */
function roundedTo16Bits(value: number): number {
  const step = 2 ** (Math.max(Math.floor(Math.log2(Math.abs(value))), -14) - 10);
  const steps = value / step;
  const whole = Math.abs(steps % 1) === 0.5 ? 2 * Math.round(steps / 2) : Math.round(steps);
  return Math.abs(whole * step) >= 2 ** 16 ? Math.sign(value) * Number.POSITIVE_INFINITY : whole * step;
}

function roundedNumber(operand: SqlNode, round: (value: number) => number): string | undefined {
  const isNegative = isSigned(operand, "-");
  const literal = isNegative ? operand.operands[0] : operand;
  // The engine takes a number without these for an integer.
  if (literal?.kind !== "number" || !/[.e]/i.test(literal.text)) return undefined;
  const number = literal.text;
  const rounded = round(Number(number));
  if (Number.isNaN(rounded) || rounded === Number(number)) return undefined;
  const sign = isNegative ? "-" : "";
  return Number.isFinite(rounded) ? `${sign}${rounded}` : `CAST(${sign}${number} AS DOUBLE)`;
}

function isSigned(node: SqlNode, ...signs: readonly string[]): node is SqlOperation {
  return node.kind === "operation" && node.operands.length === 1 && signs.includes(node.operator);
}

const ARITHMETIC = new Set("+ - * / % << >>".split(" "));

/** Has a sum of integers added before it is converted. */
function wideSum(operand: SqlNode, text: string): string | undefined {
  const isSum = operand.kind === "operation" && addsIntegers(operand);
  if (!isSum || (isSigned(operand, "-", "+") && operand.operands[0]?.kind === "number")) return undefined;
  return `CAST(${text.slice(operand.start, operand.end)} AS BIGINT)`;
}

function addsIntegers(node: SqlNode): boolean {
  if (node.kind === "number") return /^\d+$/.test(node.text);
  const adds = isGroup(node) || (node.kind === "operation" && ARITHMETIC.has(node.operator));
  return adds && partsOf(node).every(addsIntegers);
}

/** Number of digits of a fraction of a second, by unit. */
const DIGITS: Readonly<Record<TimeUnit, number>> = { s: 0, ms: 3, us: 6, ns: 9 };
const FRACTION = /:\d\d\.(\d*[1-9])/;

function refuseFinerTimes({ name, type }: ArrowField): Edit | undefined {
  const digits = digitsOf(type);
  if (digits === undefined) return undefined;
  const refuseFiner = (operand: SqlNode): undefined => {
    if (operand.kind === "quoted") {
      const [, fraction = ""] = FRACTION.exec(operand.text) ?? [];
      if (fraction.length <= digits) return;
      const bound =
        digits === 0 ? "without a fraction of a second" : `with at most ${digits} digits of a second`;
      throw invalidSql(
        `the engine would cut the time to the unit of column ${JSON.stringify(name)}, and compare with another one; give one ${bound}`,
        operand.start,
      );
    }
    for (const part of partsOf(operand)) refuseFiner(part);
  };
  return refuseFiner;
}

function digitsOf(type: ArrowType): number | undefined {
  return type.name === "timestamp" || type.name === "time" ? DIGITS[type.unit] : undefined;
}
