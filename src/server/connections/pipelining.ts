import type { ServerResponse } from "node:http";
import type { Socket } from "node:net";

/** Number of requests that a connection of HTTP/1.1 may have in flight before no more of it is read. */
const MAX_UNDER_WAY = 16;

/** The responses of a connection that have not ended, oldest first. No client can write it. */
const OPEN = Symbol("open responses");

type Http1Socket = Socket & { [OPEN]?: ServerResponse[] };

/** Returns the responses of a connection of HTTP/1.1 that have not ended, oldest first. */
export function openResponses(socket: Http1Socket): readonly ServerResponse[] {
  return socket[OPEN] ?? [];
}

/** Stops a connection again, which node resumes to read bodies and when responses have been sent. */
function stayPaused(this: Http1Socket): void {
  if (openResponses(this).length > MAX_UNDER_WAY) this.pause();
}

/**
 * Notes that a request has arrived. Node reads any number of requests ahead of their responses, so a client that sends them one after the
 * other would take memory without bound, and the turns of the others. A piece of a few kilobytes has thousands of them.
 *
 * @returns whether it begins; otherwise {@link noteAnswer} returns the response once it may.
 */
export function noteRequest(socket: Http1Socket, response: ServerResponse): boolean {
  socket[OPEN] ??= [];
  const count = socket[OPEN].push(response);
  if (count <= MAX_UNDER_WAY) return true;
  if (count === MAX_UNDER_WAY + 1) socket.on("resume", stayPaused);
  socket.pause();
  // After the first bytes of a connection, which the listener has put back, node's stream reads on by itself.
  socket.emit("pause");
  return false;
}

/** Notes that a response has ended. Returns the response to a request that begins then. */
export function noteAnswer(socket: Http1Socket, response: ServerResponse): ServerResponse | undefined {
  const open = socket[OPEN] ?? [];
  const place = open.indexOf(response);
  if (place === -1) return undefined;
  open.splice(place, 1);
  if (open.length === MAX_UNDER_WAY) {
    socket.off("resume", stayPaused);
    // Node stops it again if the client does not read its responses.
    socket.resume();
  }
  return socket.destroyed || place >= MAX_UNDER_WAY ? undefined : open[MAX_UNDER_WAY - 1];
}
