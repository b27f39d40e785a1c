import assert from "node:assert/strict";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createAuthenticator } from "../../src/auth/authenticator.ts";
import { proveByTokens } from "../../src/auth/tokens/authenticate-by-token.ts";
import { type ErrorName, errorEntry } from "../../src/namespace/errors.ts";
import {
  claims,
  forge,
  type SigningKey,
  seconds,
  shownKeys,
  sign,
  signingKey,
  trustedIssuer,
  verifierWith,
} from "../fixtures/auth/tokens.ts";
import { sendJson, startUpstream } from "../fixtures/upstreams/rest.ts";
import { CallError, type Failure, type LanceClient } from "../support/client.ts";
import { sendHttp } from "../support/http.ts";
import { PROTOCOLS } from "../support/protocols.ts";
import { type DirectoryServer, startDirectoryServer, startServer } from "../support/server.ts";

const NO_DELAY = { failed: () => 0 };
const GRANTS = [
  { role: "owner", to: { kind: "group", value: "admins" } },
  { role: "reader", to: { kind: "scope", value: "lance.read" } },
] as const;

async function failureOf(call: Promise<unknown>): Promise<CallError> {
  const error: unknown = await call.then(
    () => assert.fail("the call succeeds"),
    (thrown: unknown) => thrown,
  );
  assert.ok(error instanceof CallError, String(error));
  return error;
}

/** Returns the form that the failure of a row of the error table has on a protocol. */
function failure(protocol: string, name: ErrorName): Failure {
  const { code, httpStatus, grpcCode } = errorEntry(name);
  return protocol === "REST" ? { code, httpStatus } : { code, grpcCode };
}

describe("callers with bearer tokens", () => {
  let [key, stranger]: [SigningKey?, SigningKey?] = [];
  let server: DirectoryServer;
  const shown = shownKeys();
  const tokens: Record<string, string> = {};
  beforeAll(async () => {
    [key, stranger] = await Promise.all([signingKey("k"), signingKey("k")]);
    shown.keys = [key];
    Object.assign(tokens, {
      owner: await sign(key, claims({ groups: ["admins"] })),
      reader: await sign(key, claims({ scope: "openid lance.read" })),
      none: await sign(key),
      expired: await sign(key, claims({ exp: seconds(-60) })),
      early: await sign(key, claims({ nbf: seconds(600) })),
      foreign: await sign(key, claims({ aud: "mail" })),
      forged: await sign(stranger, claims({ groups: ["admins"] })),
      unsigned: forge({ alg: "none" }, claims({ groups: ["admins"] })),
      rubbish: "a.b.c",
    });
    const verifiers = [verifierWith(shown, trustedIssuer({ grants: GRANTS }))];
    const authenticator = createAuthenticator([proveByTokens({ verifiers })], NO_DELAY);
    server = await startDirectoryServer({}, { authenticator });
    const { client, close } = open("gRPC", "owner");
    await client.createNamespace({ id: ["team"] });
    close();
  });
  afterAll(() => server.close());

  function open(protocol: string, caller: string) {
    const headers = { authorization: `Bearer ${tokens[caller]}` };
    const create = PROTOCOLS[protocol] as NonNullable<(typeof PROTOCOLS)[string]>;
    return create(server.port, headers);
  }
  async function as<T>(
    protocol: string,
    caller: string,
    call: (client: LanceClient) => Promise<T>,
  ): Promise<T> {
    const { client, close } = open(protocol, caller);
    return call(client).finally(close);
  }
  const describeIt = (client: LanceClient) => client.describeNamespace({ id: ["team"] });
  const createIt = (client: LanceClient) => client.createNamespace({ id: ["other"] });

  for (const protocol of Object.keys(PROTOCOLS)) {
    test(`${protocol}: groups and scopes of a token give the role`, async () => {
      await as(protocol, "reader", describeIt);
      const refused = failure(protocol, "PermissionDenied");
      assert.deepEqual((await failureOf(as(protocol, "reader", createIt))).failure, refused);
      assert.deepEqual((await failureOf(as(protocol, "none", describeIt))).failure, refused);
    });

    test(`${protocol}: a token that is wrong, late, early or for others is refused as such`, async () => {
      for (const caller of ["expired", "early", "foreign", "forged", "unsigned", "rubbish"]) {
        const error = await failureOf(as(protocol, caller, describeIt));
        assert.deepEqual(error.failure, failure(protocol, "Unauthenticated"), caller);
        const { metadata } = (error.cause ?? {}) as { metadata?: { get(name: string): unknown } };
        if (metadata === undefined) assert.equal(protocol, "REST");
        else
          assert.match(String(metadata.get("www-authenticate")), /^Bearer .*error="invalid_token"/, caller);
      }
    });
  }

  test("a challenge says what a token lacks, or that there is none", async () => {
    const challenge = async (headers: Record<string, string>) => {
      const answer = await sendHttp(server.port, { method: "GET", path: "/v1/namespace/$/list", headers });
      assert.equal(answer.status, 401);
      return answer.headers["www-authenticate"];
    };
    assert.equal(await challenge({}), 'Bearer realm="lance-gateway"');
    assert.equal(await challenge({ authorization: "Basic YTpi" }), 'Bearer realm="lance-gateway"');
    assert.equal(
      await challenge({ authorization: `Bearer ${tokens["expired"]}` }),
      'Bearer realm="lance-gateway", error="invalid_token", error_description="the token has expired"',
    );
  });

  test("a token in the request's identity counts, and a header overrides it", async () => {
    const identity = { authToken: tokens["reader"] as string };
    const call = (headers: Record<string, string>) => {
      const { client, close } = PROTOCOLS["gRPC"]?.(server.port, headers) ?? assert.fail();
      return client.describeNamespace({ id: ["team"], identity }).finally(close);
    };
    await call({});
    const overridden = await failureOf(call({ authorization: `Bearer ${tokens["forged"]}` }));
    assert.deepEqual(overridden.failure, failure("gRPC", "Unauthenticated"));
  });

  test("a token of megabytes in a body is refused", async () => {
    const identity = { authToken: `${tokens["reader"]}${"A".repeat(2 * 2 ** 20)}` };
    const { client, close } = PROTOCOLS["gRPC"]?.(server.port) ?? assert.fail();
    const error = await failureOf(client.describeNamespace({ id: ["team"], identity }).finally(close));
    assert.deepEqual(error.failure, failure("gRPC", "Unauthenticated"));
  });
});

describe("a token in front of an upstream", () => {
  for (const passesOn of [false, true]) {
    test(`${passesOn ? "is passed on if the operator says so" : "ends at the gateway"}`, async ({
      onTestFinished,
    }) => {
      const key = await signingKey("k");
      const upstream = await startUpstream((response) => sendJson(response, {}));
      const issuer = trustedIssuer({ grants: [{ role: "reader", to: { kind: "anyone" } }] });
      const way = proveByTokens({ verifiers: [verifierWith(shownKeys(key), issuer)], passesOn });
      const server = await startServer(
        upstream.backend,
        {},
        { authenticator: createAuthenticator([way], NO_DELAY) },
      );
      onTestFinished(async () => {
        await server.close();
        await upstream.close();
      });
      const token = await sign(key);
      for (const [headers, body] of [
        [{ authorization: `Bearer ${token}` }, {}],
        [{}, { identity: { auth_token: token } }],
        [{}, { context: { "header.authorization": `Bearer ${token}` } }],
      ] as const) {
        const answer = await sendHttp(server.port, {
          path: "/v1/namespace/team/describe",
          headers: { "content-type": "application/json", ...headers },
          body: JSON.stringify(body),
        });
        assert.equal(answer.status, 200, answer.bytes.toString());
        const seen = upstream.seen.at(-1);
        assert.equal(seen?.headers.authorization, passesOn ? `Bearer ${token}` : undefined);
        assert.ok(!JSON.stringify(seen).includes(passesOn ? "auth_token" : token));
      }
    });
  }
});
