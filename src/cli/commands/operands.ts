import { parseArgs } from "node:util";
import type { Identifier } from "../../client/exports.ts";
import { type OptionSpec, UsageError } from "../../config/option-spec.ts";

/** A command line, taken apart. */
export interface Arguments {
  /** What is no flag and no flag's value, in order. */
  readonly operands: readonly string[];
  /** The rest. */
  readonly flags: readonly string[];
}

/**
 * Takes the operands out of a command line.
 *
 * @param usage the names of the operands as the help has them; those in brackets may be left out.
 * @throws UsageError that names the operand which is missing or too many.
 */
export function splitArguments(
  args: readonly string[],
  specs: Readonly<Record<string, OptionSpec>>,
  usage: string,
): Arguments {
  const options = Object.fromEntries(
    Object.values(specs).map(({ flag, value }) => [
      flag,
      { type: value === undefined ? ("boolean" as const) : ("string" as const), multiple: true },
    ]),
  );
  const { tokens } = parseArgs({ args: [...args], options, strict: false, tokens: true });
  const positionals = tokens.filter((token) => token.kind === "positional");
  const places = new Set(positionals.map(({ index }) => index));
  const operands = positionals.map(({ value }) => value);
  const names = usage.split(" ").filter((name) => name !== "");
  const needed = names.filter((name) => !name.startsWith("["));
  if (operands.length < needed.length) throw new UsageError(`${needed[operands.length]} is missing`);
  if (operands.length > names.length) {
    throw new UsageError(`${JSON.stringify(operands[names.length])} is one argument too many`);
  }
  return { operands, flags: args.filter((_, index) => !places.has(index)) };
}

/** A path such as `team/people` as the names of an object; `/` and nothing are the root. */
export function parsePath(text: string): Identifier {
  // A dollar joins names in the REST API; shells want it quoted.
  return text.split(/[/$]/).filter((name) => name !== "");
}

/** The path of an object, for people. */
export function pathText(id: Identifier): string {
  return id.length === 0 ? "/" : id.join("/");
}
