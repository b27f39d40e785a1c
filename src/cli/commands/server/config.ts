import { configurationOf, readSources } from "../../../config/configuration.ts";
import { explain, type ShownConfiguration, type ShownOptions } from "../../../config/explain.ts";
import { findGiven, type Layer, readTable } from "../../../config/layers.ts";
import { type Environment, type OptionTable, UsageError } from "../../../config/option-spec.ts";
import { SERVE_OPTIONS } from "../../../config/options/groups.ts";
import { configurationSchema } from "../../../config/schema.ts";
import { redactText } from "../../../observability/log/redact.ts";
import { jsonText } from "../../terminal/terminal-text.ts";
import { JSON_OPTION } from "../catalog.ts";
import { type CommandDefinition, refuseUnused } from "../command.ts";
import { textTable } from "../text-table.ts";
import { serve } from "./serve.ts";

const OPTIONS = { json: JSON_OPTION } as const satisfies OptionTable;

/** Exit code of a configuration with mistakes, as of any wrong use. */
const WRONG = 2;

/** Text to print, and the exit code. */
type Outcome = readonly [text: string, code: number];

type Act = (layers: readonly Layer[], environment: Environment, json: boolean) => Promise<Outcome>;

const ACTIONS: Readonly<Record<string, Act>> = {
  async check(layers, environment, json) {
    const { checkConfiguration } = await import("../../serving/check-configuration.ts");
    const { mistakes, notes } = await checkConfiguration(layers, environment);
    const valid = mistakes.length === 0;
    if (json) return [jsonText({ valid, mistakes, notes }), valid ? 0 : WRONG];
    for (const line of [...mistakes, ...notes]) process.stderr.write(`lance-gateway: ${redactText(line)}\n`);
    return valid ? ["the configuration is valid\n", 0] : ["", WRONG];
  },

  async print(layers, environment, json) {
    const sources = await readSources(layers, environment);
    configurationOf(sources);
    const shown = explain(sources, redactText);
    return [json ? jsonText(shown) : textOf(shown), 0];
  },

  async schema() {
    return [jsonText(configurationSchema()), 0];
  },
};

/** `lance-gateway config`: checks and prints the configuration of `serve`, and prints the schema of its file. */
export const config: CommandDefinition = {
  operands: "<check|print|schema> [FILE]",
  groups: [{ heading: "Options", options: OPTIONS, environment: false }, ...serve.groups],
  async run({ operands: [name = "", file], layers }, environment) {
    const act = Object.hasOwn(ACTIONS, name) ? ACTIONS[name] : undefined;
    if (act === undefined) throw new UsageError(`config does one of ${Object.keys(ACTIONS).join(", ")}`);
    if (name === "schema") {
      const tables = [OPTIONS, ...serve.groups.map(({ options }) => options)];
      for (const options of tables) refuseUnused("config schema", options, ["json"], layers);
      if (file !== undefined) throw new UsageError("config schema takes no FILE");
    }
    if (file !== undefined && findGiven(SERVE_OPTIONS.config, layers.slice(0, 1)) !== undefined)
      throw new UsageError("FILE and --config both name the configuration; give one of them");
    const { json } = readTable(OPTIONS, layers);
    const [text, code] = await act(
      file === undefined ? layers : [naming(file), ...layers],
      environment,
      json,
    );
    process.stdout.write(text);
    return code;
  },
};

/** Creates a source that names the configuration file alone. */
function naming(file: string): Layer {
  return (spec) => (spec === SERVE_OPTIONS.config ? { texts: [file], source: "FILE" } : undefined);
}

function textOf({ options, databases = {} }: ShownConfiguration): string {
  const parts = Object.entries(databases).map(([name, own]) => `\ndatabases.${name}\n${tableOf(own)}`);
  return [tableOf(options), ...parts].join("");
}

function tableOf(options: ShownOptions): string {
  const rows = Object.entries(options).map(([key, { value, at = "default" }]) => [
    key,
    [value].flat().join(", "),
    at,
  ]);
  return textTable([["OPTION", "VALUE", "FROM"], ...rows]);
}
