import { targetAt } from "../writes/parse-write.ts";
import type { Target } from "../writes/target.ts";
import { TokenReader } from "../writes/tokens.ts";

/** A statement that reads definitions of materialized views. */
export type Lookup =
  | { readonly kind: "describe"; readonly target: Target }
  /** Lists names in their order. @param after lists those behind this one. Default: all. @param limit Default: none. */
  | { readonly kind: "show"; readonly after: string | undefined; readonly limit: number | undefined };

/** Largest limit: longer numbers are not exact. */
const LIMIT = /^\d{1,15}$/;

/**
 * Reads `DESCRIBE MATERIALIZED VIEW name`, and `SHOW MATERIALIZED VIEWS [WHERE name > 'name'] [LIMIT n]`; undefined for other statements.
 *
 * @throws LanceError InvalidInput for one of them that has more
 */
export function parseLookup(statement: string): Lookup | undefined {
  const tokens = new TokenReader(statement);
  if (tokens.accept("DESCRIBE", "MATERIALIZED", "VIEW")) {
    const target = targetAt(tokens);
    tokens.end();
    return { kind: "describe", target };
  }
  if (!tokens.accept("SHOW", "MATERIALIZED", "VIEWS")) return undefined;
  const after = tokens.accept("WHERE") ? nameAfter(tokens) : undefined;
  const limit = tokens.accept("LIMIT") ? limitAt(tokens) : undefined;
  tokens.end();
  return { kind: "show", after, limit };
}

/** Reads `name > 'name'`. */
function nameAfter(tokens: TokenReader): string {
  tokens.expect("name", ">");
  if (tokens.next.kind !== "string") throw tokens.unexpected("a string");
  return tokens.take().text;
}

function limitAt(tokens: TokenReader): number {
  const { kind, text } = tokens.next;
  if (kind !== "number" || !LIMIT.test(text)) throw tokens.unexpected("a number of views");
  return Number(tokens.take().text);
}
