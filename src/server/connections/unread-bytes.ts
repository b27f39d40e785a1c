import { constants, type ServerHttp2Stream } from "node:http2";
import { type ByteBudget, createByteBudget } from "../../namespace/byte-budget.ts";

/** Time between two looks at the streams, in milliseconds. */
const CHECK_MS = 100;

/** The place of a stream among the watched ones. No client can write it. */
const PLACE = Symbol("place among the watched streams");
/** Unread bytes at the last look. */
const BEFORE = Symbol("unread bytes before");

type Watched = ServerHttp2Stream & { [PLACE]: number; [BEFORE]?: number };

/** Returns the bytes that nothing has read since the last look. Others may be read by now, and count there. */
function stuckIn(stream: Watched): number {
  const { readableLength, [BEFORE]: before = 0 } = stream;
  stream[BEFORE] = readableLength;
  return Math.min(readableLength, before);
}

/**
 * Creates the function that counts what has arrived on a stream of HTTP/2 and is not read yet. Node takes as much as the window of each stream allows,
 * while nothing reads: the window of the connection does not bound it. Where the budget has no room, the streams with the most unread bytes are reset.
 *
 * @param budget Default: no bound.
 */
export function countUnread(budget: ByteBudget = createByteBudget()): (stream: ServerHttp2Stream) => void {
  const streams: Watched[] = [];
  const hold = budget.open();
  let timer: NodeJS.Timeout | undefined;

  function leave(this: Watched): void {
    const last = streams.pop() as Watched;
    if (last === this) return;
    streams[this[PLACE]] = last;
    last[PLACE] = this[PLACE];
  }

  function fits(bytes: number): boolean {
    try {
      hold.take(bytes);
      return true;
    } catch {
      return false;
    }
  }

  function check(): void {
    hold.release();
    const stuck = streams.map((stream) => ({ stream, bytes: stuckIn(stream) }));
    let unread = stuck.reduce((sum, { bytes }) => sum + bytes, 0);
    if (!fits(unread)) {
      for (const { stream, bytes } of stuck.sort((a, b) => b.bytes - a.bytes)) {
        unread -= bytes;
        stream.close(constants.NGHTTP2_ENHANCE_YOUR_CALM);
        if (fits(unread)) break;
      }
    }
    timer = streams.length === 0 ? undefined : setTimeout(check, CHECK_MS).unref();
  }

  return (stream) => {
    if (stream.endAfterHeaders) return;
    (stream as Watched)[PLACE] = streams.push(stream as Watched) - 1;
    stream.on("close", leave);
    if (timer === undefined) timer = setTimeout(check, CHECK_MS).unref();
  };
}
