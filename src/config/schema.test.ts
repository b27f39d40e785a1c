import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import fastify from "fastify";
import { describe, it } from "vitest";
import { parse } from "yaml";
import { configurationSchema } from "./schema.ts";

/** Returns a function that tells what the schema has against a file; undefined if nothing. */
async function validator(): Promise<(text: string) => Promise<string | undefined>> {
  const ajv = {
    customOptions: { removeAdditional: false, coerceTypes: false, useDefaults: false, strict: false },
  } as const;
  const app = fastify({ ajv });
  app.post("/", { schema: { body: configurationSchema() } }, async () => "");
  return async (text) => {
    const { statusCode, body } = await app.inject({ method: "POST", url: "/", payload: parse(text) });
    return statusCode === 200 ? undefined : body;
  };
}

describe("the schema of the configuration file", () => {
  it("accepts the example, and every form that the gateway reads", async () => {
    const against = await validator();
    const example = readFileSync(join(import.meta.dirname, "../../examples/gateway.yaml"), "utf8");
    for (const text of [
      example,
      "port: 80\nlog-level: debug\nread-only: true\nmax-upload-size: 65536\nkeep-alive: 5s",
      `port: "\${PORT}"\nlog-level: "\${LEVEL}"\nread-only: "\${READ_ONLY}"`,
      "header: { a: b }",
      "header: [a=b]\ncors-origin: '*'",
      "oidc-issuer: [https://a.example, { issuer: https://b.example, audience: x }]",
      "databases: { team/events: { root: x } }\nroutes: [{ by: host, hosts: { a: b } }]\ndefault-database: a",
    ]) {
      assert.equal(await against(text), undefined, text);
    }
  });

  it("refuses unknown keys, wrong numbers and words, and options of the server in a database", async () => {
    const against = await validator();
    for (const text of [
      "prot: 1",
      "port: 65536",
      "port: many",
      "log-level: loud",
      "read-only: perhaps",
      "config: x.yaml",
      "databases: { a: { port: 1 } }",
      "databases: {}",
      "routes: [{ by: magic }]",
    ]) {
      assert.notEqual(await against(text), undefined, text);
    }
  });
});
