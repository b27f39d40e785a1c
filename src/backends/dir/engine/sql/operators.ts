/** How closely operators bind, as in the engine's parser (sqlparser 0.62). */
export const [NOT, IS, LIKE, COMPARE, SIGN] = [15, 17, 19, 20, 41];

/** Operators whose right side is a pattern. */
export const PATTERN_OPERATORS: ReadonlySet<string> = new Set(
  "like ilike rlike regexp".split(" ").concat("similar to"),
);

/** The operators that compare two operands. */
export const COMPARISONS: ReadonlySet<string> = new Set("= == != <> < <= > >=".split(" "));

/** Operators between two operands, and how closely they bind; AND and OR bind less closely than all of them. */
export const INFIX: ReadonlyMap<string, number> = new Map([
  ["is", IS],
  ...[...PATTERN_OPERATORS].map((word) => [word, LIKE] as const),
  ...[...COMPARISONS, "between", "in"].map((word) => [word, COMPARE] as const),
  ...["|", "<<", ">>"].map((symbol) => [symbol, 21] as const),
  ["^", 22],
  ["&", 23],
  ["xor", 24],
  ...["+", "-"].map((symbol) => [symbol, 30] as const),
  ...["*", "/", "%", "||"].map((symbol) => [symbol, 40] as const),
]);

/** Operators that NOT may precede. */
export const NEGATABLE = new Set(["in", "between", ...PATTERN_OPERATORS]);

/** Operators that no pass over a tree looks for. */
export const ARITHMETIC = new Set("+ - * / % | & ^ << >> xor".split(" "));

/** Words that end an operand without being operators between two. */
export const ENDS = new Set("and or as from then when else end escape".split(" "));
export const ENDS_OPERAND = new Set([...INFIX.keys(), ...ENDS, "not"]);

/** Tokens that may follow a pattern: the engine would take others for a part of it. */
export const PATTERN_ENDS = new Set(") , ] and or then when else end escape is as".split(" "));
