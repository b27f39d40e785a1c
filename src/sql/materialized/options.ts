import { LanceError } from "../../namespace/errors.ts";
import { positionAt, type TokenReader } from "../writes/tokens.ts";

/** Reasons why options that LanceDB's clients send are refused. */
const REASONS: ReadonlyMap<string, string> = new Map([
  [
    "auto_refresh_interval_seconds",
    ": a view with auto_refresh_enabled is refreshed soon after its source has changed, and at no interval",
  ],
]);

/**
 * Reads `WITH (name = true, …)`, if it is next.
 *
 * @throws LanceError Unsupported for an unknown option, InvalidInput for one that is set twice, and for a value that is not true or false
 */
export function readOptions(
  statement: string,
  tokens: TokenReader,
  known: readonly string[],
): ReadonlyMap<string, boolean> {
  const options = new Map<string, boolean>();
  if (!tokens.accept("WITH")) return options;
  tokens.expect("(");
  do {
    const at = positionAt(statement, tokens.next.start);
    const name = tokens.name("the name of an option").toLowerCase();
    if (!known.includes(name)) {
      const reason = REASONS.get(name) ?? "";
      throw new LanceError("Unsupported", `the option "${name}" is not supported at position ${at}${reason}`);
    }
    if (options.has(name))
      throw new LanceError("InvalidInput", `the option "${name}" is there twice, again at position ${at}`);
    tokens.expect("=");
    const isTrue = tokens.accept("TRUE");
    if (!isTrue && !tokens.accept("FALSE")) throw tokens.unexpected("true or false");
    options.set(name, isTrue);
  } while (tokens.accept(","));
  tokens.expect(")");
  return options;
}
