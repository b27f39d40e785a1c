import assert from "node:assert/strict";
import { once } from "node:events";
import { createServer, type IncomingHttpHeaders, type RequestListener } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, describe, test, vi } from "vitest";
import { callOf, callUnary, sendJson, startUpstream } from "../../../test/fixtures/upstreams/rest.ts";
import { bodyOf } from "../../../test/support/request-body.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import { createIdentity } from "./create-identity.ts";
import type { ExchangeIdentityOptions } from "./identity.ts";

const { describeTable } = LanceNamespaceService.method;
const closers: (() => unknown)[] = [];
afterAll(() => Promise.all(closers.map((close) => close())));

/** Starts a server on the loopback interface, and returns the address of its token endpoint. */
async function tokenEndpointOf(listener: RequestListener): Promise<string> {
  const server = createServer(listener);
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  closers.push(() => {
    server.closeAllConnections();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/token`;
}

/** Starts an identity provider that numbers its tokens. */
async function startProvider(
  answer?: (form: URLSearchParams) => { status: number; json: object } | undefined,
) {
  const asked: { form: URLSearchParams; headers: IncomingHttpHeaders }[] = [];
  const tokenEndpoint = await tokenEndpointOf(async (request, response) => {
    const form = new URLSearchParams(await bodyOf(request));
    asked.push({ form, headers: request.headers });
    const { status = 200, json = {} } = answer?.(form) ?? {};
    const token = { access_token: `token-${asked.length}`, token_type: "Bearer", expires_in: 300, ...json };
    response.writeHead(status, { "content-type": "application/json" });
    response.end(JSON.stringify(status === 200 ? token : json));
  });
  return { tokenEndpoint, asked };
}

function options(
  tokenEndpoint: string,
  more: Partial<ExchangeIdentityOptions> = {},
): ExchangeIdentityOptions {
  return {
    kind: "exchange",
    grant: "client_credentials",
    tokenEndpoint,
    clientId: "gateway",
    clientSecret: "secret",
    allowInsecure: true,
    ...more,
  };
}

const caller = (authToken?: string): Partial<Call> => ({ identity: { apiKey: undefined, authToken } });

const failing = (name: ErrorName) => (error: unknown) => {
  assert.ok(error instanceof LanceError, String(error));
  assert.equal(error.entry.name, name, error.message);
  return true;
};

/** Starts an upstream that accepts only some tokens. */
async function guarded(
  identity: ExchangeIdentityOptions,
  takes: (authorization: string | undefined) => boolean,
) {
  const upstream = await startUpstream(
    (response, { headers }) =>
      takes(headers.authorization)
        ? sendJson(response, {})
        : sendJson(response, { code: 16, error: "no" }, 401),
    { identity },
  );
  closers.push(upstream.close);
  return upstream;
}

describe("credentials", () => {
  test("pass through as they came, from headers and from the body's identity", async () => {
    const { credentials } = await createIdentity();
    const headers = { authorization: "Basic dTpw" };
    assert.deepEqual(credentials(callOf(describeTable, { headers })), headers);
    const identity = { apiKey: "k", authToken: "t" };
    assert.deepEqual(credentials(callOf(describeTable, { identity })), {
      authorization: "Bearer t",
      "x-api-key": "k",
    });
    assert.deepEqual(credentials(callOf(describeTable)), {});
  });

  test("of a service take the place of the client's, and its refusal is not the client's fault", async () => {
    const upstream = await startUpstream((response) => response.writeHead(401).end(), {
      identity: { kind: "service", apiKey: "ours" },
    });
    closers.push(upstream.close);
    const theirs = { headers: { authorization: "Bearer t", "x-api-key": "theirs" }, ...caller("t") };
    const init = { identity: { apiKey: "theirs" }, context: { "header.x-api-key": "theirs" } };
    await assert.rejects(callUnary(upstream, describeTable, init, theirs), failing("ServiceUnavailable"));
    const [{ headers, body } = { headers: {} as IncomingHttpHeaders, body: "theirs" }] = upstream.seen;
    assert.equal(headers["x-api-key"], "ours");
    assert.equal(headers.authorization, undefined);
    assert.doesNotMatch(body, /theirs/);
    await assert.rejects(createIdentity({ kind: "service" }));
  });
});

describe("client credentials", () => {
  test("are fetched once for many calls, with what the provider needs", async () => {
    const { tokenEndpoint, asked } = await startProvider();
    const identity = options(tokenEndpoint, { scope: "read write", audience: "catalog" });
    const upstream = await guarded(identity, (authorization) => authorization === "Bearer token-1");
    await Promise.all(Array.from({ length: 20 }, () => callUnary(upstream, describeTable)));
    assert.equal(asked.length, 1);
    const [{ form, headers } = { form: new URLSearchParams(), headers: {} }] = asked;
    assert.equal(form.get("grant_type"), "client_credentials");
    assert.deepEqual([form.get("scope"), form.get("audience")], ["read write", "catalog"]);
    assert.equal(headers.authorization, `Basic ${btoa("gateway:secret")}`);
  });

  test("may be in the body of the request for a token", async () => {
    const { tokenEndpoint, asked } = await startProvider();
    const upstream = await guarded(options(tokenEndpoint, { clientAuthentication: "post" }), () => true);
    await callUnary(upstream, describeTable);
    assert.equal(asked[0]?.form.get("client_secret"), "secret");
  });

  test("a token that is just issued and refused is not fetched again and again", async () => {
    const { tokenEndpoint, asked } = await startProvider();
    const upstream = await guarded(options(tokenEndpoint), () => false);
    for (let call = 0; call < 3; call++) {
      await assert.rejects(callUnary(upstream, describeTable), failing("ServiceUnavailable"));
    }
    assert.equal(asked.length, 1);
  });

  test("a token that was taken back is replaced, and the call sent once more", async (context) => {
    const { tokenEndpoint, asked } = await startProvider();
    let taken = "Bearer token-1";
    const upstream = await guarded(options(tokenEndpoint), (authorization) => authorization === taken);
    await callUnary(upstream, describeTable);
    taken = "Bearer token-2";
    const later = Date.now() + 2_000;
    context.onTestFinished(() => void vi.restoreAllMocks());
    vi.spyOn(Date, "now").mockImplementation(() => later);
    await callUnary(upstream, describeTable, { version: 3n });
    assert.equal(asked.length, 2);
    assert.deepEqual(
      upstream.seen.map(({ headers }) => headers.authorization),
      ["Bearer token-1", "Bearer token-1", "Bearer token-2"],
    );
    assert.equal(upstream.seen[2]?.body, upstream.seen[1]?.body);
  });

  test("a provider that refuses the gateway, or is not there, is not the client's fault", async () => {
    const refusing = await startProvider(() => ({ status: 401, json: { error: "invalid_client" } }));
    for (const tokenEndpoint of [refusing.tokenEndpoint, "http://127.0.0.1:1/token"]) {
      const upstream = await guarded(options(tokenEndpoint), () => true);
      await assert.rejects(callUnary(upstream, describeTable), failing("ServiceUnavailable"));
    }
  });

  test("a provider that is not encrypted has to be allowed", async () => {
    await assert.rejects(
      createIdentity(options("http://127.0.0.1:1/token", { allowInsecure: false })),
      /https/,
    );
  });
});

describe("token exchange", () => {
  const grant = "token_exchange";

  test("exchanges a token that ends at the gateway", async () => {
    const { tokenEndpoint, asked } = await startProvider();
    const upstream = await guarded(options(tokenEndpoint, { grant }), (token) => token === "Bearer token-1");
    const brought = { apiKey: undefined, authToken: "theirs" };
    await callUnary(upstream, describeTable, {}, { ...caller(), brought });
    assert.deepEqual(
      asked.map(({ form }) => form.get("subject_token")),
      ["theirs"],
    );
  });

  test("gives each client a token of its own, and asks as RFC 8693 says", async () => {
    const { tokenEndpoint, asked } = await startProvider((form) => ({
      status: 200,
      json: { access_token: `for-${form.get("subject_token")}`, issued_token_type: "x", token_type: "N_A" },
    }));
    const upstream = await guarded(options(tokenEndpoint, { grant, resource: "urn:catalog" }), () => true);
    for (const token of ["ann", "bob", "ann"]) await callUnary(upstream, describeTable, {}, caller(token));
    assert.deepEqual(
      upstream.seen.map(({ headers }) => headers.authorization),
      ["Bearer for-ann", "Bearer for-bob", "Bearer for-ann"],
    );
    assert.equal(asked.length, 2);
    assert.deepEqual(Object.fromEntries(asked[0]?.form ?? []), {
      grant_type: "urn:ietf:params:oauth:grant-type:token-exchange",
      subject_token: "ann",
      subject_token_type: "urn:ietf:params:oauth:token-type:access_token",
      resource: "urn:catalog",
    });
  });

  test("needs a token to exchange, and one that the provider takes", async () => {
    const { tokenEndpoint } = await startProvider(() => ({ status: 400, json: { error: "invalid_grant" } }));
    const upstream = await guarded(options(tokenEndpoint, { grant }), () => true);
    await assert.rejects(callUnary(upstream, describeTable), failing("Unauthenticated"));
    await assert.rejects(callUnary(upstream, describeTable, {}, caller("ann")), failing("Unauthenticated"));
    assert.equal(upstream.seen.length, 0);
  });

  test("refuses an empty token, and asks the provider for no token of the gateway", async () => {
    const { tokenEndpoint, asked } = await startProvider();
    const upstream = await guarded(options(tokenEndpoint, { grant }), () => true);
    await assert.rejects(callUnary(upstream, describeTable, {}, caller("")), failing("Unauthenticated"));
    assert.deepEqual([asked.length, upstream.seen.length], [0, 0]);
  });

  test("asks once about a token that is refused, however many calls bring it", async () => {
    const provider = await startProvider((form) =>
      form.get("subject_token") === "bad" ? { status: 400, json: { error: "invalid_grant" } } : undefined,
    );
    const upstream = await guarded(options(provider.tokenEndpoint, { grant }), () => true);
    for (let call = 0; call < 20; call += 1) {
      await assert.rejects(callUnary(upstream, describeTable, {}, caller("bad")), failing("Unauthenticated"));
    }
    await callUnary(upstream, describeTable, {}, caller("good"));
    assert.equal(provider.asked.length, 2);
  });

  test("asks a provider with bounded concurrency, and refuses more than may wait", async () => {
    const held: (() => void)[] = [];
    const tokenEndpoint = await tokenEndpointOf((_, response) => {
      held.push(() => sendJson(response, { access_token: "t", token_type: "Bearer" }));
    });
    const identity = await createIdentity(options(tokenEndpoint, { grant }));
    const ask = (name: string) => Promise.resolve(identity.credentials(callOf(describeTable, caller(name))));
    const waiting = Array.from({ length: 32 + 1_000 }, (_, index) => ask(`client ${index}`));
    await assert.rejects(ask("one too many"), failing("Throttling"));
    let most = 0;
    const answered = Promise.allSettled(waiting).then(() => true);
    while (!(await Promise.race([answered, new Promise((resolve) => setImmediate(resolve, false))]))) {
      most = Math.max(most, held.length);
      for (const answer of held.splice(0)) answer();
    }
    assert.ok(most <= 32, String(most));
  });

  test("takes no endless answer of a provider", async () => {
    let sent = 0;
    const tokenEndpoint = await tokenEndpointOf((_, response) => {
      response.writeHead(200, { "content-type": "application/json" });
      const more = () => {
        while (!response.destroyed && response.write(Buffer.alloc(65_536, " "))) sent += 65_536;
      };
      response.on("drain", more).on("error", () => {});
      more();
    });
    const upstream = await guarded(options(tokenEndpoint), () => true);
    await assert.rejects(callUnary(upstream, describeTable), failing("ServiceUnavailable"));
    assert.ok(sent < 64 * 1024 ** 2, String(sent));
  });

  test("a client that goes away leaves the token to those who wait with it", async () => {
    const provider = await startProvider();
    const identity = await createIdentity(options(provider.tokenEndpoint, { grant }));
    const controller = new AbortController();
    const left = identity.credentials(callOf(describeTable, { ...caller("ann"), signal: controller.signal }));
    const stays = identity.credentials(callOf(describeTable, caller("ann")));
    controller.abort(new LanceError("Cancelled", "gone"));
    await assert.rejects(Promise.resolve(left), failing("Cancelled"));
    assert.deepEqual(await stays, { authorization: "Bearer token-1" });
    assert.equal(provider.asked.length, 1);
  });
});
