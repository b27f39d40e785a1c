import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, onTestFinished, test } from "vitest";
import { callOf, callUnary, type Seen, sendJson } from "../../../test/fixtures/upstreams/rest.ts";
import { numbered, signed, signing } from "../../../test/fixtures/upstreams/sigv4-upstream.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { createGrpcBackend } from "../grpc/index.ts";
import { createRestBackend } from "../rest/index.ts";

const { describeTable, insertIntoTable, listTables } = LanceNamespaceService.method;

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
    onTestFinished(() => backend.close());
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
    onTestFinished(() => backend.close());
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
