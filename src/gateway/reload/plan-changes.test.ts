import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import type { Configuration } from "../../config/configuration.ts";
import { readServeOptions } from "../../config/serve-options.ts";
import { keepsBackend, planChanges } from "./plan-changes.ts";

const optionsOf = (...args: readonly string[]) => readServeOptions(sourcesOf(args));
const single = (...args: readonly string[]): Configuration => ({ options: optionsOf(...args) });

function several(byName: Readonly<Record<string, readonly string[]>>, fallback?: string): Configuration {
  const entries = Object.entries(byName).map(([name, args]) => [name, optionsOf(...args)] as const);
  const routes = [{ by: "path" }] as const;
  return {
    options: optionsOf(),
    databases: { byName: new Map(entries), routes, pathPrefix: "/db", fallback },
  };
}

describe("planChanges", () => {
  it("finds nothing where nothing differs", () => {
    const args = ["--rate-limit", "total=5", "--header", "a=b", "--uri", "http://a"];
    const { applied, pending } = planChanges(single(...args), single(...args));
    assert.deepEqual([applied, pending], [[], []]);
  });

  it("keeps the values of options that need a restart, and names them", () => {
    const before = single("--port", "1", "--log-level", "warn");
    const { configuration, applied, pending } = planChanges(
      before,
      single("--port", "2", "--log-level", "error", "--workers", "3", "--max-calls-per-principal", "4"),
    );
    assert.deepEqual(applied, ["log-level", "max-calls-per-principal"]);
    assert.deepEqual(pending, ["port", "workers"]);
    const { port, workers, logLevel, maxCallerCalls } = configuration.options;
    assert.deepEqual([port, workers, logLevel, maxCallerCalls], [1, 1, "error", 4]);
  });

  it("applies every option of an only database", () => {
    const { applied, pending } = planChanges(
      single("--root", "a"),
      single("--root", "b", "--table-upkeep", "off"),
    );
    assert.deepEqual([applied, pending], [["root", "table-upkeep"], []]);
  });

  it("opens the backend of a database again that is for reading only from now on, or no longer", () => {
    const [before, after] = [single("--root", "a"), single("--root", "a", "--read-only")];
    assert.deepEqual(planChanges(before, after).applied, ["read-only"]);
    assert.deepEqual([keepsBackend(before, after, ""), keepsBackend(after, before, "")], [false, false]);
  });

  it("takes a change of a file of certificates or credentials for one of its option", () => {
    const vended = (digest: string): Configuration => ({
      ...single("--root", "s3://b", "--vend", "static", "--vend-file", "vend.yaml"),
      contents: new Map([["vend.yaml", digest]]),
    });
    assert.deepEqual(planChanges(vended("1"), vended("2")).applied, ["vend-file"]);
    const upstream = ["--uri", "https://a", "--upstream-ca", "ca.pem"];
    const opa = ["--auth", "mtls", "--opa-url", "https://o", "--opa-ca-file", "opa.pem"];
    const withFiles = (contents: Readonly<Record<string, string>>): Configuration => ({
      ...single(...upstream, ...opa),
      contents: new Map(Object.entries(contents)),
    });
    const before = withFiles({ "ca.pem": "1", "opa.pem": "1" });
    const same = withFiles({ "ca.pem": "1", "opa.pem": "1" });
    const after = withFiles({ "ca.pem": "2", "opa.pem": "2" });
    assert.deepEqual(planChanges(before, same).applied, []);
    const { applied, configuration } = planChanges(before, after);
    assert.deepEqual(applied, ["opa-ca-file", "upstream-ca"]);
    assert.deepEqual([keepsBackend(before, same, ""), keepsBackend(before, after, "")], [true, false]);
    assert.deepEqual(planChanges(configuration, after).applied, []);
  });

  it("names databases that come, go and change, and what chooses them", () => {
    const before = several({ a: ["--root", "a"], b: ["--root", "b"], same: ["--root", "s"] });
    const after = several({ b: ["--root", "c"], same: ["--root", "s"], d: ["--root", "d"] }, "d");
    const { applied, pending, configuration } = planChanges(before, after);
    assert.deepEqual(applied, [
      "databases.a (removed)",
      "databases.b.root",
      "databases.d (added)",
      "default-database",
    ]);
    assert.deepEqual([pending, configuration.databases], [[], after.databases]);
  });

  it("does not turn an only database into several", () => {
    const before = single("--root", "a");
    const { pending, configuration } = planChanges(before, several({ a: ["--root", "a"] }));
    assert.deepEqual(pending, ["databases"]);
    assert.deepEqual([configuration.options.root, configuration.databases], ["a", undefined]);
  });
});
