import type { ArrowField } from "../../../../arrow/schema.ts";
import { ITEMS_PER_STEP, type Steps } from "../../../../runtime/pace.ts";
import { wordOf } from "./conditions.ts";
import type { SqlToken } from "./tokens.ts";

/** Some tokens, by the indices of the first one and the one after the last. */
export type Span = readonly [from: number, to: number];

/** A comparison of a column with other operands. */
export interface Comparison {
  readonly column: ArrowField;
  /** The operands: one, the two of a BETWEEN, or the items of a list. */
  readonly operands: readonly Span[];
}

const COMPARES = new Set(["=", "==", "!=", "<>", "<", "<=", ">", ">="]);
const ENDS = new Set([
  ...COMPARES,
  ",",
  ..."and or not is in between like ilike case when then else end".split(" "),
]);

/** Finds the comparisons with columns of a table, and with fields of its structs, in steps. */
export function* comparisonsIn(
  tokens: readonly SqlToken[],
  fields: readonly ArrowField[],
): Steps<Comparison[]> {
  const found: Comparison[] = [];
  const add = (left: Span, operands: readonly Span[]) => {
    const column = columnOf(tokens, withoutBrackets(tokens, left), fields);
    if (column !== undefined)
      found.push({ column, operands: operands.map((span) => withoutBrackets(tokens, span)) });
    return column;
  };
  for (const at of tokens.keys()) {
    if (at % ITEMS_PER_STEP === 0) yield;
    const word = wordOf(tokens[at]);
    if (COMPARES.has(word)) {
      const [left, right] = [spanBefore(tokens, at), spanAfter(tokens, at)];
      if (add(left, [right]) === undefined) add(right, [left]);
    } else if (word === "between") {
      const low = spanAfter(tokens, at);
      add(spanBefore(tokens, at), [low, spanAfter(tokens, low[1])]);
    } else if (word === "in" && tokens[at + 1]?.text === "(") {
      const items: Span[] = [];
      let end = at + 1;
      do {
        const item = spanAfter(tokens, end);
        items.push(item);
        if (items.length % ITEMS_PER_STEP === 0) yield;
        end = item[1];
      } while (tokens[end]?.text === ",");
      add(spanBefore(tokens, at), items);
    }
  }
  return found;
}

/** Returns an operand without the brackets around it. */
export function withoutBrackets(tokens: readonly SqlToken[], [from, to]: Span): Span {
  const [first, last] = [tokens[from], tokens[to - 1]];
  if (to - from < 3 || first?.text !== "(" || last?.text !== ")") return [from, to];
  for (let at = from + 1; at < to - 1; at++) if (tokens[at]?.depth === first.depth) return [from, to];
  return withoutBrackets(tokens, [from + 1, to - 1]);
}

/** Returns the operand that ends before an operator. */
function spanBefore(tokens: readonly SqlToken[], operator: number): Span {
  const { depth } = tokens[operator] as SqlToken;
  const to = wordOf(tokens[operator - 1]) === "not" ? operator - 1 : operator;
  let from = to;
  while (from > 0 && !endsOperand(tokens[from - 1] as SqlToken, depth)) from--;
  return [from, to];
}

/** Returns the operand that begins after a token: an operator, a comma, or the bracket of a list. */
function spanAfter(tokens: readonly SqlToken[], before: number): Span {
  const first = tokens[before + 1];
  const depth = first?.depth ?? 0;
  let to = before + 1;
  while (to < tokens.length && !endsOperand(tokens[to] as SqlToken, depth)) to++;
  return [before + 1, to];
}

function endsOperand(token: SqlToken, depth: number): boolean {
  return token.depth < depth || (token.depth === depth && ENDS.has(wordOf(token)));
}

/** Returns the column that some tokens are; undefined if they are anything else. */
export function columnOf(
  tokens: readonly SqlToken[],
  [from, to]: Span,
  fields: readonly ArrowField[],
): ArrowField | undefined {
  let [column, among]: [ArrowField | undefined, readonly ArrowField[]] = [undefined, fields];
  if ((to - from) % 2 === 0) return undefined;
  for (let at = from; at < to; at += 2) {
    const { kind, text } = tokens[at] as SqlToken;
    if (at > from && tokens[at - 1]?.text !== ".") return undefined;
    column = fieldOf(among, kind, text);
    if (column === undefined) return undefined;
    among = column.type.name === "struct" ? column.children : [];
  }
  return column;
}

/** Returns the field that a token names. In double quotes, the engine takes the name of a column for one, too. */
function fieldOf(among: readonly ArrowField[], kind: SqlToken["kind"], text: string): ArrowField | undefined {
  if (kind === "word") return namesOf(among).get(text) ?? namesOf(among).get(text.toLowerCase());
  const quote = text.charAt(0);
  if (kind !== "quoted" || (quote !== "`" && quote !== '"')) return undefined;
  return namesOf(among).get(text.slice(1, -1).replaceAll(quote + quote, quote));
}

const fieldsByName = new WeakMap<readonly ArrowField[], ReadonlyMap<string, ArrowField>>();

/** Returns fields by their names, and by these in lower case, by which the engine finds them, too. */
function namesOf(fields: readonly ArrowField[]): ReadonlyMap<string, ArrowField> {
  let byName = fieldsByName.get(fields);
  if (byName === undefined) {
    const inLowerCase = fields.map((field) => [field.name.toLowerCase(), field] as const);
    byName = new Map([...inLowerCase, ...fields.map((field) => [field.name, field] as const)]);
    fieldsByName.set(fields, byName);
  }
  return byName;
}
