import { constants, type ServerHttp2Session } from "node:http2";

const LARGEST_STREAM_ID = 2 ** 31 - 1;
/** Time for the round trip of a ping, in milliseconds. */
export const LONGEST_ROUND_TRIP_MS = 250;

/**
 * Closes an HTTP/2 session when its running streams have ended.
 *
 * It tells the client first, and names the last stream a round trip later, so that the server still answers calls
 * that the client sent before it knew.
 *
 * @param longestMs longest duration of the round trip; Node's own client answers no ping once it knows. Default: 250.
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

/** Whether a promise is resolved or rejected within some milliseconds. */
export async function settlesWithin(promise: Promise<void>, milliseconds: number): Promise<boolean> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), milliseconds);
  });
  const settled = await Promise.race([promise.then(() => true), late]);
  clearTimeout(timer);
  return settled;
}
