import { UsageError } from "../config/option-spec.ts";
import { cacheCode } from "./cache-code.ts";
import { endByEarlySignals, exit } from "./exit.ts";
import { failureJson, failureLine } from "./failure.ts";
import { pauseCompilers } from "./pause-compilers.ts";
import { runProgram } from "./program.ts";

const args = process.argv.slice(2);
const isGateway = args[0] === "serve";

cacheCode(isGateway);
if (isGateway) {
  pauseCompilers();
  endByEarlySignals();
}

// A reader that stops early, such as `head`, is not a failure.
process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  if (error.code === "EPIPE") process.exit(0);
  throw error;
});

/** Exit codes above it mean that a signal ended the program. */
const SIGNALS = 128;

try {
  const code = await runProgram(args, process.env);
  // A command that was broken off may still read standard input, which would hold the process.
  if (code > SIGNALS) process.exit(code);
  process.exitCode = code;
} catch (error) {
  // A single line: code 2 for wrong usage, 1 for a failure.
  const line = args.includes("--json") ? failureJson(error) : `lance-gateway: ${failureLine(error)}`;
  process.stderr.write(`${line}\n`);
  await exit(error instanceof UsageError ? 2 : 1);
}
