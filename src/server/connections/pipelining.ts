import type { ServerResponse } from "node:http";
import { Socket } from "node:net";

/** Number of requests that a connection of HTTP/1.1 may have in flight before no more of it is read. */
const MAX_UNDER_WAY = 16;

/** The number of requests on a connection that are not answered. No client can write it. */
const UNDER_WAY = Symbol("requests in flight");
/** The responses to those of them that wait for the others. */
const WAITING = Symbol("waiting responses");

type Http1Socket = Socket & {
  [UNDER_WAY]?: number;
  [WAITING]?: ServerResponse[];
  readonly _paused?: boolean;
};

const ownResume = Socket.prototype.resume;

/** In place of `resume`, which node also calls to read bodies and when answers have gone. */
function resumeLater(this: Socket): Socket {
  return this;
}

/**
 * Notes that a request has arrived. Node reads any number of requests ahead of their answers, so a client that sends them one after the other would
 * take memory without bound, and the turns of the others. A piece of a few kilobytes has thousands of them.
 *
 * @returns whether it begins; otherwise {@link noteAnswer} returns the response once it may.
 */
export function noteRequest(socket: Http1Socket, response: ServerResponse): boolean {
  const count = (socket[UNDER_WAY] ?? 0) + 1;
  socket[UNDER_WAY] = count;
  if (count <= MAX_UNDER_WAY) return true;
  socket[WAITING] ??= [];
  socket[WAITING].push(response);
  socket.resume = resumeLater as Socket["resume"];
  socket.pause();
  // After the first bytes of a connection, which the listener has put back, node's stream reads on by itself.
  socket.emit("pause");
  return false;
}

/** Notes that a request has been answered. Returns the response to a request that begins then. */
export function noteAnswer(socket: Http1Socket): ServerResponse | undefined {
  const count = (socket[UNDER_WAY] ?? 0) - 1;
  socket[UNDER_WAY] = count;
  if (count === MAX_UNDER_WAY) {
    socket.resume = ownResume;
    // Otherwise node resumes when the client has taken enough of its answers.
    if (socket._paused !== true) socket.resume();
  }
  return socket.destroyed ? undefined : socket[WAITING]?.shift();
}
