import { enableCompileCache } from "node:module";
import { UsageError } from "../config/option-spec.ts";
import { redactText } from "../log/redact.ts";
import { runProgram } from "./program.ts";

// Node caches the code that is loaded from here on, which is nearly everything, for the next start.
enableCompileCache();

try {
  process.exitCode = await runProgram(process.argv.slice(2), process.env);
} catch (error) {
  // A single line: code 2 for wrong usage, 1 for a failure.
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`lance-gateway: ${redactText(message)}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
}
