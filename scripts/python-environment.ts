import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";

const checkout = join(import.meta.dirname, "..");

/** Environments, each with its folder below `.cache`, and the folder below `test` that has its requirements. */
const ENVIRONMENTS = {
  clients: ["python", "clients/python"],
  engines: ["engines-python", "engines/python"],
  ray: ["ray-python", "engines/ray"],
  moto: ["moto", "clients/moto"],
  catalogs: ["catalogs-python", "clients/catalogs"],
  deploy: ["deploy-python", "clients/deploy"],
} as const;

interface Environment {
  readonly environment: string;
  readonly python: string;
  /** The requirements that it was made with. */
  readonly stamp: string;
  readonly requirements: string;
  readonly isMade: boolean;
}

function describeEnvironment(name: keyof typeof ENVIRONMENTS): Environment {
  const [folder, source] = ENVIRONMENTS[name];
  const environment = join(checkout, ".cache", folder);
  const requirements = join(checkout, "test", source, "requirements.txt");
  const stamp = join(environment, "requirements.txt");
  const isMade = existsSync(stamp) && readFileSync(stamp, "utf8") === readFileSync(requirements, "utf8");
  return { environment, python: join(environment, "bin", "python"), stamp, requirements, isMade };
}

/** Whether an environment is there with the packages that are required now. */
export function isEnvironmentMade(name: keyof typeof ENVIRONMENTS): boolean {
  return describeEnvironment(name).isMade;
}

/**
 * The interpreter of an environment with pinned Python packages, which is made the first time and again
 * whenever the requirements change.
 *
 * @param name the folder of the tests that use it. Default: the clients'
 */
export function pythonInterpreter(name: keyof typeof ENVIRONMENTS = "clients"): string {
  const { environment, python, stamp, requirements, isMade } = describeEnvironment(name);
  if (isMade) return python;
  mkdirSync(environment, { recursive: true });
  try {
    execFileSync("python3", ["-m", "venv", "--clear", environment], { stdio: "inherit" });
  } catch (cause) {
    throw new Error("these tests need Python 3.11 or newer with its venv module", { cause });
  }
  execFileSync(python, ["-m", "pip", "install", "--quiet", "-r", requirements], { stdio: "inherit" });
  writeFileSync(stamp, readFileSync(requirements, "utf8"));
  return python;
}
