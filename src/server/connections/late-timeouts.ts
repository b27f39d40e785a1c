import { Socket } from "node:net";

/** Time between two checks of the sockets, in milliseconds. */
const CHECK_MS = 1_000;

/** The part of a socket that this module adds to it. */
type Timed = Socket & { [TIMEOUT]?: Timeout };

/** The timeout of a socket. No client can write it. */
const TIMEOUT = Symbol("timeout of the socket");

const setOwnTimeout = Socket.prototype.setTimeout;

/**
 * Returns a function that gives a new socket another `setTimeout`, under which a timeout costs nothing while bytes flow.
 *
 * `node:http` changes the timeout of a connection at the start and at the end of each request, and node moves its timer with each read and
 * each write, which takes a noticeable part of a short call. Here, a socket gets node's timer only when a check finds that it has not
 * moved since the check before. So a timeout expires as node's does, up to two checks later.
 *
 * @param shortestMs the shortest timeout of any socket; it bounds the time between two checks
 */
export function createLateTimeouts(shortestMs: number): (socket: Socket) => void {
  const checkMs = Math.min(CHECK_MS, shortestMs / 4);
  const sockets = new Set<Timed>();
  let timer: NodeJS.Timeout | undefined;

  /** Without a socket that moves, nothing is left to check, and an idle process can sleep. */
  function check(): void {
    let isMoving = false;
    for (const socket of sockets) if (socket[TIMEOUT]?.check(socket)) isMoving = true;
    timer = isMoving ? setTimeout(check, checkMs).unref() : undefined;
  }

  /** A single function for all sockets, which node calls in the place of its own. */
  function setLateTimeout(this: Timed, milliseconds: number, callback?: () => void): Timed {
    if (callback !== undefined) this[milliseconds === 0 ? "off" : "once"]("timeout", callback);
    this[TIMEOUT]?.start(this, milliseconds);
    if (timer === undefined) timer = setTimeout(check, checkMs).unref();
    return this;
  }

  return (socket: Timed) => {
    socket[TIMEOUT] = new Timeout();
    socket.setTimeout = setLateTimeout as Socket["setTimeout"];
    sockets.add(socket);
    socket.on("close", () => sockets.delete(socket));
  };
}

class Timeout {
  #milliseconds = 0;
  /** Bytes in both directions at the last check. */
  #bytes = -1;
  #hasTimer = false;

  start(socket: Socket, milliseconds: number): void {
    this.#milliseconds = milliseconds;
    if (!this.#hasTimer) return;
    this.#hasTimer = false;
    this.#bytes = -1;
    setOwnTimeout.call(socket, 0);
  }

  /** Gives a socket that has not moved node's timer; returns whether it has none yet, but may get one. */
  check(socket: Socket): boolean {
    if (this.#hasTimer || this.#milliseconds === 0) return false;
    const bytes = socket.bytesRead + socket.bytesWritten;
    const isQuiet = bytes === this.#bytes;
    this.#bytes = bytes;
    if (!isQuiet) return true;
    this.#hasTimer = true;
    setOwnTimeout.call(socket, this.#milliseconds);
    return false;
  }
}
