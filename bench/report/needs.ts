import { spawnSync } from "node:child_process";
import { existsSync, globSync, statSync } from "node:fs";
import { join } from "node:path";
import { isEnvironmentMade } from "../../scripts/python-environment.ts";
import { S3_SERVER } from "../../test/clients/support/store-servers.ts";
import type { Need, Suite } from "./suites.ts";

const CHECKOUT = join(import.meta.dirname, "..", "..");

interface Check {
  readonly isMet: () => boolean;
  /** How the user meets it. */
  readonly command: string;
}

const CHECKS: Readonly<Record<Need, Check>> = {
  python: {
    isMet: () => isEnvironmentMade("clients"),
    command: "node scripts/run.mjs scripts/environments.ts clients",
  },
  s3: { isMet: () => existsSync(S3_SERVER.program), command: S3_SERVER.command },
  h2load: {
    isMet: () => ["h2load", "chrt"].every((tool) => spawnSync(tool, ["--version"]).status === 0),
    command: "apt-get install nghttp2-client util-linux",
  },
  package: { isMet: isPackageBuilt, command: "npm run build" },
};

/** Whether the built package is at least as new as the sources of the gateway. */
function isPackageBuilt(): boolean {
  const built = join(CHECKOUT, "dist", "cli", "main.js");
  if (!existsSync(built)) return false;
  const sources = globSync("src/**/*.ts", { cwd: CHECKOUT, exclude: ["**/*.test.ts"] });
  const newest = Math.max(...sources.map((file) => statSync(join(CHECKOUT, file)).mtimeMs));
  return statSync(built).mtimeMs >= newest;
}

/** Something that is missing, the command that makes it, and the benchmarks that need it. */
export interface Missing {
  readonly need: Need;
  readonly command: string;
  readonly suites: readonly string[];
}

/** Returns what is missing for benchmarks on this machine. */
export function missingFor(suites: readonly Suite[]): Missing[] {
  const needs = [...new Set(suites.flatMap((suite) => suite.needs))];
  return needs
    .filter((need) => !CHECKS[need].isMet())
    .map((need) => {
      const names = suites.filter((suite) => suite.needs.includes(need)).map(({ name }) => name);
      return { need, command: CHECKS[need].command, suites: names };
    });
}
