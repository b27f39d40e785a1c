import { setTimeout as sleep } from "node:timers/promises";
import { type DescMethod, type Message, toBinary } from "@bufbuild/protobuf";
import type { StreamRpc } from "../rpc.ts";
import { encodeFrame, FrameReader } from "./frame.ts";
import type { Served } from "./handler.ts";
import { decode, plainData, truncated } from "./message.ts";

/**
 * Node's own client, and so grpc-js, ends the request before it resets a stream: an upload that was cancelled looks
 * complete until the reset arrives in the next packet. Nobody shall commit half of one.
 */
const RESET_GRACE_MS = 5;

/** Serves a call that streams requests, responses or both. */
export function serveStream(rpc: StreamRpc, served: Served): void {
  void run(rpc, served);
}

async function run(rpc: StreamRpc, served: Served): Promise<void> {
  const { exchange } = served;
  try {
    const requests = readMessages(rpc.method, served);
    for await (const message of rpc.handle(requests, served.call)) {
      await exchange.write(encodeFrame(toBinary(rpc.method.output, message), false));
      // Leaving the loop tells the handler that nobody wants the rest.
      if (exchange.done) return;
    }
    exchange.finish();
  } catch (thrown) {
    exchange.fail(thrown);
  }
}

/**
 * The messages of a request. Nothing is read ahead of the consumer but what the stream itself holds, so that its
 * flow control reaches the peer.
 */
async function* readMessages(method: DescMethod, served: Served): AsyncIterable<Message> {
  const reader = new FrameReader(served.maxMessageBytes);
  for await (const piece of readPieces(served)) {
    reader.push(piece);
    for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
      yield decode(method.input, await plainData(frame, served));
    }
  }
  if (reader.partial) throw truncated();
  if (method.methodKind === "client_streaming") {
    await sleep(RESET_GRACE_MS);
    served.call.signal.throwIfAborted();
  }
}

/** The stream's own iterator would destroy the stream when it is left early, and with it the answer. */
async function* readPieces({ exchange }: Served): AsyncIterable<Buffer> {
  const { stream, signal } = exchange;
  let wake = () => {};
  const onChange = () => wake();
  stream.on("readable", onChange).on("end", onChange);
  exchange.onDone = onChange;
  for (;;) {
    if (exchange.done) {
      signal.throwIfAborted();
      return;
    }
    const piece: Buffer | null = stream.read();
    if (piece !== null) yield piece;
    else if (stream.readableEnded) return;
    else {
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  }
}
