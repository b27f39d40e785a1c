/** Facts of numbers that decide on a type that holds each of them exactly. */
export interface NumberFacts {
  /** Whether they are written as integers; a negative zero is not. */
  readonly isInteger: boolean;
  readonly isInt64: boolean;
  readonly isUint64: boolean;
  /** Whether all are finite and have a decimal form without a sign of zero. */
  readonly isDecimal: boolean;
  /** Digits before and after the point of their decimal form. */
  readonly whole: number;
  readonly scale: number;
  readonly isDouble: boolean;
  readonly isSingle: boolean;
  /** Whether one of them is finite. */
  readonly hasFinite: boolean;
}

const NUMBER = /^[-+]?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?$/;
const SHORT_INTEGER = /^-?[1-9]\d{0,14}$/;
const NOT_FINITE: Readonly<Record<string, number>> = {
  nan: Number.NaN,
  inf: Number.POSITIVE_INFINITY,
  infinity: Number.POSITIVE_INFINITY,
};
/** Digits that numbers of 64 and 32 bits keep, whatever they are. */
const DOUBLE_DIGITS = 15;
const SINGLE_DIGITS = 6;
const MOST_DIGITS = 100;

/** Whether a text is a number as people write them: without leading zeros, which names of things have. */
export function isNumberText(text: string): boolean {
  return NUMBER.test(text);
}

/** Returns the value of a text such as `NaN` or `-inf`; undefined for any other text. */
export function notFinite(text: string): number | undefined {
  const [, sign, word = ""] = /^([-+]?)([a-z]{3,8})$/i.exec(text) ?? [];
  const value = NOT_FINITE[word.toLowerCase()];
  return value === undefined || sign !== "-" ? value : -value;
}

const NO_DECIMAL = {
  isInteger: false,
  isInt64: false,
  isUint64: false,
  isDecimal: false,
  whole: 0,
  scale: 0,
};

/** Facts of a number without digits. */
export const NOT_FINITE_FACTS: NumberFacts = {
  ...NO_DECIMAL,
  ...{ isDouble: true, isSingle: true, hasFinite: false },
};

/** Returns the facts of a number. */
export function factsOf(text: string): NumberFacts {
  if (SHORT_INTEGER.test(text)) {
    const value = Number(text);
    const isSingle = isSingleText(text, value);
    return {
      ...{ isInteger: true, isInt64: true, isUint64: value > 0, isDecimal: true },
      ...{ whole: text.length, scale: 0, isDouble: true, isSingle, hasFinite: true },
    };
  }
  const value = Number(text);
  const rest = { isDouble: isDoubleText(text, value), isSingle: isSingleText(text, value), hasFinite: true };
  if (value === 0 && text.startsWith("-")) return { ...NO_DECIMAL, ...rest };
  const { whole, scale } = placesOf(text);
  const isInteger = /^[-+]?\d+$/.test(text);
  // Longer ones fit in no type, and would take long to read.
  const integer = isInteger && whole <= 20 ? BigInt(text.replace("+", "")) : undefined;
  return {
    ...rest,
    ...{ isInteger, isDecimal: true, whole, scale },
    isInt64: integer !== undefined && BigInt.asIntN(64, integer) === integer,
    isUint64: integer !== undefined && BigInt.asUintN(64, integer) === integer,
  };
}

/** Returns what is true of the numbers of both. */
export function mergeFacts(a: NumberFacts, b: NumberFacts): NumberFacts {
  return {
    isInteger: a.isInteger && b.isInteger,
    isInt64: a.isInt64 && b.isInt64,
    isUint64: a.isUint64 && b.isUint64,
    isDecimal: a.isDecimal && b.isDecimal,
    whole: Math.max(a.whole, b.whole),
    scale: Math.max(a.scale, b.scale),
    isDouble: a.isDouble && b.isDouble,
    isSingle: a.isSingle && b.isSingle,
    hasFinite: a.hasFinite || b.hasFinite,
  };
}

/** Whether a number of 64 bits, written with as many digits as the text has, is the text. */
export function isDoubleText(text: string, value = Number(text)): boolean {
  return isKept(text, value, DOUBLE_DIGITS, 1e-290);
}

/** Whether a number of 32 bits is the text, in the same way. */
export function isSingleText(text: string, value = Number(text)): boolean {
  return isRoundedText(text, value, Math.fround(value), SINGLE_DIGITS, 1e-30);
}

/** Whether a number of 16 bits is the text, in the same way. */
export function isHalfText(text: string, value = Number(text)): boolean {
  return isRoundedText(text, value, Math.f16round(value), 3, 1e-3);
}

function isRoundedText(text: string, value: number, rounded: number, digits: number, least: number): boolean {
  return Object.is(rounded, value) ? isDoubleText(text, value) : isKept(text, rounded, digits, least);
}

/** @param least size from which on all numbers of so few digits are kept */
function isKept(text: string, value: number, fewDigits: number, least: number): boolean {
  if (!Number.isFinite(value)) return false;
  if (String(value) === text) return true;
  if (text.length <= fewDigits && Math.abs(value) >= least) return true;
  const { digits, exponent } = significant(text);
  if (digits === "") return true;
  if (value === 0 || digits.length > MOST_DIGITS) return false;
  if (digits.length <= fewDigits && Math.abs(value) >= least) return true;
  const kept = significant(value.toPrecision(digits.length));
  return kept.digits === digits && kept.exponent === exponent;
}

/** Returns the digits before and after the point of a number without an exponent, without zeros at its ends. */
function placesOf(text: string): { readonly whole: number; readonly scale: number } {
  if (/[eE]/.test(text)) {
    const { digits, exponent } = significant(text);
    return { whole: Math.max(0, digits.length + exponent), scale: Math.max(0, -exponent) };
  }
  const point = text.indexOf(".");
  const end = point < 0 ? text.length : point;
  let start = 0;
  while (start < end && !(text.charCodeAt(start) > ZERO)) start += 1;
  let last = text.length - 1;
  while (last > end && text.charCodeAt(last) === ZERO) last -= 1;
  return { whole: end - start, scale: Math.max(0, last - end) };
}

const ZERO = 0x30;

interface Significant {
  /** Digits without zeros at both ends; none for zero. */
  readonly digits: string;
  /** Power of ten of the last digit. */
  readonly exponent: number;
}

function significant(text: string): Significant {
  const [, whole = "", fraction = "", power = "0"] =
    /^[-+]?(\d*)(?:\.(\d*))?(?:[eE]([-+]?\d+))?$/.exec(text) ?? [];
  const all = whole + fraction;
  const digits = all.replace(/^0+/, "").replace(/0+$/, "");
  const zeros = /0*$/.exec(all)?.[0].length ?? 0;
  return digits === ""
    ? { digits, exponent: 0 }
    : { digits, exponent: Number(power) - fraction.length + zeros };
}

declare global {
  interface Math {
    /** Rounds to a number of 16 bits. */
    f16round(value: number): number;
  }
}
