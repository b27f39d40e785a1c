import { environmentName, flagUsage, type OptionSpec, SERVE_OPTIONS } from "./options.ts";

/** The text of `lance-gateway --help`. */
export function helpText(): string {
  const options = Object.values<OptionSpec>(SERVE_OPTIONS).map((spec) => {
    const fallback = spec.fallback === undefined ? "" : ` (default ${spec.fallback})`;
    return `  ${flagUsage(spec)}\n      ${spec.help}${fallback}\n      Environment: ${environmentName(spec.flag)}`;
  });
  return [
    "Lance Gateway serves the Lance Namespace API over REST, gRPC, Connect and gRPC-Web on one port.",
    "",
    "Usage:",
    "  lance-gateway serve [options]   serve a directory of Lance tables",
    "  lance-gateway --help            print this text",
    "  lance-gateway --version         print the version",
    "",
    "Options of serve:",
    ...options,
    "",
  ].join("\n");
}
