import { isJsonObject } from "../runtime/json.ts";
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

/** Reads a query for the same words in several columns, with a boost for each. */
export function readMultiMatch(json: unknown): unknown {
  if (!isJsonObject(json) || !Array.isArray(json["columns"])) return json;
  const { query, columns, boost: boosts, ...others } = json;
  return {
    match_queries: columns.map((column, index) => ({
      ...others,
      column,
      terms: query,
      boost: Array.isArray(boosts) ? boosts[index] : undefined,
    })),
  };
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
