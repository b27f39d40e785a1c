import { formatFieldPath, resolveField } from "../../../../arrow/field-path.ts";
import type { ArrowSchema } from "../../../../arrow/schema.ts";
import {
  type BooleanQuery,
  type FtsOperator,
  type FtsQuery,
  type MatchQuery,
  FtsOperator as Operator,
  type PhraseQuery,
} from "../../../../gen/lance/namespace/v1/query_pb.ts";
import { LanceError } from "../../../../namespace/errors.ts";
import { loadNative } from "../../engine/native/load.ts";
import type { NativeQueryBase, NativeTextQuery } from "../../engine/native/query.ts";
import type { QueryFields } from "./fields.ts";

/** A search for words, checked against the table. */
export interface TextSearch {
  /** Returns the paths of the fields that it searches. */
  fields(): Promise<readonly string[]>;
  /** Whether it may take a fraction of a second or more. */
  readonly isCostly: boolean;
  apply(query: NativeQueryBase): void;
}

/** The table that a full-text query refers to. */
export interface TextTarget {
  readonly schema: ArrowSchema;
  /** The paths of the fields that have a full-text index. */
  indexedFields(): Promise<readonly string[]>;
  /** Maximum number of words to which the fuzzy conditions of a search may expand together. */
  readonly maxExpansions: number;
}

/** Maximum depth of a tree of conditions. */
const MAX_DEPTH = 32;

/** Maximum length of all search terms together, in characters; each term costs a search. */
const MAX_TERMS_LENGTH = 16 * 1024;

/** Maximum number of conditions, each of which costs a search in each of its columns. */
const MAX_CONDITIONS = 500;

const DEFAULT_EXPANSIONS = 50;
/** The distance up to which the engine finds words if the request leaves it to the engine. */
const AUTO_FUZZINESS = 2;
/**
 * Number of characters of a word that cost as much as an expansion to another one, for a fuzziness of 1: the engine builds an automaton of its
 * characters and that many distances, and looks for each word that it accepts, even if there is none.
 */
const CHARACTERS_PER_EXPANSION = 16;

const DEFAULT_NEGATIVE_BOOST = 0.5;

/**
 * Returns the full-text search of a request; undefined when it has none.
 *
 * @throws LanceError InvalidInput, TableColumnNotFound
 */
export async function textSearch(
  { fullTextQuery }: QueryFields,
  target: TextTarget,
): Promise<TextSearch | undefined> {
  if (fullTextQuery === undefined) return undefined;
  const { stringQuery, structuredQuery } = fullTextQuery;
  if (stringQuery !== undefined && structuredQuery !== undefined) {
    throw invalid("full_text_query has a string and a structure; it must have one of them");
  }
  if (stringQuery !== undefined) {
    const { query: text } = stringQuery;
    checkLength(text.length * Math.max(1, stringQuery.columns.length));
    checkConditions(stringQuery.columns.length);
    const columns = stringQuery.columns.map((path) => searchedField(target, path));
    return {
      fields: async () => (columns.length > 0 ? columns : target.indexedFields()),
      isCostly: isCostly(text.length * Math.max(1, columns.length), columns.length, 0),
      apply: (query) => query.fullTextSearch({ query: text, columns: columns.length > 0 ? columns : null }),
    };
  }
  if (structuredQuery === undefined) throw invalid("full_text_query has neither a string nor a structure");
  const defaults = leavesColumnOpen(structuredQuery.query, 0) ? await target.indexedFields() : [];
  const fields = new Set<string>();
  const { read, isCostly: isCostlyTree } = createTreeReader(target, defaults, fields);
  const tree = read(structuredQuery.query, 0);
  return {
    fields: async () => [...fields],
    isCostly: isCostlyTree(),
    apply: (query) => query.fullTextSearch({ query: tree }),
  };
}

function searchedField({ schema }: TextTarget, path: string): string {
  return formatFieldPath(resolveField(schema, path).names);
}

type Kind = "match" | "phrase" | "boost" | "multiMatch" | "boolean";

const KINDS: Readonly<Record<Kind, string>> = {
  match: "match",
  phrase: "phrase",
  boost: "boost",
  multiMatch: "multi_match",
  boolean: "boolean",
};

/** Returns the only field of a node that is set. */
function kindOf(node: FtsQuery | undefined, depth: number): Kind {
  if (depth > MAX_DEPTH) throw invalid(`a full-text query must not be nested deeper than ${MAX_DEPTH}`);
  const set = (Object.keys(KINDS) as Kind[]).filter((kind) => node?.[kind] !== undefined);
  const [kind] = set;
  if (kind === undefined || set.length > 1) {
    throw invalid(`a full-text query must be exactly one of ${Object.values(KINDS).join(", ")}`);
  }
  return kind;
}

/** Returns the child nodes of a node. */
function childrenOf(node: FtsQuery): readonly (FtsQuery | undefined)[] {
  const { boost, boolean } = node;
  if (boost !== undefined) return [boost.positive, boost.negative];
  return boolean === undefined ? [] : [...boolean.must, ...boolean.should, ...boolean.mustNot];
}

/** Whether a condition names no column and so searches all columns that have an index. */
function leavesColumnOpen(node: FtsQuery | undefined, depth: number): boolean {
  kindOf(node, depth);
  const { match, phrase, multiMatch } = node as FtsQuery;
  const leaves = [match, phrase, ...(multiMatch?.matchQueries ?? [])].filter((leaf) => leaf !== undefined);
  return (
    leaves.some(({ column }) => !column) ||
    childrenOf(node as FtsQuery).some((child) => leavesColumnOpen(child, depth + 1))
  );
}

/** @param found gets the fields of the trees that are read */
function createTreeReader(target: TextTarget, defaults: readonly string[], found: Set<string>) {
  const make = loadNative().JsFullTextQuery;
  let [length, conditions, expansions] = [0, 0, 0];

  function spend(terms: string, fields: readonly string[]): readonly string[] {
    length += terms.length * fields.length;
    checkLength(length);
    conditions += fields.length;
    checkConditions(conditions);
    for (const field of fields) found.add(field);
    return fields;
  }
  /** Counts what a fuzzy condition costs beyond its words. */
  function expand(
    { terms, maxExpansions = DEFAULT_EXPANSIONS }: MatchQuery,
    edits: number,
    columns: number,
  ): void {
    if (edits === 0) return;
    expansions +=
      columns * (maxExpansions + Math.ceil((terms.length * edits ** 2) / CHARACTERS_PER_EXPANSION));
    if (expansions <= target.maxExpansions) return;
    throw invalid(
      `the fuzzy conditions of full_text_query expand to ${expansions} words, and may expand to ${target.maxExpansions}: ` +
        `each counts max_expansions (${DEFAULT_EXPANSIONS} by default), and its characters times the square of fuzziness divided by ${CHARACTERS_PER_EXPANSION}, for each of its columns`,
    );
  }
  function fieldsOf(column: string | undefined): readonly string[] {
    if (column) return [searchedField(target, column)];
    if (defaults.length > 0) return defaults;
    throw invalid(
      "Cannot perform full text search unless an INVERTED index has been created on at least one column",
    );
  }
  function match(query: MatchQuery): NativeTextQuery[] {
    const { terms, boost = 1, fuzziness = 0, maxExpansions = DEFAULT_EXPANSIONS, prefixLength = 0 } = query;
    checkGranularity(query.documentGranularity);
    const edits = query.autoFuzziness ? undefined : fuzziness;
    checkCounts({ fuzziness, max_expansions: maxExpansions, prefix_length: prefixLength });
    checkFactor("boost", boost);
    const operator = operatorOf(query.operator);
    const fields = spend(terms, fieldsOf(query.column));
    expand(query, edits ?? AUTO_FUZZINESS, fields.length);
    return fields.map((column) =>
      make.matchQuery(terms, column, boost, edits, maxExpansions, operator, prefixLength),
    );
  }
  function phrase({ terms, column, slop = 0, documentGranularity }: PhraseQuery): NativeTextQuery[] {
    checkGranularity(documentGranularity);
    checkCounts({ slop });
    return spend(terms, fieldsOf(column)).map((name) => make.phraseQuery(terms, name, slop));
  }
  /** Combines matches that differ only in field and boost into one engine query, which takes the best. */
  function multiMatch(queries: readonly MatchQuery[]): NativeTextQuery {
    const [first] = queries;
    if (first === undefined) throw invalid("multi_match must have a match query");
    const alike = queries.every(
      ({ terms, operator, fuzziness, autoFuzziness, prefixLength }) =>
        !fuzziness &&
        !autoFuzziness &&
        !prefixLength &&
        terms === first.terms &&
        operatorOf(operator) === operatorOf(first.operator),
    );
    if (!alike) return anyOf(queries.flatMap(match));
    const fields = queries.flatMap(({ column, boost = 1 }) => {
      checkFactor("boost", boost);
      return spend(first.terms, fieldsOf(column)).map((name) => ({ name, boost }));
    });
    return make.multiMatchQuery(
      first.terms,
      fields.map(({ name }) => name),
      fields.map(({ boost }) => boost),
      operatorOf(first.operator),
    );
  }
  function anyOf(queries: readonly NativeTextQuery[]): NativeTextQuery {
    const [only, ...others] = queries;
    if (only !== undefined && others.length === 0) return only;
    return make.booleanQuery(queries.map((query) => ["SHOULD", query]));
  }
  function boolean({ must, should, mustNot }: BooleanQuery, depth: number): NativeTextQuery {
    if (must.length === 0 && should.length === 0) {
      throw invalid("a boolean query must have a query in must or should");
    }
    return make.booleanQuery([
      ...must.map((query) => ["MUST", read(query, depth)] as ["MUST", NativeTextQuery]),
      ...should.map((query) => ["SHOULD", read(query, depth)] as ["SHOULD", NativeTextQuery]),
      ...mustNot.map((query) => ["MUST_NOT", read(query, depth)] as ["MUST_NOT", NativeTextQuery]),
    ]);
  }
  function read(node: FtsQuery | undefined, depth: number): NativeTextQuery {
    kindOf(node, depth);
    const query = node as FtsQuery;
    if (query.match) return anyOf(match(query.match));
    if (query.phrase) return anyOf(phrase(query.phrase));
    if (query.multiMatch) return multiMatch(query.multiMatch.matchQueries);
    if (query.boolean) return boolean(query.boolean, depth + 1);
    const { positive, negative, negativeBoost = DEFAULT_NEGATIVE_BOOST } = query.boost ?? {};
    checkFactor("negative_boost", negativeBoost);
    return make.boostQuery(read(positive, depth + 1), read(negative, depth + 1), negativeBoost);
  }
  return { read, isCostly: () => isCostly(length, conditions, expansions) };
}

function operatorOf(operator: FtsOperator | undefined): "AND" | "OR" {
  return operator === Operator.AND ? "AND" : "OR";
}

/** The engine's Node API can neither build nor choose an index whose documents are elements of lists. */
function checkGranularity(granularity: string | undefined): void {
  if (granularity === undefined || granularity === "row") return;
  const name = `document_granularity ${JSON.stringify(granularity)}`;
  if (granularity !== "list_element") throw invalid(`${name} is not one of row, list_element`);
  throw new LanceError("Unsupported", `the engine's Node API cannot search with ${name}; leave it out`);
}

function checkLength(length: number): void {
  if (length <= MAX_TERMS_LENGTH) return;
  throw invalid(`full_text_query must not search for more than ${MAX_TERMS_LENGTH} characters`);
}

function isCostly(length: number, conditions: number, expansions: number): boolean {
  return expansions > 0 || conditions > 16 || length > 1024;
}

function checkConditions(conditions: number): void {
  if (conditions <= MAX_CONDITIONS) return;
  throw invalid(
    `full_text_query must not have more than ${MAX_CONDITIONS} conditions, which count once for each column`,
  );
}

function checkCounts(counts: Readonly<Record<string, number>>): void {
  for (const [name, value] of Object.entries(counts)) {
    if (value < 0) throw invalid(`${name} must not be negative`);
  }
}

/** Maximum factor; scores that overflow fail the search. */
const MAX_FACTOR = 1e9;

function checkFactor(name: string, value: number): void {
  if (!(value >= 0 && value <= MAX_FACTOR)) throw invalid(`${name} must be a number from 0 to ${MAX_FACTOR}`);
}

function invalid(message: string): LanceError {
  return new LanceError("InvalidInput", message);
}
