import { vi } from "vitest";
import { runProgram } from "../../src/cli/program.ts";
import type { Environment } from "../../src/config/option-spec.ts";

/** Runs a command in this process, and returns what it wrote to standard output; its failure is thrown. */
export async function runCommand(args: readonly string[], environment: Environment = {}): Promise<string> {
  const pieces: string[] = [];
  const write = vi.spyOn(process.stdout, "write").mockImplementation((piece) => {
    pieces.push(typeof piece === "string" ? piece : Buffer.from(piece).toString());
    return true;
  });
  try {
    await runProgram(args, environment);
    return pieces.join("");
  } finally {
    write.mockRestore();
  }
}
