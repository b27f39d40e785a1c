import type { Socket } from "node:net";
import { startReading, stopReading } from "../../runtime/internals/socket-reading.ts";
import { LOOP, type LoopClock, watchTurns } from "../../runtime/loop-pace.ts";

/**
 * Shares the turns of the event loop among connections of HTTP/2.
 *
 * Node reads every connection that has bytes in a single turn, and creates or ends all streams of which it reads. A burst on twenty
 * connections would keep others waiting for the creation of 2,000 streams, before anything could let their requests wait.
 */
export interface ReadingTurns {
  /** Whether reading has taken its share, so that no further connection should begin to be read. */
  readonly isOver: boolean;
  /** Adds a connection, until it closes. */
  add(socket: Socket): void;
  /**
   * Notes a stream of a connection that Node has read, or its end. Once reading has taken its share of the turn, it goes on in the next one, where this
   * connection comes last.
   *
   * @param more work that has yet to come of what was read, in milliseconds. Default: none
   */
  noteRead(socket: Socket, more?: number): void;
  /** Notes that a connection was accepted. Others may wait behind it, so until a turn brings none, reading pauses after each share. */
  noteConnection(): void;
}

/** The connections of a port, as {@link createReadingTurns} stops and starts them. */
export interface Reading {
  /** Returns whether it has stopped. */
  stop(socket: Socket): boolean;
  /** Returns false if that has to wait. */
  start(socket: Socket): boolean;
}

/** Time of a turn after its first read until no more is read, in milliseconds. */
export const READING_MS = 3;

/** Time in which Node has created a stream before it can be noted, in milliseconds. */
const CREATION_MS = 0.03;

/** Time that is added for each connection, in milliseconds: to stop and start one takes a twentieth of it. */
const CONNECTION_MS = 0.02;

/** Pause before another attempt to read from connections that have been sending, in milliseconds. */
const RETRY_MS = 10;

/** Creates the turns. Default: those of the event loop of this thread. */
export function createReadingTurns(
  { now, turn: turnOfLoop, atEndOfTurn }: LoopClock = LOOP,
  reading: Reading = { stop: stopReading, start: startReading },
): ReadingTurns {
  /** The connection whose turn it is comes first. */
  const sockets = new Set<Socket>();
  const stopped = new Set<Socket>();
  /** When this share began and in which turn, and the time that Node has taken in it before it could be noted. */
  let [began, beganIn, created] = [Number.NEGATIVE_INFINITY, -1, 0];
  /** When reading may go on in spite of new connections. */
  let resumes: number | undefined;
  let isOver = false;
  const turns = watchTurns(atEndOfTurn, endTurn);

  const share = () => READING_MS + sockets.size * CONNECTION_MS;

  function endTurn(): boolean {
    if (isOver) goOn(now());
    return isOver;
  }

  /** Reads on, but after a share as long as accepting has lasted meanwhile while there are new connections. */
  function goOn(time: number): void {
    resumes ??= time + (time - began);
    if (turns.isCrowded && time < resumes) return;
    [isOver, began, beganIn, created, resumes] = [false, time, turnOfLoop() + 1, 0, undefined];
    startAll();
  }

  function startAll(): void {
    if (isOver) return;
    for (const socket of stopped) if (reading.start(socket)) stopped.delete(socket);
    if (stopped.size > 0) setTimeout(startAll, RETRY_MS).unref();
  }

  return {
    get isOver() {
      return isOver;
    },
    add(socket) {
      sockets.add(socket);
      socket.on("close", () => {
        sockets.delete(socket);
        stopped.delete(socket);
      });
    },
    noteRead(socket, more = 0) {
      if (isOver) return;
      created += CREATION_MS;
      const time = now() + created + more;
      if (time - began < share()) return;
      if (!turns.isCrowded) {
        // Asking for the turn costs more than asking for the time.
        const turn = turnOfLoop();
        if (turn !== beganIn) {
          [began, beganIn, created] = [time - more, turn, 0];
          if (more < share()) return;
        }
      }
      isOver = true;
      if (sockets.delete(socket)) sockets.add(socket);
      for (const each of sockets) if (reading.stop(each)) stopped.add(each);
      turns.watch();
    },
    noteConnection() {
      if (!turns.isCrowded) [began, created] = [now(), 0];
      turns.noteConnection();
    },
  };
}
