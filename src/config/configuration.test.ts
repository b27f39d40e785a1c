import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, it } from "vitest";
import { sourcesOf } from "../../test/support/command-line.ts";
import { readConfiguration } from "./configuration.ts";
import { type Environment, UsageError } from "./option-spec.ts";

const configured = (args: readonly string[], environment: Environment) =>
  readConfiguration(sourcesOf(args, environment), environment);

describe("readConfiguration", () => {
  let directory: string;
  beforeAll(async () => {
    directory = await mkdtemp(join(tmpdir(), "lance-gateway-"));
  });
  afterAll(() => rm(directory, { recursive: true }));

  async function read(text: string, args: string[] = [], environment: Record<string, string> = {}) {
    const file = join(directory, "gateway.yaml");
    await writeFile(file, text);
    return configured(["--config", file, ...args], environment);
  }

  /** Checks that a file is refused with a single line that begins with the file's name and matches a pattern. */
  async function refused(text: string, pattern: RegExp, environment: Record<string, string> = {}) {
    await assert.rejects(read(text, [], environment), (error) => {
      assert.ok(error instanceof UsageError, String(error));
      assert.match(error.message, pattern);
      assert.match(error.message, /gateway\.yaml/);
      assert.doesNotMatch(error.message, /\n/);
      return true;
    });
  }

  it("reads options without a file", async () => {
    const { options, databases } = await configured([], {});
    assert.deepEqual([options.port, options.backend, databases], [2333, "dir", undefined]);
  });

  it("gives flags precedence over variables, the file and defaults, in this order", async () => {
    const text = "port: 1\nhost: from.file\nlog-level: warn\nmanaged-versioning: true\n";
    const { options } = await read(text, ["--port", "3"], {
      LANCE_GATEWAY_PORT: "2",
      LANCE_GATEWAY_HOST: "from.environment",
    });
    assert.deepEqual([options.port, options.host, options.logLevel], [3, "from.environment", "warn"]);
    assert.deepEqual([options.managedVersioning, options.maxUploadBytes], [true, 2 ** 30]);
  });

  it("reads a file in JSON, an empty file, and a file that the environment names", async () => {
    assert.equal((await read('{"port": 7}')).options.port, 7);
    assert.equal((await read("")).options.port, 2333);
    const file = join(directory, "gateway.yaml");
    await writeFile(file, "port: 8");
    assert.equal((await configured([], { LANCE_GATEWAY_CONFIG: file })).options.port, 8);
  });

  it("reads repeatable options from flags, commas, lists and maps", async () => {
    const pairs = [
      ["a", "1"],
      ["b", "x=y"],
    ];
    const args = ["--uri", "http://127.0.0.1:1", "--header", "A=1", "--header", "b=x=y"];
    assert.deepEqual((await configured(args, {})).options.headers, pairs);
    const environment = { LANCE_GATEWAY_HEADER: "A=1, b=x=y" };
    assert.deepEqual((await configured([], environment)).options.headers, pairs);
    assert.deepEqual((await read("header: [A=1, b=x=y]")).options.headers, pairs);
    assert.deepEqual((await read("header: { A: 1, b: x=y }")).options.headers, pairs);
    assert.deepEqual((await read("address: one:1")).options.addresses, ["one:1"]);
  });

  it("expands variables, and shows no secret in an error", async () => {
    const environment = { SECRET: "s3cr3t", NAME: "x" };
    const { options } = await read(`header: { k: 'a-\${SECRET}-$\${NAME}' }`, [], environment);
    assert.deepEqual(options.headers, [["k", `a-s3cr3t-\${NAME}`]]);
    await refused(`port: \${SECRET}`, /port must be an integer .*"\$\{SECRET\}"/, environment);
    await refused(`host: \${MISSING}`, /host needs the environment variable "MISSING"/);
  });

  it("refuses a variable whose name does not end, instead of taking it for the text", async () => {
    const unclosed = /: header has a \$\{ without a }; \$\$\{ is a literal \$\{$/;
    for (const text of ["${SECRET", "a-$${NAME}-${SECRET", "${"])
      await refused(`header: { k: '${text}' }`, unclosed, { SECRET: "s3cr3t" });
    const { options } = await read("header: { k: '$${SECRET $5' }");
    assert.deepEqual(options.headers, [["k", "${SECRET $5"]]);
  });

  const DATABASES = `
max-upload-size: 1MiB
databases:
  sales: { root: /sales, max-upload-size: 2MiB }
  team/events: { backend: grpc, address: [a:1, b:2], header: { x-tenant: blue }, max-concurrent-calls: 4 }
  lake: { backend: rest, uri: "http://lake" }
`;

  it("lets the options of a database override those at the top", async () => {
    const { databases } = await read(DATABASES, ["--log-level", "error"]);
    assert.ok(databases);
    const { byName, routes, pathPrefix, fallback } = databases;
    assert.deepEqual([...byName.keys()], ["sales", "team/events", "lake"]);
    const [sales, events, lake] = [...byName.values()];
    assert.deepEqual([sales?.root, sales?.maxUploadBytes, sales?.logLevel], ["/sales", 2 ** 21, "error"]);
    assert.deepEqual([events?.addresses, events?.maxUploadBytes], [["a:1", "b:2"], 2 ** 20]);
    assert.deepEqual([events?.headers, events?.maxConcurrentCalls], [[["x-tenant", "blue"]], 4]);
    assert.deepEqual([lake?.uris, lake?.headers, lake?.maxConcurrentCalls], [["http://lake"], [], undefined]);
    assert.deepEqual([routes, pathPrefix, fallback], [[{ by: "header" }, { by: "path" }], "/db", undefined]);
  });

  it("reads routes and the database of calls that do not name one", async () => {
    const { databases } = await read(`${DATABASES}
default-database: lake
routes:
  - { by: path, prefix: /catalogs/by-name }
  - by: host
    hosts: { "*.sales.example.com": sales }
`);
    assert.deepEqual(databases?.routes, [
      { by: "path" },
      { by: "host", hosts: { "*.sales.example.com": "sales" } },
    ]);
    assert.deepEqual([databases?.pathPrefix, databases?.fallback], ["/catalogs/by-name", "lake"]);
  });

  const RAY = "job-engine: ray\nray-address: [http://head:8265]";
  const BOTH = "databases: { sales: { root: /sales }, team/events: { root: /events } }";
  it.each([
    ["port: 2400", ["http://127.0.0.1:2400/db/sales", "http://127.0.0.1:2400/db/team%2Fevents"]],
    ["ray-gateway-url: https://gateway/", ["https://gateway/db/sales", "https://gateway/db/team%2Fevents"]],
    [
      "ray-gateway-url: http://gateway:1/x\nroutes: [{ by: path, prefix: /all }]",
      ["http://gateway:1/x/all/sales", "http://gateway:1/x/all/team%2Fevents"],
    ],
  ] as const)("gives drivers the path of their database with %s", async (more, addresses) => {
    const { databases } = await read([RAY, BOTH, more].join("\n"));
    const found = [...(databases?.byName.values() ?? [])].map(({ rayGatewayUrl }) => rayGatewayUrl);
    assert.deepEqual(found, addresses);
  });

  it("leaves the address that a database has for itself, and refuses one that no path leads to", async () => {
    const own = "databases: { sales: { root: /sales, ray-gateway-url: http://sales }, events: { root: /e } }";
    const { databases } = await read(`${RAY}\n${own}\ndefault-database: events\nroutes: [{ by: header }]`);
    const found = [...(databases?.byName.values() ?? [])].map(({ rayGatewayUrl }) => rayGatewayUrl);
    assert.deepEqual(found, ["http://sales", undefined]);
    const missing = /databases\.events\.ray-gateway-url is missing: .* no route is by path$/;
    await refused(`${RAY}\n${own}\nroutes: [{ by: header }]`, missing);
    await refused(`${RAY}\n${own}\nroutes: [{ by: host, hosts: { a: events } }]`, missing);
  });

  const MISTAKES: Readonly<Record<string, RegExp>> = {
    "port: [1]": /: port must be a single value, not a list$/,
    "port: many": /: port must be an integer from 0 to 65535, not "many"$/,
    "prot: 1": /: prot is unknown; did you mean port\?$/,
    "nonsense: 1": /: nonsense is unknown$/,
    "config: x.yaml": /: config is unknown/,
    "- port": /must have keys and values/,
    "port: 1\nport: 2": /unique.* at line 2/,
    "port: {": /at line 1/,
    "databases: {}": /: databases must name at least one/,
    "databases: [a]": /: databases must be a map/,
    "databases: { a: 1 }": /: databases\.a must be a map/,
    "databases: { a: {} }": /: databases\.a\.root is missing$/,
    "databases: { a b: { root: x } }": /: databases\.a b must be a name/,
    "databases: { a/..: { root: x } }": /: databases\.a\/\.\. must be a name .*no part of dots alone$/,
    "databases: { a: { backend: s3, root: x } }":
      /: databases\.a\.root is for the backend dir, and the backend is s3$/,
    "databases: { a: { backend: s3, roots: x } }":
      /: databases\.a\.roots is unknown; there are backend, backend-option,/,
    "databases: { a: { root: x, max-uplaod-size: 1 } }":
      /: databases\.a\.max-uplaod-size is unknown; did you mean max-upload-size\?$/,
    "databases: { a: { root: x, uri: y } }":
      /: databases\.a\.root and .*: databases\.a\.uri contradict each other$/,
    "databases: { a: { uri: 'http://a', managed-versioning: true } }":
      /: databases\.a\.managed-versioning is for the backend dir, and the backend is rest$/,
    "{ uri: 'http://a', managed-versioning: true }":
      /: managed-versioning is for the backend dir, and the backend is rest$/,
    "databases: { a: { root: x, port: 1 } }":
      /: databases\.a\.port applies to the whole server; it belongs at the top of the file$/,
    "databases: { a: { root: x, max-upload-size: 0 } }": /: databases\.a\.max-upload-size must be a size/,
    "databases: { a: { backend: rest } }": /: databases\.a\.uri is missing$/,
    "databases: { a: { backend: grpc, root: x, address: a:1 } }":
      /: databases\.a\.root is for the backend dir/,
    "root: x\ndatabases: { a: { root: x } }": /: root has no meaning beside databases/,
    "routes: [{ by: path }]": /: routes requires databases/,
    "databases: { a: { root: x } }\ndefault-database: b": /: default-database must be one of a, not "b"$/,
    "databases: { a: { root: x } }\nroutes: { by: path }": /: routes must be a list$/,
    "databases: { a: { root: x } }\nroutes: [{ by: magic }]": /: routes\[0\]\.by must be one of header, host/,
    "databases: { a: { root: x } }\nroutes: [{ by: header, x: 1 }]": /: routes\[0\]\.x is unknown/,
    "databases: { a: { root: x } }\nroutes: [{ by: path, prefix: /v1 }]":
      /: routes\[0\]\.prefix must be a path/,
    "databases: { a: { root: x } }\nroutes: [{ by: path, prefix: /db/.. }]":
      /: routes\[0\]\.prefix must be a path/,
    "databases: { a: { root: x } }\nroutes: [{ by: path, prefix: db }]":
      /: routes\[0\]\.prefix must be a path/,
    "databases: { a: { root: x } }\nroutes: [{ by: path }, { by: path }]": /: routes must differ/,
    "databases: { a: { root: x } }\nroutes: [{ by: host }]": /: routes\[0\]\.hosts is missing/,
    "databases: { a: { root: x } }\nroutes: [{ by: host, hosts: { h: b } }]": /hosts\.h must be one of a/,
    "databases: { a: { root: x } }\nroutes: [{ by: host, hosts: { 'H:1': a } }]": /hosts\.H:1 must be a host/,
    "databases: { a: { root: x } }\ndefault-database: a\nroutes: [{ by: namespace }]":
      /: default-database has no/,
  };
  for (const [text, pattern] of Object.entries(MISTAKES)) {
    it(`refuses ${JSON.stringify(text)}`, () => refused(text, pattern));
  }

  it("reads the example", async () => {
    const example = join(import.meta.dirname, "../../examples/gateway.yaml");
    const { databases } = await configured(["--config", example], { RESEARCH_API_KEY: "k" });
    assert.deepEqual([...(databases?.byName.keys() ?? [])], ["sales", "events", "research/images"]);
  });

  it("does not show an invalid secret", async () => {
    await assert.rejects(configured(["--header", "s3cr3t"], {}), {
      message: "--header must be a header such as X-Tenant=blue",
    });
  });

  it("refuses a missing file", async () => {
    const missing = join(directory, "missing.yaml");
    await assert.rejects(configured(["--config", missing], {}), /missing\.yaml cannot be read: ENOENT/);
  });

  it("refuses a flag that names the place of the data when the file has databases", async () => {
    await assert.rejects(read(DATABASES, ["--root", "x"]), { message: /^--root has no meaning beside/ });
  });
});
