import assert from "node:assert/strict";
import { setImmediate as settled } from "node:timers/promises";
import { describe, it } from "vitest";
import { createLoopPace, TURN_MS, TURN_STARTS, UNPACED } from "./loop-pace.ts";

/** Returns a pace whose time and turns the test controls, and work that takes time. */
function fixture() {
  let time = 0;
  const callbacks: (() => void)[] = [];
  let turns = 0;
  const pace = createLoopPace({
    now: () => time,
    turn: () => turns,
    atEndOfTurn: (callback) => void callbacks.push(callback),
  });
  let started: string[] = [];
  return {
    pace,
    pass(ms: number) {
      time += ms;
    },
    /** Asks for a turn for work that takes `ms` milliseconds once it starts. */
    async work(name: string, ms = 0, exchange?: { done: boolean; connection?: object }) {
      if (!pace.enter()) await pace.turn(exchange);
      if (exchange?.done) return;
      started.push(name);
      time += ms;
    },
    /** Whether the pace watches the turns of the loop. */
    watches: () => callbacks.length > 0,
    /** Ends the turn and returns the work that has started since the last one. */
    async turn() {
      for (const callback of callbacks.splice(0)) {
        callback();
        await settled();
      }
      turns += 1;
      const names = started;
      started = [];
      return names;
    },
  };
}

const names = (count: number) => Array.from({ length: count }, (_, index) => String(index));

describe("createLoopPace", () => {
  it("starts work at once until a turn has taken its time, and the rest in later turns", async () => {
    const { work, turn } = fixture();
    const all = names(5).map((name) => work(name, TURN_MS / 2));
    assert.deepEqual(await turn(), ["0", "1"]);
    assert.deepEqual(await turn(), ["2", "3"]);
    assert.deepEqual(await turn(), ["4"]);
    await Promise.all(all);
  });

  it("starts work in order of arrival, also work that arrives while other work waits", async () => {
    const { work, turn } = fixture();
    void work("first", TURN_MS);
    void work("second", TURN_MS);
    assert.deepEqual(await turn(), ["first"]);
    void work("third", TURN_MS);
    assert.deepEqual(await turn(), ["second"]);
    void work("fourth", TURN_MS);
    assert.deepEqual([await turn(), await turn()], [["third"], ["fourth"]]);
  });

  it("starts a bounded number of waiting tasks in a turn, however short they are", async () => {
    const { work, turn } = fixture();
    void work("long", TURN_MS);
    for (const name of names(TURN_STARTS + 1)) void work(name);
    assert.deepEqual(await turn(), ["long"]);
    assert.deepEqual(await turn(), names(TURN_STARTS));
    assert.deepEqual(await turn(), [String(TURN_STARTS)]);
  });

  it("lets each body go on in its turn", async () => {
    const { work, turn } = fixture();
    const bodies = ["a", "b", "c"].map(async (body) => {
      for (let piece = 0; piece < 3; piece++) await work(body, TURN_MS);
    });
    const order: string[] = [];
    while (order.length < 9) order.push(...(await turn()));
    await Promise.all(bodies);
    assert.equal(order.join(""), "abcabcabc");
  });

  it("gives no part of a turn to exchanges that are done, and resolves their promises", async () => {
    const { work, turn } = fixture();
    const gone = { done: false };
    void work("long", TURN_MS);
    const left = names(3).map((name) => work(name, TURN_MS, gone));
    void work("next", TURN_MS);
    assert.deepEqual(await turn(), ["long"]);
    gone.done = true;
    assert.deepEqual(await turn(), ["next"]);
    await Promise.all(left);
  });

  it("starts work once in a while as long as every turn accepts a connection", async () => {
    const { pace, work, turn, pass } = fixture();
    pace.noteConnection();
    for (const name of names(4)) void work(name);
    const starts: string[][] = [];
    for (let count = 0; count < 10; count++) {
      starts.push(await turn());
      pace.noteConnection();
      pass(TURN_MS / 2);
    }
    assert.deepEqual(
      starts.map(({ length }) => length),
      [1, 0, 1, 0, 1, 0, 1, 0, 0, 0],
    );
    assert.deepEqual(starts.flat(), names(4));
  });

  it("goes on as before once a turn accepts no connection", async () => {
    const { pace, work, turn } = fixture();
    pace.noteConnection();
    for (const name of names(4)) void work(name);
    assert.deepEqual(await turn(), ["0"]);
    assert.deepEqual(await turn(), []);
    assert.deepEqual(await turn(), ["1", "2", "3"]);
  });

  it("lets connections take turns, so that one with much work does not hold the others up", async () => {
    const { work, turn } = fixture();
    const [busy, other] = [
      { done: false, connection: {} },
      { done: false, connection: {} },
    ];
    void work("long", TURN_MS);
    for (const name of names(4)) void work(name, TURN_MS, busy);
    void work("a", TURN_MS, other);
    void work("b", TURN_MS);
    const order: string[] = [];
    while (order.length < 7) order.push(...(await turn()));
    assert.deepEqual(order, ["long", "0", "a", "b", "1", "2", "3"]);
  });

  it("gives no part of a turn to a connection that has gone with much work", async () => {
    const { work, turn } = fixture();
    const gone = { done: false, connection: {} };
    void work("long", TURN_MS);
    for (const name of names(1_000)) void work(name, TURN_MS, gone);
    void work("next", TURN_MS, { done: false, connection: {} });
    assert.deepEqual(await turn(), ["long"]);
    gone.done = true;
    assert.deepEqual(await turn(), ["next"]);
  });

  it("rests when nothing waits", async () => {
    const { pace, work, turn, watches } = fixture();
    void work("only", TURN_MS);
    pace.noteConnection();
    while (watches()) await turn();
    assert.equal(watches(), false);
    assert.equal(pace.enter(), true);
  });

  it("starts work in turns of the event loop", async () => {
    const pace = createLoopPace();
    const order: string[] = [];
    const begin = async (name: string) => {
      if (!pace.enter()) await pace.turn();
      order.push(name);
      const end = performance.now() + TURN_MS;
      while (performance.now() < end);
    };
    const all = names(5).map(begin);
    setImmediate(() => order.push("other work"));
    await Promise.all(all);
    assert.deepEqual(
      order.filter((name) => name !== "other work"),
      names(5),
    );
    assert.equal(order.indexOf("other work"), 1);
  });
});

describe("UNPACED", () => {
  it("lets work start at once", () => {
    assert.equal(UNPACED.enter(), true);
  });
});
