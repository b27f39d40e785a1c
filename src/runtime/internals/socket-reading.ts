import type { Socket } from "node:net";

/** The part of a socket that reads from the system; Node's HTTP/2 takes its bytes without JavaScript. */
interface Handle {
  /** Bytes that the system has not taken yet. */
  readonly writeQueueSize: number;
  readStart(): number;
  readStop(): number;
}

const handleOf = (socket: Socket) => (socket as Socket & { readonly _handle?: Handle | null })._handle;

/**
 * Stops reading from a connection, without the stream of its socket: HTTP/2 does not read that.
 *
 * @returns whether it has stopped. While Node sends, it stops and starts by itself.
 */
export function stopReading(socket: Socket): boolean {
  const handle = handleOf(socket);
  return handle?.writeQueueSize === 0 && handle.readStop() === 0;
}

/**
 * Reads from a connection again.
 *
 * @returns false if that has to wait, because Node sends and does not want to read meanwhile
 */
export function startReading(socket: Socket): boolean {
  const handle = handleOf(socket);
  if (handle == null) return true;
  if (handle.writeQueueSize > 0) return false;
  handle.readStart();
  return true;
}
