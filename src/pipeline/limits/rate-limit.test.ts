import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { ann } from "../../../test/fixtures/auth/principal.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { openCells } from "../../runtime/threads/keyed-cells.ts";
import { compose } from "../call/interceptor.ts";
import { serviceOf } from "../create-service.ts";
import { BUCKETS_SHAPE, createTokenBuckets, limitRate, type RateLimit } from "./rate-limit.ts";

function bucketsAt(rate: { perSecond: number; burst: number }, keys?: number) {
  const clock = { now: 0 };
  const cells = openCells({ ...BUCKETS_SHAPE, ...(keys !== undefined && { keys }) });
  return { clock, buckets: createTokenBuckets(rate, cells, () => clock.now) };
}

describe("token buckets", () => {
  it("let a burst through, and then calls at their rate", () => {
    const { clock, buckets } = bucketsAt({ perSecond: 10, burst: 3 });
    assert.deepEqual(
      [1, 2, 3, 4].map(() => buckets.take("a")),
      [0, 0, 0, 100],
    );
    clock.now = 50;
    assert.equal(buckets.take("a"), 50);
    clock.now = 100;
    assert.equal(buckets.take("a"), 0);
    let passed = 0;
    for (clock.now = 101; clock.now <= 10_100; clock.now++) if (buckets.take("a") === 0) passed += 1;
    assert.ok(Math.abs(passed - 100) <= 1, String(passed));
  });

  it("do not fill beyond the burst, however long the pause", () => {
    const { clock, buckets } = bucketsAt({ perSecond: 10, burst: 2 });
    clock.now = 3_600_000;
    assert.deepEqual(
      [1, 2, 3].map(() => buckets.take("a")),
      [0, 0, 100],
    );
  });

  it("count each key for itself", () => {
    const { buckets } = bucketsAt({ perSecond: 1, burst: 1 });
    assert.deepEqual(
      ["a", "b", "a"].map((key) => buckets.take(key)),
      [0, 0, 1_000],
    );
  });

  it("are bounded in number, and the one is forgotten that is next to be full", () => {
    const { buckets } = bucketsAt({ perSecond: 1, burst: 3 }, 16);
    const others = Array.from({ length: 14 }, (_, index) => `other ${index}`);
    for (const key of ["busy", "busy", "busy", "idle", ...others, ...others]) buckets.take(key);
    assert.equal(buckets.take("new"), 0);
    assert.equal(buckets.take("busy"), 1_000);
    for (const expected of [0, 0, 0]) assert.equal(buckets.take("idle"), expected);
  });
});

const { describeTable } = LanceNamespaceService.method;

/** Counts a rate in buckets of its own. */
function counted(limit: RateLimit) {
  return { limit, buckets: createTokenBuckets(limit, openCells(BUCKETS_SHAPE)) };
}

/** Returns a function that calls and returns whether the limits let it through; refusals do not wait here. */
function callerOf(...limits: RateLimit[]) {
  const service = serviceOf(
    compose([limitRate(limits.map(counted))], async () => create(describeTable.output)),
  );
  const gone = AbortSignal.abort();
  return async (given: Partial<Parameters<typeof beginCall>[1]> = {}) => {
    const call = beginCall(describeTable, { signal: gone, ...given });
    return service.unary(describeTable, create(describeTable.input), call).then(
      () => true,
      () => false,
    );
  };
}

/** A rate that gives no further call within a test. */
const rate = (scope: RateLimit["scope"], burst: number) => ({ scope, perSecond: 0.001, burst });

describe("limitRate", () => {
  it("says when to come again", async () => {
    const limit = { scope: "total", perSecond: 0.5, burst: 1 } as const;
    const service = serviceOf(
      compose([limitRate([counted(limit)])], async () => create(describeTable.output)),
    );
    const ask = () => service.unary(describeTable, create(describeTable.input), beginCall(describeTable));
    await ask();
    const isLate = (error: unknown) =>
      isLanceError(error, "Throttling") && error.headers["retry-after"] === "2";
    await assert.rejects(ask(), isLate);
  });

  it("counts a caller by its name and the way in which it has proved it", async () => {
    const call = callerOf(rate("principal", 1));
    assert.equal(await call({ principal: ann, peer: "192.0.2.1" }), true);
    assert.equal(await call({ principal: { ...ann, credentialId: "2" }, peer: "192.0.2.2" }), false);
    assert.equal(await call({ principal: { ...ann, by: "oidc" } }), true);
    assert.equal(await call({ principal: { ...ann, name: "bob" } }), true);
  });

  it("counts callers without a name by their address", async () => {
    const call = callerOf(rate("principal", 1));
    const calls = ["192.0.2.1", "192.0.2.1", "192.0.2.2"].map((peer) => call({ peer }));
    assert.deepEqual(await Promise.all(calls), [true, false, true]);
  });

  it("believes no header about the address", async () => {
    const call = callerOf(rate("address", 1));
    const from = (forwarded: string) => ({
      peer: "192.0.2.1",
      headers: { "x-forwarded-for": forwarded, forwarded: `for=${forwarded}`, "x-real-ip": forwarded },
    });
    assert.deepEqual([await call(from("198.51.100.1")), await call(from("198.51.100.2"))], [true, false]);
  });

  it("does not take from a later limit what an earlier one refuses", async () => {
    const call = callerOf(rate("principal", 1), rate("total", 2));
    for (const expected of [true, false, false]) assert.equal(await call({ principal: ann }), expected);
    assert.equal(await call({ principal: { ...ann, name: "bob" } }), true);
    assert.equal(await call({ principal: { ...ann, name: "cat" } }), false);
  });

  it("waits for a bucket elsewhere, and then asks the later limits", async () => {
    const asked: string[] = [];
    const bucket = (name: string, ms: number | Promise<number>) => ({
      limit: rate("total", 1),
      buckets: {
        take() {
          asked.push(name);
          return ms;
        },
      },
    });
    const service = (...limits: ReturnType<typeof bucket>[]) =>
      serviceOf(compose([limitRate(limits)], async () => create(describeTable.output)));
    const ask = (of: ReturnType<typeof service>) =>
      of.unary(describeTable, create(describeTable.input), beginCall(describeTable));
    await ask(service(bucket("far", Promise.resolve(0)), bucket("near", 0)));
    assert.deepEqual(asked, ["far", "near"]);
    const full = service(bucket("full", Promise.resolve(1_500)), bucket("unasked", 0));
    await assert.rejects(
      ask(full),
      (error) => isLanceError(error, "Throttling") && error.headers["retry-after"] === "2",
    );
    assert.deepEqual(asked, ["far", "near", "full"]);
  });
});
