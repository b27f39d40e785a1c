import assert from "node:assert/strict";
import { pino } from "pino";
import { test } from "vitest";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import { type Call, copyCall, createCall, endingOf, keepSignal } from "../namespace/call/call.ts";
import { LateSignal } from "./late-signal.ts";

const GONE = new Error("the client disconnected");

function begin(signal: LateSignal): Call {
  return createCall({
    method: LanceNamespaceService.method.describeTable,
    protocol: "rest",
    requestId: "1",
    headers: Object.create(null),
    signal,
    deadline: undefined,
    accept: undefined,
    log: pino({ level: "silent" }),
  });
}

test("calls every listener that is left, once, and keeps the first reason", () => {
  const ending = new LateSignal();
  const called: string[] = [];
  const listeners = ["a", "b", "c", "d"].map((name) => () => void called.push(name));
  for (const listener of listeners) ending.addEventListener("abort", listener);
  ending.removeEventListener("abort", listeners[0] as () => void);
  ending.removeEventListener("abort", listeners[2] as () => void);
  ending.abort(GONE);
  ending.abort(new Error("too late"));
  assert.deepEqual([ending.aborted, ending.reason, called.sort()], [true, GONE, ["b", "d"]]);
});

test("makes a signal that aborts with it, also when it is made afterwards", () => {
  const [before, after] = [new LateSignal(), new LateSignal()];
  const { signal } = before;
  assert.equal(signal.aborted, false);
  before.abort(GONE);
  after.abort(GONE);
  assert.equal(before.signal, signal);
  for (const made of [signal, after.signal]) assert.deepEqual([made.aborted, made.reason], [true, GONE]);
});

test("ends a copy of a call with the call", () => {
  const ending = new LateSignal();
  const call = begin(ending);
  const copy = copyCall(call, { responseHeaders: {} });
  ending.abort(GONE);
  assert.deepEqual([endingOf(call).reason, endingOf(copy).reason, copy.signal], [GONE, GONE, call.signal]);
});

test("lets a call get a signal of its own, which alone ends it from then on", () => {
  const [ending, own] = [new LateSignal(), new AbortController()];
  const call = begin(ending);
  call.signal = own.signal;
  ending.abort(GONE);
  assert.equal(endingOf(call).aborted, false);
  own.abort(GONE);
  assert.equal(endingOf(call).reason, GONE);
});

test("lets an interceptor spread a call, and replace its signal", () => {
  const [ending, own] = [new LateSignal(), new AbortController()];
  const call = begin(ending);
  keepSignal(call);
  const copy = { ...call };
  const other: Call = { ...call, signal: own.signal };
  ending.abort(GONE);
  assert.deepEqual([endingOf(call).reason, endingOf(copy).reason], [GONE, GONE]);
  assert.equal(endingOf(other).aborted, false);
  call.signal = own.signal;
  assert.equal(endingOf(call), own.signal);
});
