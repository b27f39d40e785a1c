import { environmentName, flagUsage, type OptionSpec } from "../../src/config/option-spec.ts";
import { SERVE_OPTIONS } from "../../src/config/options.ts";
import { markdownTable } from "./markdown.ts";

/** The options of `lance-gateway serve`. */
export function configurationTable(): string {
  const rows = Object.values<OptionSpec>(SERVE_OPTIONS).map((spec) => [
    `\`${flagUsage(spec)}\``,
    `\`${environmentName(spec.flag)}\``,
    spec.fallback === undefined ? "" : `\`${spec.fallback}\``,
    spec.backends?.join(", ") ?? "",
    spec.help,
  ]);
  return markdownTable(["Flag", "Environment", "Default", "Database", "Meaning"], rows);
}
