import type { experimental } from "@grpc/grpc-js";

/** A connection of a channel, as grpc-js's load balancing policies know it. */
export type Connection = experimental.SubchannelInterface;

/** Maker of the calls of a connection. */
export type CallMaker = ReturnType<Connection["getRealSubchannel"]>;

/** A call on a connection. */
export type ConnectionCall = ReturnType<CallMaker["createCall"]>;

/** The part of a call of grpc-js that puts the pieces of messages together; it ends the call with the text of an error. */
interface Assembling {
  readonly decoder?: { write(piece: Buffer): Buffer[] };
  /** The pieces that it has not got yet. */
  readonly http2Stream?: { readonly readableLength: number };
}

const partsOf = (call: ConnectionCall) => call as Partial<ConnectionCall> as Assembling;

/** Returns what makes the calls of a connection. grpc-js compares these by identity, so that nothing can take their place. */
export function callMakerOf(connection: Connection): CallMaker {
  return connection.getRealSubchannel();
}

/**
 * Counts the pieces of a call's messages as they arrive; grpc-js would keep any number of them.
 *
 * @param count called with the bytes of each piece; an error that it throws ends the call
 */
export function countPieces(call: ConnectionCall, count: (bytes: number) => void): void {
  const { decoder } = partsOf(call);
  if (decoder === undefined) return;
  const write = decoder.write.bind(decoder);
  decoder.write = (piece) => {
    count(piece.byteLength);
    return write(piece);
  };
}

/** Returns how many bytes of a call have arrived that grpc-js has not read yet. */
export function unreadBytesOf(call: ConnectionCall): number {
  return partsOf(call).http2Stream?.readableLength ?? 0;
}
