import { enableCompileCache } from "node:module";
import { UsageError } from "../config/option-spec.ts";
import { redactText } from "../log/redact.ts";
import { runProgram } from "./program.ts";

// Whatever is loaded from here on, which is nearly everything, starts from Node's own cache the next time.
enableCompileCache();

try {
  process.exitCode = await runProgram(process.argv.slice(2), process.env);
} catch (error) {
  // One clear line: code 2 for wrong use, 1 for what failed.
  const message = error instanceof Error ? error.message : String(error);
  process.stderr.write(`lance-gateway: ${redactText(message)}\n`);
  process.exit(error instanceof UsageError ? 2 : 1);
}
