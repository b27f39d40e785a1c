import assert from "node:assert/strict";
import { test } from "vitest";
import { type LoopClock, type LoopPace, UNPACED } from "../../runtime/loop-pace.ts";
import { createArrivalPace } from "./arrival-pace.ts";

const METHOD = "/lance.namespace.v1.LanceNamespaceService/DescribeTable";
const GRPC = "application/grpc";
/** A pace that starts nothing. */
const FULL: LoopPace = { ...UNPACED, enter: () => false };

/** Returns an event loop whose turns end on request. */
function loop() {
  let [turn, callbacks]: [number, (() => void)[]] = [0, []];
  const clock: LoopClock = {
    now: () => 0,
    turn: () => turn,
    atEndOfTurn: (callback) => void callbacks.push(callback),
  };
  return {
    clock,
    endTurn() {
      turn += 1;
      for (const callback of callbacks.splice(0)) callback();
    },
  };
}

test("a burst of native gRPC in a turn of the event loop begins in later turns, and few calls begin at once", () => {
  const { clock, endTurn } = loop();
  const pace = createArrivalPace(FULL, FULL, new Set([METHOD]), clock);
  const begunOf = (count: number) =>
    Array.from({ length: count }, () => pace.enter(METHOD, GRPC)).filter(Boolean).length;
  assert.ok(begunOf(1_000) <= 48);
  assert.equal(begunOf(10), 0);
  endTurn();
  assert.equal(begunOf(10), 10);
  for (let turns = 0; turns < 100; turns++) {
    endTurn();
    assert.equal(begunOf(16), 16, `turn ${turns}`);
  }
});

test("an unknown method of native gRPC has a turn like a page", () => {
  const { clock } = loop();
  assert.equal(createArrivalPace(FULL, FULL, new Set([METHOD]), clock).enter("/a.B/C", GRPC), false);
  assert.equal(createArrivalPace(UNPACED, FULL, new Set(), clock).enter("/a.B/C", GRPC), true);
});
