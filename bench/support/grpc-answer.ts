import { once } from "node:events";
import { connect } from "node:http2";
import { buffer } from "node:stream/consumers";

/** A unary rpc and its request. */
export interface GrpcCall {
  readonly port: number;
  readonly path: string;
  /** The encoded request message, without the five bytes of its frame. */
  readonly message: Uint8Array;
}

/** Headers of a call to which the body belongs. */
export const GRPC_HEADERS = { "content-type": "application/grpc", te: "trailers" } as const;

/** Returns the frame of a message, which is the body of a unary call. */
export function messageFrame(message: Uint8Array): Buffer {
  const head = Buffer.alloc(5);
  head.writeUInt32BE(message.byteLength, 1);
  return Buffer.concat([head, message]);
}

/**
 * Calls an rpc a single time.
 *
 * @returns the body of the answer
 * @throws Error if the status of the call is not OK
 */
export async function callOnce({ port, path, message }: GrpcCall): Promise<Buffer> {
  const session = connect(`http://127.0.0.1:${port}`);
  try {
    const stream = session.request({ ":method": "POST", ":path": path, ...GRPC_HEADERS });
    const trailers = once(stream, "trailers");
    stream.end(messageFrame(message));
    const body = await buffer(stream);
    const [{ "grpc-status": status }] = await trailers;
    if (status !== "0") throw new Error(`a call of ${path} has the status ${status}`);
    return body;
  } finally {
    session.close();
  }
}
