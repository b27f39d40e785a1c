import { LanceError } from "../namespace/errors.ts";
import { isJsonObject } from "../runtime/text.ts";
import type { FieldTexts } from "./dialect.ts";

/** Reads the vector of a search: an array of numbers, an array of arrays, or an empty array for none. */
export function readVector(json: unknown): unknown {
  if (!Array.isArray(json)) return json;
  return Array.isArray(json[0]) ? { multi_vector: json } : { single_vector: json };
}

/** Reads the columns of a result: an array of names, or expressions by alias. */
export function readColumns(json: unknown): unknown {
  if (Array.isArray(json)) return { column_names: json };
  if (!isJsonObject(json) || Array.isArray(json["column_names"]) || isJsonObject(json["column_aliases"]))
    return json;
  return { column_aliases: json };
}

/** Reads a full-text query: words with the columns to search, or a structured query. */
export function readFullText(json: unknown): unknown {
  if (!isJsonObject(json)) return json;
  const { query } = json;
  if (typeof query === "string") return { string_query: json };
  return isJsonObject(query) ? { structured_query: { query } } : json;
}

/** Reads a match whose fuzziness of null means one that follows from the length of each term. */
export function readMatch(json: unknown): unknown {
  return isJsonObject(json) && json["fuzziness"] === null ? { ...json, auto_fuzziness: true } : json;
}

/** Maximum number of columns in a query for the same words, and of the characters that are repeated for all of them. */
const MAX_REPEATED = { columns: 10_000, characters: 1024 * 1024 } as const;

/** Fields of a match that apply to all columns of a query for the same words. */
const SHARED = [
  "operator",
  "fuzziness",
  "auto_fuzziness",
  "max_expansions",
  "prefix_length",
  "document_granularity",
] as const;

/**
 * Reads a query for the same words in several columns, with a boost for each. Every column gets a match of its own, so a short text could
 * become a large message.
 *
 * @throws LanceError InvalidInput for too many columns, and for a text that is too long to be repeated for each.
 */
export function readMultiMatch(json: unknown): unknown {
  if (!isJsonObject(json) || !Array.isArray(json["columns"])) return json;
  const { query, columns, boost: boosts } = json;
  const shared: Record<string, unknown> = { terms: query };
  for (const name of SHARED) if (json[name] !== undefined) shared[name] = json[name];
  checkRepeated(columns.length, Object.values(shared));
  return {
    match_queries: columns.map((column, index) => ({
      ...shared,
      column,
      ...(Array.isArray(boosts) && { boost: boosts[index] }),
    })),
  };
}

function checkRepeated(columns: number, values: readonly unknown[]): void {
  const length = values.reduce<number>(
    (sum, value) => sum + (typeof value === "string" ? value.length : 0),
    0,
  );
  if (columns <= MAX_REPEATED.columns && columns * length <= MAX_REPEATED.characters) return;
  throw new LanceError(
    "InvalidInput",
    `multi_match must not have more than ${MAX_REPEATED.columns} columns, nor ${MAX_REPEATED.characters} characters of its texts times its columns`,
  );
}

/** Writes the vector of a search as {@link readVector} reads it. */
export function writeVector({ single_vector: one, multi_vector: several }: FieldTexts): string {
  return one ?? several ?? "[]";
}

/** Writes the columns of a result as {@link readColumns} reads them. */
export function writeColumns({ column_names: names, column_aliases: aliases }: FieldTexts): string {
  return names ?? aliases ?? "[]";
}

/** Writes a full-text query as {@link readFullText} reads it. */
export function writeFullText({ string_query: words, structured_query: structured }: FieldTexts): string {
  if (structured !== undefined) return structured;
  return JSON.stringify({ columns: [], ...JSON.parse(words ?? "{}") });
}

/** Writes a query for the same words in several columns as {@link readMultiMatch} reads it. */
export function writeMultiMatch(fields: FieldTexts): FieldTexts {
  const matches = JSON.parse(fields["match_queries"] ?? "[]") as Record<string, unknown>[];
  const [{ column: _column, boost: _boost, terms, ...others } = {}] = matches;
  const texts = Object.entries(others).map(([name, value]) => [name, JSON.stringify(value)]);
  return {
    ...Object.fromEntries(texts),
    query: JSON.stringify(terms ?? ""),
    columns: JSON.stringify(matches.map(({ column }) => column)),
    boost: JSON.stringify(matches.map(({ boost }) => boost ?? 1)),
  };
}
