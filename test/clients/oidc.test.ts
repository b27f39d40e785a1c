import assert from "node:assert/strict";
import { join } from "node:path";
import * as lancedb from "@lancedb/lancedb";
import type { JWK } from "jose";
import { pino } from "pino";
import { describe, type TestContext, test, vi } from "vitest";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { proveByTokens } from "../../src/auth/tokens/authenticate-by-token.ts";
import { createKeySet, fetchIssuerKeys } from "../../src/auth/tokens/key-set.ts";
import { trustedIssuer } from "../fixtures/auth/tokens.ts";
import { temporaryDirectory } from "../support/directory.ts";
import { startProgram } from "../support/program.ts";
import { startDirectoryServer } from "../support/server.ts";
import { newKey, startIssuer } from "./support/issuer.ts";

const CLIENT = { client_id: "etl", client_secret: "a secret of the test that is long enough" };
const SCOPES = "lance.read lance.write";

/** Configuration of an issuer that gives its client signed access tokens for the audience `lance`. */
const configurationWith = (keys: readonly JWK[]) => ({
  jwks: { keys },
  clients: [{ ...CLIENT, grant_types: ["client_credentials"], redirect_uris: [], response_types: [] }],
  scopes: SCOPES.split(" "),
  features: {
    devInteractions: { enabled: false },
    clientCredentials: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => "urn:lance",
      getResourceServerInfo: () => ({
        ...{ scope: SCOPES, audience: "lance", accessTokenFormat: "jwt", accessTokenTTL: 600 },
        jwt: { sign: { alg: "RS256" } },
      }),
    },
  },
});

/** Starts the issuer; a test shows its keys, and replaces them. */
async function startTokenIssuer(context: TestContext) {
  const { issuer, serve } = await startIssuer(context);
  return {
    issuer,
    show: (...keys: readonly JWK[]) => serve(configurationWith(keys)),
    async token(scope: string): Promise<string> {
      const { client_id, client_secret } = CLIENT;
      const answer = await fetch(`${issuer}/token`, {
        method: "POST",
        headers: {
          authorization: `Basic ${btoa(`${client_id}:${encodeURIComponent(client_secret)}`)}`,
          "content-type": "application/x-www-form-urlencoded",
        },
        body: new URLSearchParams({ grant_type: "client_credentials", scope }),
      });
      assert.equal(answer.status, 200, await answer.clone().text());
      return ((await answer.json()) as { access_token: string }).access_token;
    },
  };
}

async function statusOf(port: number, token: string): Promise<number> {
  const headers = { authorization: `Bearer ${token}` };
  const answer = await fetch(`http://127.0.0.1:${port}/v1/namespace/$/list`, { headers });
  await answer.arrayBuffer();
  return answer.status;
}

describe("tokens of oidc-provider", () => {
  test("are accepted without a gap while the issuer replaces its keys under load", async (context) => {
    const issuer = await startTokenIssuer(context);
    const keys = await Promise.all(["0", "1", "2", "3"].map(newKey));
    issuer.show(...keys.slice(0, 1));
    const source = { issuer: issuer.issuer, fetch: () => fetchIssuerKeys(issuer) };
    const times = { refreshMs: 100, cooldownMs: 0 };
    const verifier = {
      issuer: trustedIssuer({ issuer: issuer.issuer, grants: [{ role: "reader", to: { kind: "anyone" } }] }),
      keys: createKeySet({ ...source, ...times, log: pino({ level: "silent" }) }),
    };
    const authenticator = createAuthenticator([proveByTokens({ verifiers: [verifier] })], {
      failed: () => 0,
    });
    const gateway = await startDirectoryServer({}, { authenticator });
    context.onTestFinished(() => gateway.close());

    const first = await issuer.token("lance.read");
    let current = first;
    let isOver = false;
    const statuses = new Map<number, number>();
    const callers = Array.from({ length: 8 }, async () => {
      while (!isOver) {
        const status = await statusOf(gateway.port, current);
        statuses.set(status, (statuses.get(status) ?? 0) + 1);
      }
    });
    for (const [at, key] of keys.slice(1).entries()) {
      const served = statuses.get(200) ?? 0;
      // The old key stays until nobody uses a token that it has signed.
      issuer.show(key, keys[at] as JWK);
      current = await issuer.token("lance.read");
      await vi.waitFor(() => assert.ok((statuses.get(200) ?? 0) > served + 50), { timeout: 60_000 });
    }
    isOver = true;
    await Promise.all(callers);
    assert.deepEqual([...statuses.keys()], [200]);
    await vi.waitFor(async () => assert.equal(await statusOf(gateway.port, first), 401), { timeout: 60_000 });
    assert.equal(await statusOf(gateway.port, current), 200);
  });

  test("sign LanceDB's client in, at a gateway that started before its issuer", async (context) => {
    const issuer = await startTokenIssuer(context);
    const { path, remove } = await temporaryDirectory();
    const program = startProgram(
      ...["serve", "--port", "0", "--root", join(path, "root"), "--auth", "oidc"],
      ...["--oidc-issuer", issuer.issuer, "--oidc-audience", "lance"],
      ...["--grant", "reader=scope:lance.read", "--grant", "writer=scope:lance.write"],
    );
    context.onTestFinished(async () => {
      program.child.kill();
      await program.ended;
      await remove();
    });
    const port = await program.listening();
    issuer.show(await newKey("0"));
    const [reader, writer] = await Promise.all([issuer.token("lance.read"), issuer.token("lance.write")]);
    await vi.waitFor(async () => assert.equal(await statusOf(port, reader), 200), { timeout: 60_000 });

    const connect = (token: string) =>
      lancedb.connect({
        ...{ uri: "db://any", apiKey: "unused", hostOverride: `http://127.0.0.1:${port}` },
        clientConfig: { extraHeaders: { authorization: `Bearer ${token}` } },
      });
    await (await connect(writer)).createTable("people", [{ id: 1 }]);
    const db = await connect(reader);
    assert.equal(await (await db.openTable("people")).countRows(), 1);
    await assert.rejects(db.createTable("more", [{ id: 1 }]), /403 Forbidden/);
    assert.equal(await statusOf(port, `${reader.slice(0, -8)}AAAAAAAA`), 401);
  });
});
