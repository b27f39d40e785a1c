import { invalidSql, type SqlToken } from "./tokens.ts";

/**
 * Functions that an expression may call: those of the engine whose result is not much larger than their arguments,
 * and whose time is not much longer than reading them. Functions that can grow a value are in {@link CHECKED}.
 */
const FUNCTIONS = new Set(
  `
  abs acos acosh asin asinh atan atan2 atanh cbrt ceil cos cosh cot degrees exp factorial floor gcd isnan iszero lcm
  ln log log10 log2 nanvl pi pow power radians random rand round signum sin sinh sqrt tan tanh trunc

  ascii bit_length btrim char_length character_length chr concat concat_ws contains contains_tokens ends_with
  find_in_set initcap instr left length lower ltrim octet_length position regexp_count regexp_instr regexp_like
  regexp_match reverse right rtrim split_part starts_with strpos substr substr_index substring substring_index
  to_hex translate trim upper uuid decode digest md5 sha224 sha256 sha384 sha512 overlay

  current_date current_time current_timestamp date_bin date_part date_trunc datepart datetrunc extract from_unixtime
  make_date make_time now to_date to_local_time to_time to_timestamp to_timestamp_micros to_timestamp_millis
  to_timestamp_nanos to_timestamp_seconds to_unixtime today

  array_any_value array_append array_cat array_compact array_concat array_contains array_dims array_distance
  array_distinct array_element array_empty array_except array_extract array_has array_has_all array_has_any
  array_indexof array_intersect array_join array_length array_max array_min array_ndims array_normalize array_pop_back
  array_pop_front array_position array_positions array_prepend array_push_back array_push_front array_remove
  array_remove_all array_remove_n array_replace array_replace_all array_replace_n array_reverse array_slice array_sort
  array_union arrays_overlap arrays_zip cardinality cosine_distance dot_product element_at empty flatten inner_product
  list_any_value list_append list_cat list_compact list_concat list_contains list_dims list_distance list_distinct
  list_element list_empty list_except list_extract list_has list_has_all list_has_any list_indexof list_intersect
  list_length list_max list_ndims list_normalize list_pop_back list_pop_front list_position list_positions
  list_prepend list_push_back list_push_front list_remove list_remove_all list_remove_n list_replace list_replace_all
  list_replace_n list_reverse list_slice list_sort list_union list_zip make_array make_list string_to_array
  string_to_list

  map map_entries map_extract map_keys map_values named_struct struct union_extract union_tag
  json_array_contains json_array_length json_exists json_extract json_extract_with_type json_get json_get_bool
  json_get_float json_get_int json_get_string

  arrow_field arrow_metadata arrow_typeof coalesce greatest ifnull is_valid least nullif nvl nvl2 _cast_list_f16

  st_area st_contains st_coveredby st_covers st_crosses st_distance st_intersects st_length st_overlaps st_touches
  st_within
  `
    .trim()
    .split(/\s+/),
);

/** Words of the grammar that may precede a bracket, and types with parameters in brackets. */
const GRAMMAR = new Set(
  `and or not in like ilike between is then when else case escape end from to distinct
  cast try_cast safe_cast dec datetime timestamp float double binary date time`.split(/\s+/),
);

/** Returns what an argument must be instead, among the arguments of its call. */
type Argument = (tokens: readonly SqlToken[], list: readonly (readonly SqlToken[])[]) => string | undefined;

const anything: Argument = () => undefined;

/** Returns the text of a constant as written; undefined for any other expression. */
export function constantOf(tokens: readonly SqlToken[] = []): string | undefined {
  const plain = tokens.every(
    ({ kind, text }) => kind === "number" || text === "-" || (kind === "quoted" && !text.startsWith("`")),
  );
  return plain && tokens.length > 0 ? tokens.map(({ text }) => text).join("") : undefined;
}
function wholeNumber(tokens: readonly SqlToken[]): number {
  const written = constantOf(tokens) ?? "";
  return /^-?\d{1,9}$/.test(written) ? Math.abs(Number(written)) : Number.POSITIVE_INFINITY;
}
/** A whole number in the text itself, up to a bound. */
const upTo =
  (bound: number): Argument =>
  (tokens) =>
    wholeNumber(tokens) <= bound ? undefined : `a whole number of at most ${bound}, not an expression`;
/** The number of copies of a value. */
const copies: Argument = (tokens, [value]) => {
  const constant = constantOf(value);
  const bound = constant === undefined ? 16 : Math.floor(8192 / constant.length);
  return upTo(bound)(tokens, []);
};
/** A text in the expression itself, up to a length. */
const textUpTo =
  (bound: number, least = 0): Argument =>
  (tokens) => {
    const length = (tokens[0]?.kind === "quoted" && constantOf(tokens)?.length) || 0;
    return tokens.length === 1 && length - 2 >= least && length - 2 <= bound
      ? undefined
      : `a text of ${least} to ${bound} characters, not an expression`;
  };
const shortConstant: Argument = (tokens) =>
  (constantOf(tokens)?.length ?? 99) <= 16 ? undefined : "a constant of at most 16 characters";
/** The name of an Arrow type: short, of a bounded size, and not nested deeply. */
const typeName: Argument = (tokens) => {
  const name = constantOf(tokens) ?? "";
  const numbers = name.match(/\d+/g) ?? [];
  const nested = (name.match(/\(/g) ?? []).length;
  const bounded = numbers.every((number) => Number(number) <= 8192) && !/FixedSize.*FixedSize/.test(name);
  const decimals = [...name.matchAll(/Decimal(\d+)\s*\(\s*(\d+)/gi)];
  const held = decimals.every(([, bits, digits]) => Number(digits) <= digitsIn(Number(bits)));
  return name.length > 2 && name.length <= 128 && nested <= 4 && bounded && held
    ? undefined
    : "the name of a type, of at most 128 characters, with one size of at most 8192 and the digits that it can hold";
};

/** Number of decimal digits that every one of a signed integer's values can have. */
const digitsIn = (bits: number) => Math.floor((bits - 1) * Math.log10(2));

/** Digits of a decimal: the engine looks its bounds up by them, and fails without a message beyond the last. */
const upToDigits: Argument = upTo(digitsIn(128));

/** The engine fails without a message if an argument is missing. */
const oneOfTwo: Argument = (_, list) => (list.length === 2 ? undefined : "one of two");

/** Functions whose arguments are checked, and what these must be; the last entry applies to all further arguments. */
const CHECKED: Readonly<Record<string, readonly Argument[] | undefined>> = {
  __proto__: null as never,
  repeat: [anything, copies],
  lpad: [anything, upTo(4096), textUpTo(4096)],
  rpad: [anything, upTo(4096), textUpTo(4096)],
  replace: [anything, textUpTo(4096, 1), textUpTo(64)],
  regexp_replace: [anything, textUpTo(4096, 1), textUpTo(64), textUpTo(16)],
  array_repeat: [anything, copies],
  array_resize: [anything, upTo(1024), shortConstant],
  array_to_string: [anything, textUpTo(64)],
  range: [upTo(1024)],
  encode: [anything, textUpTo(16)],
  to_char: [anything, textUpTo(64)],
  arrow_cast: [anything, typeName],
  arrow_try_cast: [anything, typeName],
  get_field: [oneOfTwo],
  decimal: [upToDigits],
};

const OTHER_NAMES: Readonly<Record<string, string | undefined>> = {
  __proto__: null as never,
  list_repeat: "array_repeat",
  list_resize: "array_resize",
  list_to_string: "array_to_string",
  list_join: "array_to_string",
  array_join: "array_to_string",
  generate_series: "range",
  date_format: "to_char",
};

/** Those of them that may be nested without a bound, because they grow a value little. */
const REPEATABLE = new Set(["get_field", "arrow_cast", "arrow_try_cast", "decimal"]);

/** Maximum number of calls of functions that can grow a value. */
const MAX_GROWING = 8;

/** Maximum length of the text that may become part of each row's value: calls, arrays, and operands of `||`. */
export const MAX_VALUE_LENGTH = 32 * 1024;

/**
 * Checks the functions that an expression calls, and how much text it makes of constants.
 *
 * @throws LanceError InvalidInput
 */
export function checkFunctions(tokens: readonly SqlToken[]): void {
  let [growing, grownTo, made, madeTo] = [0, 0, 0, 0];
  for (let i = 0; i < tokens.length; i++) {
    const token = tokens[i] as SqlToken;
    if (token.kind === "symbol") {
      if (token.text === "||") made = (tokens.at(-1) as SqlToken).end;
      else if (token.text === "(" && isQuery(tokens[i + 1]))
        throw invalidSql("it must not have a query inside", token.start);
    }
    const opens = callAt(tokens, i);
    if (opens === undefined) continue;
    if (token.start >= madeTo) {
      madeTo = endOf(tokens, opens);
      made += madeTo - token.start;
    }
    if (made > MAX_VALUE_LENGTH) {
      throw invalidSql(
        `calls, arrays and operands of || have more than ${MAX_VALUE_LENGTH} characters`,
        token.start,
      );
    }
    const name = token.text.toLowerCase();
    const wanted = CHECKED[OTHER_NAMES[name] ?? name];
    if (opens === i || wanted === undefined) continue;
    if (!REPEATABLE.has(name) && (++growing > MAX_GROWING || token.start < grownTo)) {
      throw invalidSql(
        `functions such as ${name} must not be within each other, nor more than ${MAX_GROWING}`,
        token.start,
      );
    }
    if (!REPEATABLE.has(name)) grownTo = endOf(tokens, opens);
    checkArguments(name, wanted, argumentsOf(tokens, opens));
  }
  if (made > MAX_VALUE_LENGTH) {
    throw invalidSql(`operands of || have more than ${MAX_VALUE_LENGTH} characters`);
  }
}

/**
 * Returns the index of the bracket that opens the values of an array, or the arguments of the function of that name; undefined for any other token.
 *
 * @throws LanceError InvalidInput, for an unknown function
 */
export function callAt(tokens: readonly SqlToken[], index: number): number | undefined {
  const token = tokens[index] as SqlToken;
  if (token.text === "[" && token.kind === "symbol") return index;
  return calls(token, tokens[index + 1]) ? index + 1 : undefined;
}

/**
 * Whether a token is the name of a function, before its bracket.
 *
 * @throws LanceError InvalidInput
 */
function calls({ kind, text, start }: SqlToken, next: SqlToken | undefined): boolean {
  if (next?.text !== "(" || next.kind !== "symbol" || kind === "symbol" || kind === "number") return false;
  const name = text.toLowerCase();
  if (GRAMMAR.has(name)) return false;
  if (FUNCTIONS.has(name) || (OTHER_NAMES[name] ?? name) in CHECKED) return true;
  throw invalidSql(`${text.slice(0, 64)} is not a function that this server knows as harmless`, start);
}

function checkArguments(name: string, wanted: readonly Argument[], list: readonly SqlToken[][]): void {
  for (const [n, argument] of list.entries()) {
    const problem = (wanted[n] ?? (wanted.at(-1) as Argument))(argument, list);
    if (problem === undefined) continue;
    throw invalidSql(`argument ${n + 1} of ${name} must be ${problem}`, argument[0]?.start);
  }
}

function isQuery(token: SqlToken | undefined): boolean {
  return token?.kind === "word" && /^(?:select|with)$/i.test(token.text);
}

/** Returns the end of the bracket that a token opens. */
function endOf(tokens: readonly SqlToken[], open: number): number {
  const { depth } = tokens[open] as SqlToken;
  let i = open + 1;
  while (i < tokens.length - 1 && (tokens[i] as SqlToken).depth > depth) i++;
  return (tokens[i] as SqlToken).end;
}

/** Returns the arguments of a call, by its opening bracket. */
export function argumentsOf(tokens: readonly SqlToken[], open: number): SqlToken[][] {
  const { depth } = tokens[open] as SqlToken;
  const list: SqlToken[][] = [[]];
  for (let i = open + 1; i < tokens.length; i++) {
    const token = tokens[i] as SqlToken;
    if (token.depth === depth) break;
    if (token.depth === depth + 1 && token.text === "," && token.kind === "symbol") list.push([]);
    else list.at(-1)?.push(token);
  }
  return list;
}
