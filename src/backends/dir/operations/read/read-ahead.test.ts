import assert from "node:assert/strict";
import { describe, it, vi } from "vitest";
import { isLanceError, type LanceError } from "../../../../namespace/errors.ts";
import { createReadAhead } from "./read-ahead.ts";

const timeout = 60_000;
const signal = () => new AbortController().signal;
const isThrottling = (error: unknown) => isLanceError(error, "Throttling");

describe("createReadAhead", () => {
  it("lets results wait for room in the order in which they came", { timeout }, async () => {
    const readAhead = createReadAhead({ maxBytes: 10 });
    const first = await readAhead.enter(6, signal());
    const order: string[] = [];
    const second = readAhead.enter(6, signal()).then((place) => [order.push("second"), place] as const);
    const third = readAhead.enter(1, signal()).then((place) => [order.push("third"), place] as const);
    first.leave();
    for (const [, place] of [await second, await third]) place.leave();
    assert.deepEqual(order, ["second", "third"]);
    assert.equal(readAhead.held, 0);
  });

  it("lets callers take turns, however many results of one of them wait", { timeout }, async () => {
    const readAhead = createReadAhead({ maxBytes: 10 });
    const first = await readAhead.enter(10, signal());
    const order: string[] = [];
    const waiting = ["a1", "a2", "a3", "b1"].map(async (name) => {
      const place = await readAhead.enter(10, signal(), undefined, name.slice(0, 1));
      order.push(name);
      place.leave();
    });
    first.leave();
    await Promise.all(waiting);
    assert.deepEqual(order, ["a1", "b1", "a2", "a3"]);
  });

  it("takes a result that is larger than all the memory, alone", { timeout }, async () => {
    const readAhead = createReadAhead({ maxBytes: 10 });
    const large = await readAhead.enter(1000, signal());
    assert.equal(readAhead.held, 10);
    large.leave();
    large.leave();
    assert.equal(readAhead.held, 0);
  });

  it("counts results that are in memory already, and lets others wait until they are gone", {
    timeout,
  }, async () => {
    const readAhead = createReadAhead({ maxBytes: 10 });
    const first = readAhead.count(6);
    const second = readAhead.count(6);
    assert.equal(readAhead.held, 12);
    let entered = false;
    const waiting = readAhead.enter(5, signal()).finally(() => {
      entered = true;
    });
    first.leave();
    await new Promise(setImmediate);
    assert.equal(entered, false);
    second.leave();
    (await waiting).leave();
    assert.equal(readAhead.held, 0);
  });

  it("gives background work room that no result waits for, and at most half of all", {
    timeout,
  }, async () => {
    const readAhead = createReadAhead({ maxBytes: 10 });
    const work = readAhead.tryEnter(1000);
    assert.equal(readAhead.held, 5);
    const result = await readAhead.enter(4, signal());
    assert.equal(readAhead.tryEnter(2), undefined);
    const waiting = readAhead.enter(6, signal());
    assert.equal(readAhead.tryEnter(1), undefined);
    work?.leave();
    (await waiting).leave();
    result.leave();
    assert.equal(readAhead.held, 0);
  });

  it("gives all work together at most half of the room, and results do not wait behind work that waits for it", {
    timeout,
  }, async () => {
    const readAhead = createReadAhead({ maxBytes: 10 });
    const change = await readAhead.enterForWork(4, signal());
    let entered = false;
    const another = readAhead.enterForWork(1000, signal()).finally(() => {
      entered = true;
    });
    const small = readAhead.enterForWork(1, signal());
    assert.equal(readAhead.tryEnter(1), undefined);
    const result = await readAhead.enter(6, signal());
    assert.equal(readAhead.held, 10);
    const waiting = readAhead.enter(2, signal());
    result.leave();
    (await waiting).leave();
    assert.equal(entered, false);
    change.leave();
    (await another).leave();
    (await small).leave();
    readAhead.tryEnter(5)?.leave();
    assert.equal(readAhead.held, 0);
  });

  it("throttles a result that waits for too long, and forgets a result whose call ends", {
    timeout,
  }, async () => {
    const readAhead = createReadAhead({ maxBytes: 10, patienceMs: 50 });
    const first = await readAhead.enter(10, signal());
    await assert.rejects(readAhead.enter(1, signal()), isThrottling);
    const controller = new AbortController();
    const waiting = readAhead.enter(1, controller.signal);
    controller.abort();
    await assert.rejects(waiting, (error) => isLanceError(error, "Cancelled"));
    first.leave();
    assert.equal(readAhead.held, 0);
  });

  it("cuts off the reader that has taken nothing for longest, and only when another result needs its room", {
    timeout,
  }, async ({ onTestFinished }) => {
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"],
    });
    onTestFinished(() => void vi.useRealTimers());
    const readAhead = createReadAhead({ maxBytes: 10, stallMs: 20, everyMs: 5 });
    const cut: string[] = [];
    const enter = async (name: string) => {
      const place = await readAhead.enter(5, signal(), (error: LanceError) => {
        assert.ok(isThrottling(error));
        cut.push(name);
        place.leave();
      });
      return place;
    };
    const [longest, other] = [await enter("longest"), await enter("other")];
    longest.given(1);
    vi.advanceTimersByTime(15);
    other.given(1);
    vi.advanceTimersByTime(15);
    assert.deepEqual(cut, []);
    const entered = enter("new");
    vi.advanceTimersByTime(5);
    await entered;
    assert.deepEqual(cut, ["longest"]);
    other.taken();
  });

  it("cuts off a reader that takes little now and then when another result needs its room, and no quick one", {
    timeout,
  }, async ({ onTestFinished }) => {
    vi.useFakeTimers({
      toFake: ["setTimeout", "clearTimeout", "setInterval", "clearInterval", "performance"],
    });
    onTestFinished(() => void vi.useRealTimers());
    const readAhead = createReadAhead({ maxBytes: 10 });
    const cut: string[] = [];
    const enter = async (name: string) => {
      const place = await readAhead.enter(5, signal(), (error) => {
        assert.ok(isThrottling(error));
        cut.push(name);
        place.leave();
      });
      return place;
    };
    const [slow, quick] = [await enter("slow"), await enter("quick")];
    const readPieces = (count: number) => {
      for (let pieces = 0; pieces < count; pieces++) {
        slow.given(1024 * 1024);
        quick.given(4 * 1024 * 1024);
        vi.advanceTimersByTime(4_900);
        slow.taken();
        quick.taken();
      }
    };
    readPieces(3);
    assert.deepEqual(cut, []);
    const entered = enter("new");
    vi.advanceTimersByTime(500);
    assert.deepEqual(cut, ["slow"]);
    await entered;
  });

  it("collects a result that its client left early when another result needs its room", {
    timeout,
  }, async () => {
    const readAhead = createReadAhead({ maxBytes: 10, everyMs: 5 });
    const place = await readAhead.enter(10, signal());
    place.leave({ the: "rest" });
    assert.equal(readAhead.held, 10);
    (await readAhead.enter(10, signal())).leave();
    assert.equal(readAhead.held, 0);
  });
});
