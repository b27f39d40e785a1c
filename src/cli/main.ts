import { enableCompileCache } from "node:module";
import { readConfiguration } from "../config/configuration.ts";
import { UsageError } from "../config/option-spec.ts";
import { redactText } from "../log/redact.ts";
import { COMMANDS } from "./commands/table.ts";
import { commandHelp, helpText } from "./help.ts";
import { packageVersion } from "./version.ts";

// Whatever is loaded from here on, which is nearly everything, starts from Node's own cache the next time.
enableCompileCache();

/** Ends with one clear line: code 2 for wrong use, 1 for what failed at start. */
function exitWith(code: 1 | 2, message: string): never {
  process.stderr.write(`lance-gateway: ${redactText(message)}\n`);
  process.exit(code);
}

async function main(args: readonly string[]): Promise<void> {
  const [command = "", ...rest] = args;
  const other = Object.hasOwn(COMMANDS, command) ? await COMMANDS[command]?.() : undefined;
  if (args.includes("--help") || args.includes("-h")) {
    process.stdout.write(other === undefined ? await helpText() : commandHelp(command, other));
  } else if (command === "--version") {
    process.stdout.write(`${packageVersion()}\n`);
  } else if (command === "serve") {
    const configuration = await readConfiguration(rest, process.env);
    const { serve } = await import("./commands/serve.ts");
    await serve(configuration);
  } else if (other !== undefined) {
    process.exitCode = await other.run(rest, process.env);
  } else {
    const what = command === "" ? "a command is missing" : `unknown command ${JSON.stringify(command)}`;
    throw new UsageError(`${what}; see lance-gateway --help`);
  }
}

try {
  await main(process.argv.slice(2));
} catch (error) {
  if (error instanceof UsageError) exitWith(2, error.message);
  exitWith(1, error instanceof Error ? error.message : String(error));
}
