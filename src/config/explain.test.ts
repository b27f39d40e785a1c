import assert from "node:assert/strict";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { describe, it, onTestFinished } from "vitest";
import { sourcesOf } from "../../test/support/command-line.ts";
import { temporaryDirectory } from "../../test/support/directory.ts";
import { redactText } from "../observability/log/redact.ts";
import { readSources } from "./configuration.ts";
import { explain } from "./explain.ts";
import type { Environment } from "./option-spec.ts";

async function explained(text: string, args: readonly string[] = [], environment: Environment = {}) {
  const { path, remove } = await temporaryDirectory();
  onTestFinished(remove);
  const file = join(path, "gateway.yaml");
  await writeFile(file, text);
  await writeFile(join(path, "token"), "marked-token");
  const given = sourcesOf(["--config", file, ...args.map((arg) => arg.replace("DIR", path))], environment);
  return { shown: explain(await readSources(given, environment), redactText), path };
}

describe("explain", () => {
  it("shows what is in effect, and where each value comes from", async () => {
    const environment = { LANCE_GATEWAY_HOST: "::1", LANCE_GATEWAY_LOG_LEVEL: "warn" };
    const text = "host: a.example\nlog-level: error\nmanaged-versioning: true\nworkers: auto\n";
    const { shown, path } = await explained(text, ["--log-level", "debug"], environment);
    const { options } = shown;
    const file = `${path}/gateway.yaml: `;
    assert.deepEqual(options["log-level"], { value: "debug", from: "flag", at: "--log-level" });
    assert.deepEqual(options["host"], { value: "::1", from: "environment", at: "LANCE_GATEWAY_HOST" });
    assert.deepEqual(options["managed-versioning"], {
      value: true,
      from: "file",
      at: `${file}managed-versioning`,
    });
    assert.deepEqual(options["workers"], { value: "auto", from: "file", at: `${file}workers` });
    assert.deepEqual(options["port"], { value: 2333, from: "default" });
    assert.deepEqual(
      [options["upstream-retries"], options["audit-log"], shown.databases],
      [undefined, undefined, undefined],
    );
  });

  it("shows the backend that follows from a place, and which place it is", async () => {
    const { shown } = await explained("root: /tables\n", ["--uri", "http://lake"]);
    assert.deepEqual(shown.options["backend"], { value: "rest", from: "flag", at: "--uri" });
    const { shown: plain } = await explained("host: a.example\n");
    assert.deepEqual(plain.options["backend"], { value: "dir", from: "default" });
  });

  it("shows databases with what they inherit, and the routes", async () => {
    const { shown } = await explained(`
max-upload-size: 1MiB
databases: { sales: { root: /sales }, lake: { uri: "http://lake", max-upload-size: 2MiB } }
default-database: lake
routes: [{ by: path }]
`);
    const { sales, lake } = shown.databases ?? {};
    assert.match(sales?.["max-upload-size"]?.at ?? "", /yaml: max-upload-size$/);
    assert.match(lake?.["max-upload-size"]?.at ?? "", /yaml: databases\.lake\.max-upload-size$/);
    assert.deepEqual([sales?.["uri"], lake?.["root"], sales?.["port"]], [undefined, undefined, undefined]);
    assert.deepEqual([shown.routes, shown["default-database"]], [[{ by: "path" }], "lake"]);
  });

  it("shows no secret, wherever it comes from", async () => {
    const text = `
webhook-url: ["https://hooks.example.com/services/marked?token=marked"]
page-token-secret: \${MARKED}
databases:
  a: { root: "s3://b/x", storage-option: { aws_region: eu, aws_secret_access_key: marked } }
  b: { uri: "http://marked:marked@up", header: { authorization: Bearer marked }, upstream-token-file: DIR/token }
  c: { backend: ./x.ts, backend-option: { dsn: "postgres://u:marked@h" } }
`;
    const { path, remove } = await temporaryDirectory();
    onTestFinished(remove);
    await writeFile(join(path, "token"), "marked-token");
    const environment = { MARKED: "marked".repeat(6) };
    const { shown } = await explained(text.replace("DIR", path), [], environment);
    assert.doesNotMatch(JSON.stringify(shown), /marked/);
    assert.deepEqual(shown.databases?.["a"]?.["storage-option"]?.value, [
      "aws_region=eu",
      "aws_secret_access_key=***",
    ]);
    assert.equal(shown.databases?.["b"]?.["upstream-token"]?.value, "***");
    assert.deepEqual(shown.options["webhook-url"]?.value, ["https://hooks.example.com/***"]);
  });
});
