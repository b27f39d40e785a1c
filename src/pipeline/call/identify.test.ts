import assert from "node:assert/strict";
import { create, type Message } from "@bufbuild/protobuf";
import { pino } from "pino";
import { describe, it, onTestFinished, vi } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { drawKey, type KeyRecord } from "../../auth/api-keys/key-file.ts";
import { proveByKeys } from "../../auth/api-keys/key-ring.ts";
import {
  type Authenticator,
  createAuthenticator,
  type FailureDelay,
  type Way,
} from "../../auth/authenticator.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type Call, createCall } from "../../namespace/call/call.ts";
import type { Principal } from "../../namespace/call/principal.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { createService } from "../create-service.ts";
import { createReceive, identify } from "./identify.ts";
import type { Interceptor, Next, OperationRequest } from "./interceptor.ts";

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

describe("receive", () => {
  const { describeTable } = LanceNamespaceService.method;
  const { id, hash, text: right } = drawKey();
  const record: KeyRecord = { id, hash, name: "ann", role: "reader", created: "2026-01-01T00:00:00.000Z" };
  const ann = { by: "oidc", name: "ann", credentialId: "1", role: "reader", groups: [], claims: {} } as const;

  /** A ring of keys, from which the key can be taken. */
  function ringOf() {
    const known = new Map([[right, record]]);
    let found = 0;
    return {
      revoke: () => known.clear(),
      looked: () => found,
      find(text: string) {
        found += 1;
        return known.get(text) ?? ("unknown" as const);
      },
      close() {},
    };
  }

  /** A way of tokens, which takes time. */
  const byToken: Way = {
    ...{ needs: "a token", isInMessage: true, close() {} },
    async prove({ identity: { authToken } }): Promise<Principal> {
      if (authToken === "right") return ann;
      throw new LanceError("Unauthenticated", "the token is wrong");
    },
  };
  const tokens: Way = {
    ...byToken,
    prove: (evidence) => (evidence.identity.authToken === undefined ? undefined : byToken.prove(evidence)),
  };

  const arriving = (headers: Record<string, string>, method: typeof describeTable = describeTable) => ({
    ...{ method, headers, certificate: undefined },
  });
  const receiveBy = (...ways: Way[]) => createReceive(createAuthenticator(ways));
  const isUnauthenticated = (error: unknown) => isLanceError(error, "Unauthenticated");

  async function outcomeOf(received: ReturnType<ReturnType<typeof createReceive>>): Promise<string> {
    const reception = await received;
    if (reception === undefined) return "open";
    if (!("refusal" in reception)) return reception.principal.name;
    assert.ok(isUnauthenticated(reception.refusal));
    return reception.isGuess ? "wrong" : "nothing";
  }

  describe("the check of a caller before the message", () => {
    it("decides by the first way whose credential the headers have, unless a message may bring that of an earlier one", async () => {
      const keys = proveByKeys(ringOf());
      const bearer = (token: string) => ({ authorization: `Bearer ${token}` });
      for (const [ways, headers, expected] of [
        [[keys], { "x-api-key": right }, "ann"],
        [[keys], { "x-api-key": "wrong" }, "wrong"],
        [[keys], {}, "open"],
        [[keys, tokens], { "x-api-key": "wrong", ...bearer("right") }, "wrong"],
        [[keys, tokens], bearer("wrong"), "open"],
        [[tokens], bearer("wrong"), "wrong"],
        [[tokens], bearer("right"), "ann"],
        [[tokens, keys], { "x-api-key": "wrong" }, "open"],
        [[{ needs: "a certificate", prove: () => undefined, close() {} }], {}, "nothing"],
      ] as const)
        assert.equal(
          await outcomeOf(receiveBy(...ways)(arriving(headers))),
          expected,
          JSON.stringify(headers),
        );
    });

    it("leaves a check that takes long to the pipeline", async () => {
      vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
      onTestFinished(() => void vi.useRealTimers());
      const stuck: Way = { ...byToken, prove: () => new Promise(() => {}) };
      const received = receiveBy(stuck)(arriving({}));
      await vi.advanceTimersByTimeAsync(100);
      assert.equal(await outcomeOf(received), "open");
    });

    it("decides where the message has no place for a credential", async () => {
      const { input, ...rest } = describeTable;
      const bare = { ...rest, input: { ...input, fields: input.fields.filter(({ name }) => name === "id") } };
      const receive = receiveBy(proveByKeys(ringOf()));
      assert.equal(await outcomeOf(receive(arriving({}, bare as typeof describeTable))), "nothing");
    });
  });

  describe("a call whose caller was checked before the message", () => {
    function serviceBy(authenticator: Authenticator | undefined) {
      const seen: (Principal | undefined)[] = [];
      const note: Interceptor = async (call) => {
        seen.push(call.principal);
        return create(describeTable.output) as never;
      };
      const backend = { name: "none", operations: {}, ready: async () => true, close: async () => {} };
      const databases = new Map([[undefined, { backend, limits: { maxUploadBytes: 1 } }]]);
      return { seen, service: createService({ databases, authenticator, interceptors: [note] }) };
    }
    const call = async (
      { service }: ReturnType<typeof serviceBy>,
      reception: ReturnType<NonNullable<typeof service.receive>>,
      headers: Record<string, string>,
    ): Promise<Message> => {
      const init = { headers, reception: await reception };
      return service.unary(
        describeTable,
        create(describeTable.input, { id: ["t"] }),
        beginCall(describeTable, init),
      );
    };

    it("is not checked a second time, unless the message took long", async () => {
      vi.useFakeTimers({ toFake: ["performance"] });
      onTestFinished(() => void vi.useRealTimers());
      const ring = ringOf();
      const made = serviceBy(createAuthenticator([proveByKeys(ring)], { failed: () => 0 }));
      const headers = { "x-api-key": right };
      const reception = made.service.receive?.(arriving(headers));
      vi.advanceTimersByTime(999);
      await call(made, reception, headers);
      assert.deepEqual([made.seen[0]?.name, ring.looked()], ["ann", 1]);
      ring.revoke();
      vi.advanceTimersByTime(1);
      await assert.rejects(call(made, reception, headers), isUnauthenticated);
      assert.equal(made.seen.length, 1);
    });

    it("is checked again where the configuration has changed meanwhile", async () => {
      const headers = { "x-api-key": right };
      const [before, ring] = [serviceBy(createAuthenticator([proveByKeys(ringOf())])), ringOf()];
      const after = serviceBy(createAuthenticator([proveByKeys(ring)], { failed: () => 0 }));
      const reception = before.service.receive?.(arriving(headers));
      ring.revoke();
      await assert.rejects(call(after, reception, headers), isUnauthenticated);
      assert.deepEqual([before.seen, after.seen], [[], []]);
    });

    it("stays refused after its message was not read, also where nobody is asked any more", async () => {
      const headers = { "x-api-key": "wrong" };
      const before = serviceBy(createAuthenticator([proveByKeys(ringOf())]));
      const reception = before.service.receive?.(arriving(headers));
      const after = [createAuthenticator([tokens], { failed: () => 0 }), undefined].map(serviceBy);
      for (const made of after) {
        await assert.rejects(call(made, reception, headers), isUnauthenticated);
        assert.deepEqual(made.seen, []);
      }
    });

    it("waits with the refusal of a wrong credential, and not with that of a missing one", async () => {
      const addresses: unknown[] = [];
      const failed = (address: string | undefined) => {
        addresses.push(address);
        return 0;
      };
      const certificate: Way = { needs: "a certificate", prove: () => undefined, close() {} };
      for (const [way, count] of [
        [proveByKeys(ringOf()), 1],
        [certificate, 1],
      ] as const) {
        const headers = { "x-api-key": "wrong" };
        const made = serviceBy(createAuthenticator([way], { failed }));
        await assert.rejects(
          call(made, made.service.receive?.(arriving(headers)), headers),
          isUnauthenticated,
        );
        assert.equal(addresses.length, count);
      }
    });
  });
});
