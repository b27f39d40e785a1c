import { UsageError } from "../config/option-spec.ts";
import { pauseCompilers } from "../runtime/internals/v8-flags.ts";
import { cacheCode } from "./cache-code.ts";
import { exit, handleEarlySignals } from "./exit.ts";
import { runProgram } from "./program.ts";
import { failureJson, failureLine } from "./terminal/failure.ts";

const args = process.argv.slice(2);
const isGateway = args[0] === "serve";

cacheCode(isGateway);
if (isGateway) {
  pauseCompilers();
  handleEarlySignals();
}

process.stdout.on("error", (error: NodeJS.ErrnoException) => {
  // A gateway serves on, also if nobody reads where it listens.
  if (isGateway) return;
  // A reader that stops early, such as `head`, is not a failure.
  if (error.code === "EPIPE") process.exit(0);
  printFailure(new Error(`standard output cannot be written: ${error.message.split(",")[0]}`));
  process.exit(1);
});

/** Exit codes above it mean that a signal ended the program. */
const SIGNALS = 128;

try {
  const code = await runProgram(args, process.env);
  // A command that was broken off may still read standard input, which would hold the process.
  if (code > SIGNALS) process.exit(code);
  process.exitCode = code;
} catch (error) {
  printFailure(error);
  await exit(error instanceof UsageError ? 2 : 1);
}

/** Prints a single line. */
function printFailure(error: unknown): void {
  const line = args.includes("--json") ? failureJson(error) : `lance-gateway: ${failureLine(error)}`;
  process.stderr.write(`${line}\n`);
}
