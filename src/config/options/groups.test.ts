import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { sourcesOf } from "../../../test/support/command-line.ts";
import { type Environment, UsageError } from "../option-spec.ts";
import { parseSize } from "../parsers.ts";
import { readServeOptions } from "../serve-options.ts";

const read = (args: readonly string[], environment: Environment = {}) =>
  readServeOptions(sourcesOf(args, environment));

const refused = (pattern: RegExp) => (error: unknown) =>
  error instanceof UsageError && pattern.test(error.message) && !error.message.includes("\n");

describe("readServeOptions", () => {
  it("has the documented defaults", () => {
    const options = read([], {});
    assert.equal(options.root, "./lance-data");
    assert.equal(options.host, "127.0.0.1");
    assert.equal(options.port, 2333);
    assert.equal(options.tableDirectory, undefined);
  });

  it("gives flags precedence over environment variables", () => {
    const environment = { LANCE_GATEWAY_PORT: "1", LANCE_GATEWAY_HOST: "::1" };
    const options = read(["--port", "2"], environment);
    assert.equal(options.port, 2);
    assert.equal(options.host, "::1");
  });

  it("reads a switch, whose flag takes no value", () => {
    assert.equal(read([], {}).managedVersioning, false);
    assert.equal(read(["--managed-versioning"], {}).managedVersioning, true);
    const variable = "LANCE_GATEWAY_MANAGED_VERSIONING";
    assert.equal(read([], { [variable]: "true" }).managedVersioning, true);
    assert.throws(() => read([], { [variable]: "1" }), refused(/must be one of true, false/));
  });

  it("lets a flag switch off what a variable has switched on", () => {
    const environment = { LANCE_GATEWAY_MANAGED_VERSIONING: "true", LANCE_GATEWAY_NO_METRICS: "true" };
    const options = read(["--no-managed-versioning", "--metrics"], environment);
    assert.deepEqual([options.managedVersioning, options.noMetrics], [false, false]);
    assert.equal(read(["--no-metrics"]).noMetrics, true);
    assert.equal(read([], environment).noMetrics, true);
  });

  it("names the invalid flag or variable in one line", () => {
    assert.throws(() => read(["--port", "x"], {}), refused(/^--port must be an integer .*"x"/));
    assert.throws(
      () => read(["--workers", "0"], {}),
      refused(/^--workers must be auto or an integer from 1 to 256, not "0"/),
    );
    assert.throws(
      () => read([], { LANCE_GATEWAY_LOG_LEVEL: "loud" }),
      refused(/^LANCE_GATEWAY_LOG_LEVEL must be one of/),
    );
  });
});

describe("the place of the data", () => {
  it.each([
    [
      "--root",
      "s3:/bucket/prefix",
      /^--root must be a path, or a URI such as s3:\/\/bucket\/prefix, not "s3:\/b/,
    ],
    ["--root", "s4://bucket", /^--root must be a path/],
    ["--uri", "catalog:2333", /^--uri must be an address of a REST API/],
    ["--uri", "ftp://catalog", /^--uri must be an address of a REST API/],
    ["--address", "http://catalog:2333", /^--address must be a host and a port/],
  ])("is refused as %s %s", (flag, text, message) => {
    assert.throws(() => read([flag, text]), refused(message));
  });

  it("may be an address of a resolver of gRPC", () => {
    const addresses = [
      "catalog:2333",
      "catalog",
      "dns:///catalog:2333",
      "unix:/run/catalog.sock",
      "[::1]:2333",
    ];
    assert.deepEqual(read(addresses.flatMap((each) => ["--address", each])).addresses, addresses);
  });
});

describe("the kind of the backend", () => {
  it("follows from the place that the first source names", () => {
    const uri = { LANCE_GATEWAY_URI: "http://a" };
    assert.equal(read(["--uri", "http://a"], {}).backend, "rest");
    assert.equal(read(["--address", "a:1"], uri).backend, "grpc");
    assert.equal(read(["--root", "x"], { LANCE_GATEWAY_BACKEND: "rest", ...uri }).backend, "dir");
    assert.equal(read([], uri).backend, "rest");
    assert.equal(read([], {}).backend, "dir");
  });

  it("is contradicted by an option for another kind in the same source", () => {
    const cases: [readonly string[], RegExp][] = [
      [["--root", "x", "--uri", "http://a"], /^--root and --uri contradict each other$/],
      [
        ["--backend", "dir", "--uri", "http://a"],
        /^--uri is for the backend rest or glue or polaris or lakekeeper or unity, and the backend is dir$/,
      ],
      [["--uri", "http://a", "--managed-versioning"], /^--managed-versioning is for the backend dir/],
    ];
    for (const [args, pattern] of cases) assert.throws(() => read(args, {}), refused(pattern));
  });
});

describe("parseSize", () => {
  it("reads bytes and units", () => {
    assert.equal(parseSize("65536"), 65_536);
    assert.equal(parseSize("64KiB"), 65_536);
    assert.equal(parseSize("16 mib"), 16 * 2 ** 20);
    assert.equal(parseSize("1GiB"), 2 ** 30);
  });

  it("refuses everything except positive sizes", () => {
    for (const text of ["", "0", "-1", "1.5MiB", "1TB", "many", "99999999999GiB"]) {
      assert.throws(() => parseSize(text), UsageError, text);
    }
  });
});
