import { ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import { invalidSql } from "./tokens.ts";
import { constantOf, type SqlKnot, type SqlNode, type SqlTree } from "./tree.ts";

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

/** Words of the grammar that have arguments in brackets: conversions, and types with parameters. */
const GRAMMAR = new Set(
  "cast try_cast safe_cast dec datetime timestamp float double binary date time".split(" "),
);

/** Returns what an argument must be instead, among the arguments of its call. */
type Argument = (value: SqlNode, list: readonly SqlNode[]) => string | undefined;

const anything: Argument = () => undefined;

function wholeNumber(value: SqlNode): number {
  const written = constantOf(value) ?? "";
  return /^-?\d{1,9}$/.test(written) ? Math.abs(Number(written)) : Number.POSITIVE_INFINITY;
}
/** A whole number in the text itself, up to a bound. */
const upTo =
  (bound: number): Argument =>
  (value) =>
    wholeNumber(value) <= bound ? undefined : `a whole number of at most ${bound}, not an expression`;
/** The number of copies of a value. */
const copies: Argument = (number, [copied]) => {
  const constant = constantOf(copied);
  const bound = constant === undefined ? 16 : Math.floor(8192 / constant.length);
  return upTo(bound)(number, []);
};
/** A text in the expression itself, up to a length. */
const textUpTo =
  (bound: number, least = 0): Argument =>
  (value) => {
    const length = (value.kind === "quoted" && constantOf(value)?.length) || 0;
    return length - 2 >= least && length - 2 <= bound
      ? undefined
      : `a text of ${least} to ${bound} characters, not an expression`;
  };
const shortConstant: Argument = (value) =>
  (constantOf(value)?.length ?? 99) <= 16 ? undefined : "a constant of at most 16 characters";
/** The name of an Arrow type: short, of a bounded size, and not nested deeply. */
const typeName: Argument = (value) => {
  const name = constantOf(value) ?? "";
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
 * The steps throw LanceError InvalidInput.
 */
export function* functionSteps({ nodes, root }: SqlTree): Steps<void> {
  let [growing, grownTo, made, madeTo] = [0, 0, 0, 0];
  for (const [index, node] of nodes.entries()) {
    if (index % ITEMS_PER_STEP === ITEMS_PER_STEP - 1) yield;
    if (node.kind === "operation" && node.operator === "||") made = root.end;
    if (node.kind !== "bracket") continue;
    const name = calledBy(node);
    if (name !== undefined) {
      if (node.at >= madeTo) {
        madeTo = node.end;
        made += madeTo - node.at;
      }
      if (made > MAX_VALUE_LENGTH) {
        throw invalidSql(
          `calls, arrays and operands of || have more than ${MAX_VALUE_LENGTH} characters`,
          node.at,
        );
      }
    }
    const wanted = node.name && name && CHECKED[OTHER_NAMES[name] ?? name];
    if (wanted) {
      const grows = !REPEATABLE.has(name);
      if (grows && (++growing > MAX_GROWING || node.at < grownTo)) {
        throw invalidSql(
          `functions such as ${name} must not be within each other, nor more than ${MAX_GROWING}`,
          node.at,
        );
      }
      if (grows) grownTo = node.end;
      checkArguments(name, wanted, node.items);
    }
    if (node.isQuery) throw invalidSql("it must not have a query inside", node.open);
  }
  if (made > MAX_VALUE_LENGTH) {
    throw invalidSql(`operands of || have more than ${MAX_VALUE_LENGTH} characters`);
  }
}

/**
 * Returns the name of the function that a node calls, also for the values of an array; undefined for any other node.
 *
 * @throws LanceError InvalidInput, for an unknown function
 */
export function calledBy(node: SqlKnot): string | undefined {
  if (node.kind !== "bracket") return undefined;
  if (node.opening === "[") return "make_array";
  if (node.name === undefined) return undefined;
  const { text, start } = node.name;
  const name = text.toLowerCase();
  if (GRAMMAR.has(name)) return undefined;
  if (FUNCTIONS.has(name) || (OTHER_NAMES[name] ?? name) in CHECKED) return name;
  throw invalidSql(`${text.slice(0, 64)} is not a function that this server knows as harmless`, start);
}

function checkArguments(name: string, wanted: readonly Argument[], list: readonly SqlNode[]): void {
  for (const [n, argument] of list.entries()) {
    const problem = (wanted[n] ?? (wanted.at(-1) as Argument))(argument, list);
    if (problem === undefined) continue;
    throw invalidSql(`argument ${n + 1} of ${name} must be ${problem}`, startOf(argument));
  }
}

/** Returns the position of an argument; undefined if it is missing. */
export function startOf(argument: SqlNode | undefined): number | undefined {
  return argument?.kind === "missing" ? undefined : argument?.start;
}
