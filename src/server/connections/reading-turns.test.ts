import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { describe, it } from "vitest";
import { createReadingTurns, READING_MS } from "./reading-turns.ts";

/** Returns turns whose time the test controls, and connections of which each is read in every turn unless it is stopped. */
function fixture(count: number) {
  let [time, turn] = [0, 0];
  let callbacks: (() => void)[] = [];
  const reads = new Set<Socket>();
  const turns = createReadingTurns(
    { now: () => time, turn: () => turn, atEndOfTurn: (callback) => void callbacks.push(callback) },
    { stop: (socket) => reads.delete(socket), start: (socket) => Boolean(reads.add(socket)) },
  );
  const sockets = Array.from({ length: count }, () =>
    Object.assign(new EventEmitter(), { destroyed: false }),
  );
  for (const socket of sockets as unknown as Socket[]) {
    turns.add(socket);
    reads.add(socket);
  }
  return {
    turns,
    sockets: sockets as unknown as Socket[],
    reads,
    pass(ms: number) {
      time += ms;
    },
    /** Reads from all connections that are not stopped, each with work that takes `ms` milliseconds; returns which were read. */
    read(ms: number) {
      const read: number[] = [];
      for (const socket of [...reads]) {
        if (!reads.has(socket)) continue;
        time += ms;
        read.push(sockets.indexOf(socket as never));
        turns.noteRead(socket);
      }
      return read;
    },
    endTurn() {
      const due = callbacks;
      callbacks = [];
      for (const callback of due) callback();
      turn += 1;
    },
    watches: () => callbacks.length > 0,
  };
}

const LONG_MS = 2 * READING_MS;

describe("createReadingTurns", () => {
  it("reads from all connections in a turn as long as that is short", () => {
    const { read, endTurn, watches } = fixture(5);
    for (let turn = 0; turn < 100; turn++) {
      assert.deepEqual(read(READING_MS / 10), [0, 1, 2, 3, 4]);
      assert.equal(watches(), false);
      endTurn();
    }
  });

  it("reads from the other connections in later turns, and lets the one that took long come last", () => {
    const { read, endTurn, turns } = fixture(3);
    // The first read of a turn is where its share begins.
    assert.deepEqual(read(LONG_MS), [0, 1]);
    assert.equal(turns.isOver, true);
    endTurn();
    assert.equal(turns.isOver, false);
    const order = [0, 1, 2, 3].map(() => {
      const taken = read(LONG_MS);
      endTurn();
      return taken;
    });
    assert.deepEqual(order, [[0], [2], [1], [0]]);
  });

  it("counts the time in which Node creates the streams of a connection", () => {
    const { turns, sockets } = fixture(3);
    for (let streams = 0; streams < 100; streams++) turns.noteRead(sockets[0] as Socket);
    assert.equal(turns.isOver, false);
    for (let streams = 0; streams < 5; streams++) turns.noteRead(sockets[1] as Socket);
    assert.equal(turns.isOver, true);
  });

  it("stops at once for work that has yet to come", () => {
    const { turns, sockets, reads, endTurn } = fixture(3);
    turns.noteRead(sockets[1] as Socket, LONG_MS);
    assert.equal(reads.size, 0);
    endTurn();
    assert.equal(reads.size, 3);
  });

  it("reads nothing more from a connection that closes meanwhile", () => {
    const { turns, sockets, reads, endTurn } = fixture(3);
    turns.noteRead(sockets[0] as Socket, LONG_MS);
    sockets[2]?.emit("close", false);
    endTurn();
    assert.deepEqual(reads, new Set([sockets[1], sockets[0]]));
  });

  it("pauses while connections are accepted, for as long as it has read", () => {
    const { turns, read, endTurn, pass } = fixture(2);
    turns.noteConnection();
    assert.deepEqual(read(LONG_MS), [0]);
    for (let passed = 0; passed < LONG_MS; passed++) {
      turns.noteConnection();
      endTurn();
      assert.deepEqual(read(0), [], `after ${passed} ms`);
      pass(1);
    }
    turns.noteConnection();
    endTurn();
    assert.notDeepEqual(read(0), []);
  });

  it("reads on as soon as a turn accepts no connection", () => {
    const { turns, read, endTurn } = fixture(2);
    turns.noteConnection();
    assert.deepEqual(read(LONG_MS), [0]);
    endTurn();
    assert.deepEqual(read(0), []);
    endTurn();
    assert.deepEqual(read(0).length, 2);
  });
});
