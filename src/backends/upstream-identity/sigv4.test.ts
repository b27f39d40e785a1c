import assert from "node:assert/strict";
import type { ServerResponse } from "node:http";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, describe, test, vi } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import { createGrpcBackend } from "../grpc/index.ts";
import { callOf, callUnary, type Seen, sendJson, startUpstream } from "../rest/fixture.ts";
import { createRestBackend } from "../rest/index.ts";
import type { RestBackendOptions } from "../rest/options.ts";
import type { AwsCredentials, SigV4IdentityOptions } from "./identity.ts";
import { type Received, type Verified, verify } from "./sigv4.fixture.ts";

const { describeTable, dropTable, insertIntoTable, listTables } = LanceNamespaceService.method;
const closers: (() => unknown)[] = [];
afterAll(() => Promise.all(closers.map((close) => close())));

const SECRETS = ["secret-1/+abc", "secret-2/+abc", "secret-3/+abc"];
const TOKEN = "a session token";

/** Returns credentials whose key ids are numbered, with their secrets in {@link SECRETS}. */
function numbered(lifeMs?: number) {
  let found = 0;
  const provider = async (): Promise<AwsCredentials> => {
    const accessKeyId = `KEY-${found + 1}`;
    const secretAccessKey = SECRETS[found] ?? "";
    found += 1;
    const expiration = lifeMs === undefined ? undefined : new Date(Date.now() + lifeMs);
    return { accessKeyId, secretAccessKey, sessionToken: TOKEN, expiration };
  };
  return { provider, count: () => found };
}

/** Returns the signer of a request, and fails for an invalid signature. */
function signed(request: Seen): Verified {
  const key = /Credential=KEY-(\d)/.exec(request.headers.authorization ?? "")?.[1];
  const verified = verify(request, SECRETS[Number(key) - 1] ?? "");
  assert.ok(verified, `the signature of ${request.method} ${request.url} is not right`);
  assert.equal(request.headers["x-amz-security-token"], TOKEN);
  return verified;
}

type Take = (response: ServerResponse, request: Seen) => void;

/** Starts an upstream, and the gateway's backend that signs requests to it. */
async function signing(
  identity: Partial<SigV4IdentityOptions> = {},
  take: Take = (response) => sendJson(response, {}),
  options: Partial<RestBackendOptions> = {},
) {
  const upstream = await startUpstream(take, {
    identity: { kind: "sigv4", region: "eu-central-1", provider: numbered().provider, ...identity },
    ...options,
  });
  closers.push(upstream.close);
  return upstream;
}

/** From the test suite of Signature Version 4 that AWS publishes. */
const VECTORS = {
  "get-vanilla": {
    signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
  },
  "get-vanilla-query-order-key-case": {
    url: "/?Param2=value2&Param1=value1",
    signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
  },
  "post-vanilla": {
    method: "POST",
    signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
  },
  "post-x-www-form-urlencoded": {
    method: "POST",
    body: "Param1=value1",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
  },
};

test("the verifier takes the signatures that AWS publishes, and no others", () => {
  for (const [name, { signature, headers = {}, ...vector }] of Object.entries<{
    method?: string;
    url?: string;
    body?: string;
    headers?: Record<string, string>;
    signature: string;
  }>(VECTORS)) {
    const all: Record<string, string> = {
      ...headers,
      host: "example.amazonaws.com",
      "x-amz-date": "20150830T123600Z",
    };
    const signed = Object.keys(all).sort().join(";");
    const credential = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
    const request = (text: string): Received => ({
      method: "GET",
      url: "/",
      body: "",
      ...vector,
      headers: {
        ...all,
        authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signed}, Signature=${text}`,
      },
    });
    const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    assert.equal(verify(request(signature), secret)?.service, "service", name);
    assert.equal(verify(request(signature), `${secret}x`), undefined, name);
    assert.equal(verify({ ...request(signature), method: "PUT" }, secret), undefined, name);
    assert.equal(verify({ ...request(signature), body: "other" }, secret), undefined, name);
  }
});

const failing = (name: ErrorName) => (error: unknown) => {
  assert.ok(error instanceof LanceError, String(error));
  assert.equal(error.entry.name, name, error.message);
  return true;
};

const refuse = (response: ServerResponse, type: string) => {
  response.setHeader("x-amzn-errortype", `${type}:http://internal.amazon.com/`);
  sendJson(response, { message: "no" }, 403);
};

describe("Signature Version 4", () => {
  test("covers the method, the address, the query and the JSON body of a request", async () => {
    const upstream = await signing();
    await callUnary(upstream, describeTable, { version: 3n }, { id: ["a b", "ü/c+*(d)"] });
    await callUnary(upstream, listTables, { limit: 7, pageToken: "x=/+ y&z" }, { id: ["n"] });
    const verified = upstream.seen.map(signed);
    assert.deepEqual(
      verified.map(({ region, service }) => [region, service]),
      [
        ["eu-central-1", "execute-api"],
        ["eu-central-1", "execute-api"],
      ],
    );
    const [{ signedHeaders } = { signedHeaders: [] }] = verified;
    assert.deepEqual(signedHeaders, [
      "content-type",
      "host",
      "x-amz-content-sha256",
      "x-amz-date",
      "x-amz-security-token",
    ]);
    assert.match(upstream.seen[0]?.headers["x-amz-content-sha256"] as string, /^[0-9a-f]{64}$/);
    assert.match(upstream.seen[1]?.url ?? "", /limit=7/);
  });

  test("leaves an Arrow body out, which arrives as it was sent", async () => {
    const upstream = await signing();
    async function* pieces() {
      yield Buffer.from("first ");
      yield Buffer.from("second");
    }
    const call = callOf(insertIntoTable);
    await upstream.backend.operations.insertIntoTable?.(create(insertIntoTable.input), pieces(), call);
    const [request] = upstream.seen;
    assert.ok(request);
    assert.equal(signed(request).payload, "UNSIGNED-PAYLOAD");
    assert.equal(request.body, "first second");
  });

  test("leaves every body out for services that want that", async () => {
    const upstream = await signing({ signBodies: false, service: "vpc-lattice-svcs" });
    await callUnary(upstream, describeTable, { version: 3n });
    const [{ payload, service }] = upstream.seen.map(signed) as [ReturnType<typeof signed>];
    assert.deepEqual([payload, service], ["UNSIGNED-PAYLOAD", "vpc-lattice-svcs"]);
  });

  test("signs each attempt separately, also when the next one goes to another address", async () => {
    const [failingOne, other] = await Promise.all([
      signing({}, (response) => sendJson(response, { code: 17, error: "later" }, 503)),
      signing(),
    ]);
    const { provider } = numbered();
    const identity = { kind: "sigv4", region: "eu-central-1", provider } as const;
    const uri = [failingOne.uri, other.uri];
    const backend = await createRestBackend({ uri, identity, log: callOf(describeTable).log });
    closers.push(() => backend.close());
    for (let call = 0; call < 4; call++) await callUnary({ ...other, backend }, describeTable);
    assert.ok(failingOne.seen.length > 0);
    assert.equal(other.seen.length, 4);
    for (const request of [...failingOne.seen, ...other.seen]) signed(request);
  });

  test("is separate for an upload that goes on to another address because the first one is away", async () => {
    const upstream = await signing();
    const identity = { kind: "sigv4", region: "eu-central-1", provider: numbered().provider } as const;
    const uri = ["http://127.0.0.1:1", upstream.uri];
    const backend = await createRestBackend({ uri, identity, log: callOf(describeTable).log });
    closers.push(() => backend.close());
    for (let call = 0; call < 2; call++) {
      async function* pieces() {
        yield Buffer.from("a body");
      }
      const request = create(insertIntoTable.input);
      await backend.operations.insertIntoTable?.(request, pieces(), callOf(insertIntoTable));
    }
    assert.deepEqual(
      upstream.seen.map((request) => [signed(request).payload, request.body]),
      [
        ["UNSIGNED-PAYLOAD", "a body"],
        ["UNSIGNED-PAYLOAD", "a body"],
      ],
    );
  });

  test("stops the start of a gRPC upstream, which does not support it", async () => {
    const identity = { kind: "sigv4", region: "eu-central-1" } as const;
    const { log } = callOf(describeTable);
    await assert.rejects(createGrpcBackend({ addresses: ["127.0.0.1:1"], identity, log }), /REST upstreams/);
  });

  test("leaves kept answers in use, as long as the credentials are the same", async () => {
    const { provider, count } = numbered();
    const upstream = await signing({ provider }, undefined, { cache: { ttlMs: 60_000, maxEntries: 10 } });
    for (let call = 0; call < 3; call++) await callUnary(upstream, describeTable);
    assert.deepEqual([upstream.seen.length, count()], [1, 1]);
  });

  test("takes the place of a client's credentials and signatures, whatever headers pass", async () => {
    const upstream = await signing({}, undefined, { passHeaders: ["*"] });
    const headers = {
      authorization: "AWS4-HMAC-SHA256 theirs",
      "x-amz-date": "20000101T000000Z",
      "x-amz-security-token": "theirs",
      "x-amz-content-sha256": "theirs",
      "x-api-key": "theirs",
      "x-mine": "passes",
    };
    await callUnary(upstream, describeTable, {}, { headers });
    const [{ headers: sent } = { headers: {} as Seen["headers"] }] = upstream.seen;
    assert.equal(sent["x-mine"], "passes");
    assert.doesNotMatch(JSON.stringify(sent), /theirs/);
    for (const request of upstream.seen) signed(request);
  });
});

describe("AWS credentials", () => {
  test("are found once for many calls, and again before they end", async ({ onTestFinished }) => {
    onTestFinished(() => void vi.restoreAllMocks());
    const { provider, count } = numbered(3_600_000);
    const upstream = await signing({ provider });
    const start = Date.now();
    await Promise.all(Array.from({ length: 10 }, () => callUnary(upstream, describeTable)));
    assert.equal(count(), 1);
    vi.spyOn(Date, "now").mockImplementation(() => start + 3_400_000);
    await callUnary(upstream, describeTable);
    assert.equal(count(), 2);
    await callUnary(upstream, describeTable);
    assert.deepEqual(
      new Set(upstream.seen.map((request) => signed(request).accessKeyId)),
      new Set(["KEY-1", "KEY-2"]),
    );
    assert.equal(signed(upstream.seen.at(-1) as Seen).accessKeyId, "KEY-2");
  });

  test("that the upstream takes for expired are found again, and the call sent once more", async ({
    onTestFinished,
  }) => {
    onTestFinished(() => void vi.restoreAllMocks());
    const upstream = await signing({}, (response, request) =>
      expired && signed(request).accessKeyId === "KEY-1"
        ? refuse(response, "ExpiredTokenException")
        : sendJson(response, {}),
    );
    let expired = false;
    await callUnary(upstream, describeTable);
    expired = true;
    const later = Date.now() + 2_000;
    vi.spyOn(Date, "now").mockImplementation(() => later);
    await callUnary(upstream, dropTable);
    const keys = upstream.seen.map((request) => signed(request).accessKeyId);
    assert.deepEqual(keys, ["KEY-1", "KEY-1", "KEY-2"]);
  });

  test("that the upstream refuses for good are the gateway's fault, and missing rights stay a refusal", async () => {
    for (const [type, name] of [
      ["InvalidSignatureException", "ServiceUnavailable"],
      ["UnrecognizedClientException", "ServiceUnavailable"],
      ["AccessDeniedException", "PermissionDenied"],
    ] as const) {
      const upstream = await signing({}, (response) => refuse(response, type));
      await assert.rejects(callUnary(upstream, describeTable), failing(name));
    }
  });

  test("that cannot be found fail the call without a request", async () => {
    const upstream = await signing({ provider: () => Promise.reject(new Error("no metadata")) });
    await assert.rejects(callUnary(upstream, describeTable), (error: LanceError) => {
      assert.match(error.message, /no AWS credentials/);
      return failing("ServiceUnavailable")(error);
    });
    assert.deepEqual(upstream.seen, []);
  });

  test("come from the default chain", async ({ onTestFinished }) => {
    vi.stubEnv("AWS_ACCESS_KEY_ID", "KEY-1");
    vi.stubEnv("AWS_SECRET_ACCESS_KEY", SECRETS[0]);
    vi.stubEnv("AWS_SESSION_TOKEN", TOKEN);
    onTestFinished(() => void vi.unstubAllEnvs());
    const upstream = await signing({ provider: undefined });
    await callUnary(upstream, describeTable);
    assert.deepEqual(
      upstream.seen.map((request) => signed(request).accessKeyId),
      ["KEY-1"],
    );
  });

  test("are in no line of the log", async () => {
    const lines: string[] = [];
    const log = pino({ level: "trace" }, { write: (line: string) => lines.push(line) });
    const takes: Take[] = [
      (response) => response.destroy(),
      (response) => refuse(response, "InvalidSignatureException"),
    ];
    for (const take of takes) {
      const upstream = await signing({}, take, { log });
      await callUnary(upstream, describeTable, {}, { log }).then(
        () => assert.fail("the call is refused"),
        (err: unknown) => log.error({ err }, "call failed"),
      );
    }
    assert.ok(lines.length >= takes.length);
    for (const text of [...SECRETS, TOKEN, "Signature="]) assert.ok(!lines.join().includes(text), text);
  });
});
