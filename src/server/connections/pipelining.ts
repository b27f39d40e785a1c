import { Socket } from "node:net";

/** Number of requests that a connection of HTTP/1.1 may have under way before no more of it is read. */
const MAX_UNDER_WAY = 16;

/** The number of requests under way on a connection. No client can write it. */
const UNDER_WAY = Symbol("requests under way");

type Http1Socket = Socket & { [UNDER_WAY]?: number; readonly _paused?: boolean };

const ownResume = Socket.prototype.resume;

/** In place of `resume`, which node also calls to read bodies and when answers have gone. */
function resumeLater(this: Socket): Socket {
  return this;
}

/**
 * Notes that a request begins. Node reads any number of requests ahead of their answers, so a client that sends them one after the other would
 * take memory without bound, and the turns of the others. Those that came in one piece with the last begin, too.
 */
export function noteRequest(socket: Http1Socket): void {
  const count = (socket[UNDER_WAY] ?? 0) + 1;
  socket[UNDER_WAY] = count;
  if (count <= MAX_UNDER_WAY) return;
  socket.resume = resumeLater as Socket["resume"];
  socket.pause();
  // After the first bytes of a connection, which the listener has put back, node's stream reads on by itself.
  socket.emit("pause");
}

/** Notes that a request has been answered. */
export function noteAnswer(socket: Http1Socket): void {
  const count = (socket[UNDER_WAY] ?? 0) - 1;
  socket[UNDER_WAY] = count;
  if (count !== MAX_UNDER_WAY) return;
  socket.resume = ownResume;
  // Otherwise node resumes when the client has taken enough of its answers.
  if (socket._paused !== true) socket.resume();
}
