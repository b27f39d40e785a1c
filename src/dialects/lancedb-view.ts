import { isJsonObject } from "../runtime/json.ts";

/**
 * Reads a new materialized view: the clients send its query alone, and leave the schema of the result to the server.
 */
export function readMaterializedView(json: unknown): unknown {
  if (!isJsonObject(json) || json["query"] === undefined) return json;
  const { query, ...rest } = json;
  return { kind: "query", source_query: query, output_schema: "", ...rest };
}
