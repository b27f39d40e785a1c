import { addressKey } from "../../namespace/call/caller-key.ts";
import { monotonicNow } from "../../runtime/clocks.ts";
import { type CellShape, type KeyedCells, openCells } from "../../runtime/threads/keyed-cells.ts";

/** How many streams the client of a connection may reset, as options of an HTTP/2 session: at once, and each second. */
export interface ResetAllowance {
  readonly streamResetBurst: number;
  readonly streamResetRate: number;
}

/**
 * Allowance of a connection. A busy client cancels many calls: every call that its connection may have open at once, as many
 * again, and then some each second. The rate is ten times Node's default; a higher rate only takes more time.
 */
const FULL: ResetAllowance = { streamResetBurst: 200, streamResetRate: 300 };

/**
 * Allowance of a new connection from an address with a broken connection. All clients behind a proxy have its address, so
 * this leaves them Node's default rate.
 */
const REDUCED: ResetAllowance = { streamResetBurst: 20, streamResetRate: 33 };

/** How long an address is remembered after its last broken connection, in milliseconds. */
const REMEMBERED_MS = 60_000;

/** Shape of the numbers of addresses: the rank alone, which is the time of the last broken connection. */
export const RESETS_SHAPE: CellShape = { numbers: 0 };

/** Allowances of connections by their client's address; networks of IPv6 count as a single one. */
export interface ResetAllowances {
  /** Returns the allowance of a new connection. */
  of(peer: string | undefined): ResetAllowance;
  /** Whether a connection from the address was ended so within the last minute. */
  hasBroken(peer: string | undefined): boolean;
  /** Notes that a connection was ended because its client broke the protocol or reset too many streams. */
  noteBroken(peer: string | undefined): void;
}

/**
 * Creates allowances. Without them, a client that is cut off for a flood of resets reconnects and has a whole allowance
 * again.
 *
 * @param cells broken connections, of the shape {@link RESETS_SHAPE}. Default: those of this thread alone.
 * @param now a clock in milliseconds, not 0. Default: the monotonic clock, which the workers of a process share.
 */
export function createResetAllowances(
  cells: KeyedCells = openCells(RESETS_SHAPE),
  now: () => number = monotonicNow,
): ResetAllowances {
  function hasBroken(peer: string | undefined): boolean {
    const brokenAt = cells.look(addressKey({ peer }), (times, at) => times[at] as number);
    return brokenAt !== undefined && now() - brokenAt < REMEMBERED_MS;
  }

  return {
    hasBroken,
    of: (peer) => (hasBroken(peer) ? REDUCED : FULL),
    noteBroken(peer) {
      cells.change(addressKey({ peer }), (times, at) => {
        times[at] = now();
      });
    },
  };
}

/** Length of the preface of a connection of HTTP/2, in bytes. */
const PREFACE_BYTES = 24;
/** Length of the head of a frame, in bytes. */
const FRAME_HEAD_BYTES = 9;
const RST_STREAM = 3;

/**
 * Counts the resets among the first bytes of a connection of HTTP/2. Its session creates every stream before it counts the resets, and
 * hands all of them over in a single turn of the event loop.
 *
 * @param bytes the preface and what follows it; the last frame may be incomplete
 */
export function countFirstResets(bytes: Buffer): number {
  let resets = 0;
  for (let at = PREFACE_BYTES; at + FRAME_HEAD_BYTES <= bytes.length; ) {
    if (bytes[at + 3] === RST_STREAM) resets += 1;
    at += FRAME_HEAD_BYTES + bytes.readUIntBE(at, 3);
  }
  return resets;
}
