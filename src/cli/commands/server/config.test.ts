import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, onTestFinished, vi } from "vitest";
import { temporaryDirectory } from "../../../../test/support/directory.ts";
import { type Environment, UsageError } from "../../../config/option-spec.ts";
import { configurationSchema } from "../../../config/schema.ts";
import { runProgram } from "../../program.ts";

/** Runs `lance-gateway config` and returns its exit code and what it printed. */
async function config(args: readonly string[], environment: Environment = {}) {
  const printed = { stdout: "", stderr: "" };
  const spies = (["stdout", "stderr"] as const).map((name) =>
    vi.spyOn(process[name], "write").mockImplementation((text) => {
      printed[name] += String(text);
      return true;
    }),
  );
  try {
    return { code: await runProgram(["config", ...args], environment), ...printed };
  } finally {
    for (const spy of spies) spy.mockRestore();
  }
}

async function fileWith(text: string): Promise<string> {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const file = join(path, "gateway.yaml");
  await writeFile(file, text);
  return file;
}

const WRONG = `
prot: 1
port: many
databases:
  sales: { root: /sales, max-uplaod-size: 1MiB, max-open-tables: -1 }
  lake: { uri: http://lake }
  b c: { root: x }
routes: [{ by: magic }]
`;

const LINKED = "LANCE_GATEWAY_PORT has the address of a Kubernetes Service, and no effect";

describe("lance-gateway config", () => {
  it("prints every mistake of a file with its place, once, and ends with code 2", async () => {
    const file = await fileWith(WRONG);
    const { code, stdout, stderr } = await config(["check", file, "--max-connections", "0"]);
    assert.deepEqual([code, stdout], [2, ""]);
    assert.deepEqual(
      stderr
        .trimEnd()
        .split("\n")
        .map((line) => line.replace("lance-gateway: ", "").replace(`${file}: `, "")),
      [
        "prot is unknown; did you mean port?",
        "databases.sales.max-uplaod-size is unknown; did you mean max-upload-size?",
        'databases.b c must be a name of letters, digits, "_", "-", "." and "/", and no part of dots alone',
        'port must be an integer from 0 to 65535, not "many"',
        '--max-connections must be an integer from 1 to 1000000, not "0"',
        'databases.sales.max-open-tables must be an integer from 1 to 1000000, not "-1"',
        "routes[0].by must be one of header, host, namespace, path",
      ],
    );
    const { mistakes, valid } = JSON.parse((await config(["check", file, "--json"])).stdout);
    assert.deepEqual([mistakes.length, valid], [6, false]);
  });

  it("finds broken YAML and a file that is missing", async () => {
    const file = await fileWith("port: {\n");
    assert.match((await config(["check", "--config", file])).stderr, /gateway\.yaml: .* at line/);
    assert.match((await config(["check", "/missing.yaml"])).stderr, /missing\.yaml cannot be read: ENOENT/);
  });

  it("finds options that contradict each other, and files that cannot be used", async () => {
    const check = async (...args: readonly string[]) => (await config(["check", ...args])).stderr;
    assert.match(await check("--host", "0.0.0.0", "--tls-cert", "x"), /use --auth.*\n.*both --tls-cert and/);
    assert.match(await check("--auth", "api-key", "--api-keys-file", "/missing"), /api-keys-file.*ENOENT/);
    assert.match(await check("--policy-dir", "/missing"), /--policy-dir requires --auth/);
    assert.match(await check("--metrics-on", "admin"), /requires --admin-port or --admin-listen/);
    assert.match(await check("--admin-port", "1", "--admin-listen", "unix:/x"), /contradict each other/);
    const file = await fileWith("databases: { a: { uri: http://a, upstream-identity: service } }");
    assert.match(await check(file), /database a: .*--upstream-token/);
    const ray = ["--job-engine", "ray", "--ray-address", "http://head:8265"];
    assert.match(await check(...ray, "--ray-token-file", "/missing"), /ray-token-file \/missing .*ENOENT/);
    assert.match(await check(...ray, "--port", "0"), /--port 0 with --job-engine ray requires/);
    const cluster = await fileWith("databases: { b: { root: /b, job-engine: ray } }");
    assert.match(await check(cluster), /database b: .*--ray-address/);
  });

  it("accepts what is right, and mentions variables that look misspelled", async () => {
    assert.deepEqual(await config(["check"]), {
      code: 0,
      stdout: "the configuration is valid\n",
      stderr: "",
    });
    const environment = { LANCE_GATEWAY_PROT: "1", LANCE_GATEWAY_SERVICE_HOST: "10.0.0.1" };
    const { code, stderr } = await config(["check"], environment);
    assert.equal(code, 0);
    assert.match(stderr, /^lance-gateway: LANCE_GATEWAY_PROT is unknown .*LANCE_GATEWAY_PORT\?\n$/);
    const linked = await config(["check"], {
      LANCE_GATEWAY_PORT: "tcp://10.0.0.1:80",
      LANCE_GATEWAY_SERVICE_PORT: "80",
      LANCE_GATEWAY_PORT_80_TCP_PORT: "80",
    });
    assert.deepEqual([linked.code, linked.stderr], [0, `lance-gateway: ${LINKED}\n`]);
  });

  it("prints the effective configuration for people and for programs", async () => {
    const file = await fileWith("port: 80\nupstream-token: marked-1\nuri: http://up\n");
    const { stdout } = await config(["print", file, "--host", "::1"]);
    assert.match(stdout, /^host +::1 +--host$/m);
    assert.match(stdout, /^port +80 +.*gateway\.yaml: port$/m);
    assert.match(stdout, /^log-level +info +default$/m);
    assert.doesNotMatch(stdout, /marked/);
    const shown = JSON.parse((await config(["print", "--json", file])).stdout);
    assert.equal(shown.options.port.value, 80);
    await assert.rejects(config(["print", await fileWith("port: x")]), UsageError);
  });

  it("prints the schema, and refuses other actions", async () => {
    assert.deepEqual(JSON.parse((await config(["schema"])).stdout), configurationSchema());
    await assert.rejects(config(["print-all"]), { message: "config does one of check, print, schema" });
  });
});
