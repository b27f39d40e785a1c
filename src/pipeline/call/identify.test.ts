import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, it } from "vitest";
import { drawKey } from "../../auth/api-keys/key.ts";
import { proveByKeys } from "../../auth/api-keys/key-ring.ts";
import { createAuthenticator, type FailureDelay, type Way } from "../../auth/authenticator.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, createCall } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { identify } from "./identify.ts";
import type { Next, OperationRequest } from "./interceptor.ts";

const method = LanceNamespaceService.method.insertIntoTable;
const { id, hash, text } = drawKey();
const record = { id, hash, name: "ann", role: "writer", created: "2026-01-01T00:00:00.000Z" } as const;
const ring = { find: (given: string) => (given === text ? record : ("unknown" as const)), close() {} };
const byKeys = (delay?: FailureDelay) => createAuthenticator([proveByKeys(ring)], delay);

const TOKEN = "a token for the upstream";

function callWith(
  apiKey: string | undefined,
  signal = new AbortController().signal,
  peer = "192.0.2.1",
): Call {
  const call = createCall({
    ...{ method, protocol: "rest", requestId: "r", headers: {}, signal, peer },
    ...{ deadline: undefined, accept: undefined, log: pino({ level: "silent" }) },
  });
  call.identity = { apiKey, authToken: TOKEN };
  return call;
}

const upload = (data: AsyncIterable<Uint8Array>) =>
  ({ kind: "upload", operation: "insertIntoTable", message: create(method.input), data }) as OperationRequest;
const unread = upload({ [Symbol.asyncIterator]: () => assert.fail("the body is read") });
const refuseNext: Next = () => assert.fail("the call goes on");

describe("identify", () => {
  it("names the caller, and takes the key out of the call", async () => {
    const call = callWith(text);
    const answer = {} as never;
    const next: Next = async ({ principal, identity }) => {
      const known = { by: "api-key", name: "ann", credentialId: id, role: "writer" };
      assert.deepEqual(principal, { ...known, groups: [], claims: {} });
      assert.deepEqual(identity, { apiKey: undefined, authToken: TOKEN });
      return answer;
    };
    assert.equal(await identify(byKeys())(call, unread, next), answer);
  });

  it("refuses a call without a key before it reads the body, and at once", async () => {
    const delay = { failed: () => assert.fail("the refusal waits") };
    await assert.rejects(
      Promise.resolve(identify(byKeys(delay))(callWith(undefined), unread, refuseNext)),
      (error) => isLanceError(error, "Unauthenticated"),
    );
  });

  it("waits for a way that takes time, and takes the header of the token out of the call", async () => {
    const principal = { by: "oidc", name: "ann", credentialId: "1", role: "reader" } as const;
    const way: Way = {
      ...{ needs: "a token", ends: ["authToken"], close() {} },
      prove: async () => ({ ...principal, groups: [], claims: {} }),
    };
    const call = callWith("a key for the upstream");
    call.headers["authorization"] = "Bearer a token";
    const answer = {} as never;
    const next: Next = async ({ identity, brought, headers, ...rest }) => {
      assert.equal(rest.principal?.name, "ann");
      assert.deepEqual(identity, { apiKey: "a key for the upstream", authToken: undefined });
      assert.equal(brought?.authToken, TOKEN);
      assert.deepEqual(headers, {});
      return answer;
    };
    assert.equal(await identify(createAuthenticator([way]))(call, unread, next), answer);
  });

  it("does not slow down the refusals of credentials that cannot be checked", async () => {
    const failed = () => assert.fail("the refusal waits");
    const unable = async () => {
      throw new LanceError("ServiceUnavailable", "the issuer is away");
    };
    const way: Way = { needs: "a token", prove: unable, close() {} };
    await assert.rejects(
      Promise.resolve(identify(createAuthenticator([way], { failed }))(callWith("k"), unread, refuseNext)),
      (error) => isLanceError(error, "ServiceUnavailable"),
    );
  });

  it("names every way to a caller that brings nothing", async () => {
    const other: Way = { needs: "a token", challenge: "Bearer", prove: () => undefined, close() {} };
    const step = identify(createAuthenticator([proveByKeys(ring), other]));
    await assert.rejects(
      Promise.resolve(step(callWith(undefined), unread, refuseNext)),
      (error: LanceError) => {
        assert.match(error.message, /^the gateway needs an API key, .*, or a token$/);
        assert.equal(error.headers["www-authenticate"], 'ApiKey realm="lance-gateway", Bearer');
        return isLanceError(error, "Unauthenticated");
      },
    );
  });

  it("counts a wrong key for the address that it comes from, and in IPv6 for the network of 64 bits", async () => {
    const addresses: (string | undefined)[] = [];
    const delay = {
      failed(address: string | undefined) {
        addresses.push(address);
        return 0;
      },
    };
    const step = identify(byKeys(delay));
    for (const peer of ["192.0.2.1", "2001:db8:0:1::1", "2001:db8::1:f:0:0:2"]) {
      await assert.rejects(
        Promise.resolve(step(callWith("wrong", undefined, peer), unread, refuseNext)),
        (error) => isLanceError(error, "Unauthenticated"),
      );
    }
    assert.deepEqual(addresses, ["192.0.2.1", "2001:db8:0:1", "2001:db8:0:1"]);
  });

  it("lets a bounded number of refusals wait, and refuses more at once", async () => {
    const left = new AbortController();
    const step = identify(byKeys({ failed: () => 3_600_000 }));
    const wrong = () => Promise.resolve(step(callWith("wrong", left.signal), unread, refuseNext));
    const waiting = Array.from({ length: 1_000 }, () => assert.rejects(wrong()));
    await assert.rejects(wrong(), (error) => isLanceError(error, "Throttling"));
    left.abort();
    await Promise.all(waiting);
  });
});
