import assert from "node:assert/strict";
import type { ServerHttp2Session, ServerHttp2Stream } from "node:http2";
import { type InterceptingListener, status } from "@grpc/grpc-js";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { describeOn, failsWith } from "../../../../test/fixtures/upstreams/grpc.ts";
import { answerWith, plain, upstreamOf } from "../../../../test/fixtures/upstreams/http2.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { ConnectionCall } from "../../../runtime/internals/grpc-connection.ts";
import { createAnswerBudget } from "../../resilience/answer-budget.ts";
import { PacedCall, ResetPace } from "./paced-resets.ts";

/** Number of resets at once. */
const AT_ONCE = 100;

describe("calls to a gRPC upstream that their clients cancel", () => {
  it("break no other call on the connection, and keep their slots until they have ended", async (t) => {
    const open = new Set<ServerHttp2Stream>();
    let [arrived, most] = [0, 0];
    const hold = (stream: ServerHttp2Stream) => {
      open.add(stream);
      stream.on("close", () => open.delete(stream));
      arrived += 1;
      most = Math.max(most, open.size);
    };
    const answerAll = () => {
      for (const stream of open) if (!stream.headersSent) answerWith([plain])(stream, {});
    };
    const [size, places] = [AT_ONCE + 50, AT_ONCE + 51];
    const allowance = { streamResetBurst: AT_ONCE + 10, streamResetRate: 1 };
    const { backend } = await upstreamOf(t, hold, { maxCalls: places }, allowance);
    const cancel = new AbortController();
    const flood = Array.from({ length: size }, () => describeOn(backend, { signal: cancel.signal }));
    const other = describeOn(backend);
    await expect.poll(() => arrived).toBe(places);
    cancel.abort(new LanceError("Cancelled", "the client left"));
    for (const call of flood) await assert.rejects(call, failsWith("Cancelled"));
    const next = Array.from({ length: size }, () => describeOn(backend));
    await expect.poll(() => arrived).toBe(places + AT_ONCE);
    answerAll();
    await expect.poll(() => arrived).toBe(places + size);
    answerAll();
    for (const call of [other, ...next]) assert.equal((await call).table, "t");
    assert.equal(most, places);
  });

  it("end for their clients only when the upstream has taken their requests, whose memory counts until then", async (t) => {
    const noRoom = { settings: { initialWindowSize: 0 } };
    const { backend, upstream } = await upstreamOf(t, () => {}, {}, noRoom);
    let session: ServerHttp2Session | undefined;
    upstream.on("session", (opened) => {
      session = opened;
    });
    let arrived = 0;
    upstream.on("stream", () => {
      arrived += 1;
    });
    const cancel = new AbortController();
    let over = 0;
    const calls = Array.from({ length: AT_ONCE + 50 }, () =>
      describeOn(backend, { signal: cancel.signal }).finally(() => {
        over += 1;
      }),
    );
    await expect.poll(() => arrived).toBe(calls.length);
    cancel.abort(new LanceError("Cancelled", "the client left"));
    for (const call of calls.slice(0, AT_ONCE)) await assert.rejects(call, failsWith("Cancelled"));
    assert.equal(over, AT_ONCE);
    session?.settings({ initialWindowSize: 65_535 });
    for (const call of calls) await assert.rejects(call, failsWith("Cancelled"));
  });
});

/** Opens a call whose answers come by `listener`, and notes what is done with it; `take` takes a message of its request. */
function openCall(pace: ResetPace) {
  const done: string[] = [];
  let take = () => {};
  const codes: status[] = [];
  const noted = (name: string) => () => void done.push(name);
  let listener: InterceptingListener | undefined;
  const call = new PacedCall(
    pace,
    { answers: createAnswerBudget(), unread: { add() {}, remove() {} } },
    { onReceiveMetadata() {}, onReceiveMessage() {}, onReceiveStatus: ({ code }) => void codes.push(code) },
    (own) => {
      listener = own;
      const names = ["cancelWithStatus", "startRead", "halfClose"];
      const sendMessageWithContext: ConnectionCall["sendMessageWithContext"] = ({ callback }) => {
        done.push("sendMessageWithContext");
        take = () => callback?.();
      };
      return {
        ...Object.fromEntries(names.map((name) => [name, noted(name)])),
        sendMessageWithContext,
      } as ConnectionCall;
    },
  );
  const cancel = () => call.cancelWithStatus(status.CANCELLED, "gone");
  return { call, cancel, take: () => take(), done, codes, listener: listener as InterceptingListener };
}

describe("the resets of a connection", () => {
  beforeEach(() => void vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "Date", "hrtime"] }));
  afterEach(() => void vi.useRealTimers());

  function openPace() {
    let held = 0;
    const pace = new ResetPace({ hold: () => void held++, leave: () => void held-- });
    return { pace, held: () => held };
  }
  const used = (pace: ResetPace, isEarly: boolean) => {
    for (let count = 0; ; count += 1) if (!pace.mayReset(isEarly)) return count;
  };

  it("are a hundred at once, and thirty a second", () => {
    const { pace } = openPace();
    assert.equal(used(pace, false), AT_ONCE);
    vi.advanceTimersByTime(1_000);
    assert.equal(used(pace, false), 30);
  });

  it("are less than half of all calls, as long as they are early", () => {
    const { pace } = openPace();
    let [resets, ended] = [0, 0];
    for (let second = 0; second < 600; second += 1) {
      resets += used(pace, true);
      pace.end({ reset() {} });
      ended += 1;
      assert.ok(resets < Math.max(250, (resets + ended) / 2), `${resets} beside ${ended}`);
      vi.advanceTimersByTime(1_000);
    }
    assert.equal(used(pace, false), AT_ONCE);
  });

  it("wait for two seconds beyond these, in the slots of their calls", () => {
    const { pace, held } = openPace();
    used(pace, true);
    const calls = Array.from({ length: AT_ONCE }, () => openCall(pace));
    for (const { cancel } of calls) cancel();
    assert.equal(held(), AT_ONCE);
    const resets = () => calls.filter(({ done }) => done.includes("cancelWithStatus")).length;
    vi.advanceTimersByTime(1_999);
    assert.equal(resets(), 0);
    vi.advanceTimersByTime(1);
    assert.equal(resets(), 60);
    vi.advanceTimersByTime(2_000);
    assert.deepEqual([resets(), held()], [AT_ONCE, 0]);
  });

  it("are not sent for calls that end before, and do not end the requests of others", async () => {
    const { pace, held } = openPace();
    used(pace, true);
    const { call, cancel, done, codes, listener } = openCall(pace);
    cancel();
    await new Promise(process.nextTick);
    assert.deepEqual(codes, [status.CANCELLED]);
    call.sendMessageWithContext({}, Buffer.alloc(1));
    call.halfClose();
    listener.onReceiveMessage(Buffer.alloc(1));
    assert.deepEqual(done, ["startRead", "startRead"]);
    listener.onReceiveStatus({ code: status.OK, details: "", metadata: null as never });
    assert.equal(held(), 0);
    vi.advanceTimersByTime(10_000);
    assert.deepEqual([codes, done], [[status.CANCELLED], ["startRead", "startRead"]]);
  });

  it("end calls for their callers when the connection has taken the request, or they have ended", async () => {
    const { pace } = openPace();
    used(pace, true);
    const calls = [openCall(pace), openCall(pace), openCall(pace)];
    for (const { call, cancel } of calls) {
      call.sendMessageWithContext({}, Buffer.alloc(1));
      cancel();
    }
    await new Promise(process.nextTick);
    const ended = () => calls.map(({ codes }) => codes);
    assert.deepEqual(ended(), [[], [], []]);
    const [taken, over] = calls;
    taken?.take();
    over?.listener.onReceiveStatus({ code: status.OK, details: "", metadata: null as never });
    assert.deepEqual(ended(), [[status.CANCELLED], [status.CANCELLED], []]);
  });
});
