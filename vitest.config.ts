import { join } from "node:path";
import { defineConfig, type TestProjectConfiguration } from "vitest/config";

const ownFile = (path: string) => join(import.meta.dirname, path);

const project = (name: string, include: readonly string[], exclude: readonly string[] = []) =>
  ({
    extends: true,
    test: { name, include: [...include], exclude: [...exclude] },
  }) satisfies TestProjectConfiguration;

export default defineConfig({
  test: {
    reporters: [ownFile("test/support/reporter.ts")],
    pool: "forks",
    maxWorkers: 3,
    execArgv: [
      // The tests of memory collect what nobody refers to.
      "--expose-gc",
      "--disable-warning=ExperimentalWarning",
      // A worker ends with the test run that started it, also when that is killed.
      "--require",
      ownFile("scripts/follow-caller.mjs"),
    ],
    testTimeout: 120_000,
    hookTimeout: 120_000,
    projects: [
      project("unit", ["src/**/*.test.ts", "test/{cli,client,dialects,spec,support}/**/*.test.ts"]),
      project("contract", ["test/{contract,stores}/**/*.test.ts"]),
      project("matrix", ["test/matrix/**/*.test.ts"]),
      project("faults", ["test/faults/**/*.test.ts"]),
      project("clients", ["test/{clients,chains}/**/*.test.ts"], ["test/clients/browser.test.ts"]),
      project("browser", ["test/clients/browser.test.ts"]),
    ],
  },
});
