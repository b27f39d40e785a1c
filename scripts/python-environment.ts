import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const checkout = join(import.meta.dirname, "..");
const environment = join(checkout, ".cache", "python");
const requirements = join(checkout, "test", "clients", "python", "requirements.txt");

/**
 * The interpreter of an environment with the pinned Python clients, which is made the first time and again
 * whenever the requirements change.
 */
export function pythonInterpreter(): string {
  const python = join(environment, "bin", "python");
  const stamp = join(environment, "requirements.txt");
  const wanted = readFileSync(requirements, "utf8");
  if (existsSync(stamp) && readFileSync(stamp, "utf8") === wanted) return python;
  mkdirSync(environment, { recursive: true });
  try {
    execFileSync("python3", ["-m", "venv", "--clear", environment], { stdio: "inherit" });
  } catch (cause) {
    throw new Error("the Python clients need Python 3.11 or newer with its venv module", { cause });
  }
  execFileSync(python, ["-m", "pip", "install", "--quiet", "-r", requirements], { stdio: "inherit" });
  writeFileSync(stamp, wanted);
  return python;
}
