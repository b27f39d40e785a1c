import type { Random } from "../../support/random.ts";

/*
 * SQL of the engine's grammar and beyond it, to be thrown at a server: good expressions, endless ones, and those
 * whose values would be endless.
 */

const NUMBERS =
  "0 1 -1 7 2147483647 -2147483648 4294967296 9007199254740993 9223372036854775807 1e400 .5 0x1f".split(" ");
const TEXTS = [
  "''",
  "'a'",
  "'it''s'",
  '"text"',
  "'%'",
  "'('",
  "'(a{1000}){1000}'",
  "'\\\\1\\\\1'",
  "X'0aff'",
  "'2024-01-01'",
];
const COLUMNS = ["id", "name", "vector", "`id`", "missing", "t.id", "vector[1]"];
const TYPES =
  "int bigint double string boolean date timestamp binary decimal(10,2) decimal(300,2) timestamp(9) float(99) nullable(int) array<int>".split(
    " ",
  );
const UNARY = [
  "not _",
  "- _",
  "(_)",
  "_ is null",
  "_ is not true",
  "_::bigint",
  "_[1]",
  "_.a",
  "_ is unknown",
  "~_",
];
const BINARY = "+ - * / % || = <> < >= and or << >> & | ^ ~ like ilike == -> => @>".split(" ");
const FUNCTIONS =
  `abs upper lower length concat coalesce lpad rpad repeat replace range generate_series array_repeat
  array_resize array_length make_array array_to_string string_to_array split_part substr left right strpos reverse
  regexp_like regexp_replace regexp_match regexp_count to_timestamp date_trunc date_bin to_char make_date round power
  factorial gcd chr encode decode md5 sha512 levenshtein named_struct struct map get_field arrow_cast nullif greatest
  json_extract contains_tokens array_has_any array_slice array_element flatten initcap translate overlay nvl uuid sum
  random now version no_such_function array_distance find_in_set cardinality array_sort array_concat`.split(
    /\s+/,
  );

/** Returns an expression with operands down to a depth. */
export function expression(random: Random, depth: number): string {
  const inner = () => expression(random, depth - 1);
  if (depth <= 0)
    return random.pick([random.pick(NUMBERS), random.pick(TEXTS), random.pick(COLUMNS), "null", "true"]);
  switch (random.below(12)) {
    case 0:
    case 1:
      return random.pick(UNARY).replace("_", inner);
    case 2:
    case 3:
      return `${inner()} ${random.pick(BINARY)} ${inner()}`;
    case 4:
    case 5:
    case 6:
      return `${random.pick(FUNCTIONS)}(${list(random, random.below(4), inner)})`;
    case 7:
      return `cast(${inner()} as ${random.pick(TYPES)})`;
    case 8:
      return `${inner()} between ${inner()} and ${inner()}`;
    case 9:
      return `${inner()} in (${list(random, 1 + random.below(3), inner)})`;
    case 10:
      return `case when ${inner()} then ${inner()} else ${inner()} end`;
    default:
      return `[${list(random, random.below(4), inner)}]`;
  }
}

/** Returns a condition that the engine can evaluate. */
export function sound(random: Random, depth: number): string {
  const inner = () => sound(random, depth - 1);
  if (depth > 0)
    return random.pick([
      () => `(${inner()} and ${inner()})`,
      () => `${inner()} or ${inner()}`,
      () => `not (${inner()})`,
    ])();
  return random.pick([
    () => `id ${random.pick(["=", "<>", "<", ">="])} ${random.below(400)}`,
    () => `lower(name) like 'p${random.below(9)}%'`,
    () => `id in (${Array.from({ length: 1 + random.below(500) }, (_, i) => i * 2).join(",")})`,
    () => `id between ${random.below(100)} and ${random.below(400)}`,
    () => `lpad(name, ${random.below(20)}, '0') = 'p1' is not true`,
    () => "name is null",
  ])();
}

/** Returns an expression that repeats one form many times. */
export function endless(random: Random, times: number): string {
  const start = expression(random, 1);
  const form = random.pick([
    ...UNARY,
    "_ and b",
    "_ or id = 1",
    "_ + 1",
    "_ || 'a'",
    "_ between 1 and 2",
    "_ in (1)",
    "abs(_)",
    "coalesce(_, 1)",
    "coalesce(_ and true, true)",
    "cast(_ as int)",
    "case when _ then 1 end",
    "(_, 1)",
    "[_]",
    "struct(_)",
    "not (_)",
    "interval _",
    "(select _)",
    "convert(_, int)",
    "row(_)",
    "array[_]",
    "exists (_)",
    "date _",
    "_.a[1]",
    "_ collate x",
    "_ is distinct from 1",
    "map {1: _}",
  ]);
  const [before = "", after = ""] = form.split("_");
  const faulty = random.below(4) === 0 ? " 1 1" : "";
  return before.repeat(times) + start + faulty + after.repeat(times);
}

/** Damages a text: removes or doubles pieces, or inserts quotes and brackets. */
export function damaged(random: Random, text: string): string {
  const at = random.below(text.length + 1);
  const until = Math.min(text.length, at + random.below(6));
  const put = random.pick([
    "",
    "",
    text.slice(at, until).repeat(2),
    "'",
    '"',
    "`",
    "(",
    ")",
    "--",
    "/*",
    "$$",
    "x'",
    "\\",
    ";",
    "\0",
    "é",
  ]);
  return text.slice(0, at) + put + text.slice(until);
}

function list(random: Random, length: number, item: () => string): string {
  return Array.from({ length }, () => (random.below(40) === 0 ? "1, ".repeat(5000) : "") + item()).join(", ");
}
