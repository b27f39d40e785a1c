import { constants, type ServerHttp2Session } from "node:http2";

const LARGEST_STREAM_ID = 2 ** 31 - 1;
/** For the round trip of a ping, in milliseconds. */
export const LONGEST_ROUND_TRIP_MS = 250;

/**
 * Ends an HTTP/2 session when its running streams have ended.
 *
 * The client is told first, and only a round trip later which stream is the last: what it sent before it knew is
 * still answered.
 *
 * @param longestMs how long the round trip may take; Node's own client answers no ping once it knows. Default: 250.
 */
export function drainSession(session: ServerHttp2Session, longestMs = LONGEST_ROUND_TRIP_MS): void {
  if (session.destroyed || session.closed) return;
  const close = () => {
    clearTimeout(timer);
    if (!session.destroyed) session.close();
  };
  const timer = setTimeout(close, longestMs);
  session.goaway(constants.NGHTTP2_NO_ERROR, LARGEST_STREAM_ID);
  session.ping(close);
}

/** Whether a promise settles within some milliseconds. */
export async function settlesWithin(promise: Promise<void>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  const settled = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return settled;
}
