import { create, type Message } from "@bufbuild/protobuf";
import { senderKey } from "../../namespace/call/caller-key.ts";
import { isRefused } from "../../namespace/call/reception.ts";
import { keptBytes, type StreamRpc } from "../rpc.ts";
import { encodeMessage, FrameReader } from "./frame.ts";
import { continuedMessage, putLongField } from "./long-field.ts";
import { decode, plainData, truncated } from "./message.ts";
import type { Served } from "./server-call.ts";

/** Serves a call that streams requests, responses or both. */
export function serveStream(rpc: StreamRpc, served: Served): void {
  void run(rpc, served);
}

async function run(rpc: StreamRpc, served: Served): Promise<void> {
  const { serverCall } = served;
  try {
    const requests = readMessages(rpc, served);
    for await (const message of rpc.handle(requests, served.call)) {
      await serverCall.lend(encodeMessage(rpc.method.output, message));
      // Leaving the loop tells the handler that the rest is not needed.
      if (serverCall.done) return;
    }
    serverCall.finish();
  } catch (thrown) {
    serverCall.fail(thrown);
  } finally {
    served.hold.release();
  }
}

/**
 * Yields the messages of a request. It reads nothing ahead of the consumer beyond what the stream itself holds, so
 * that flow control reaches the peer. The bytes of messages count as long as the call keeps them.
 */
async function* readMessages({ method, longField }: StreamRpc, served: Served): AsyncIterable<Message> {
  if (isRefused(served.call.reception)) {
    yield create(method.input);
    return;
  }
  const { serverCall, hold, pace, maxMessageBytes } = served;
  const reader = new FrameReader(maxMessageBytes, longField);
  const keeps = keptBytes(method);
  const arrive = () =>
    hold.arrive(
      () => senderKey(served.call),
      (error) => serverCall.cutOff(error),
    );
  arrive();
  if (method.methodKind === "server_streaming") serverCall.expectMessage();
  for await (const piece of readPieces(served)) {
    hold.take(piece.length);
    reader.push(piece);
    for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
      const { piece, continues = false } = frame;
      if (!continues && !pace.enter()) await pace.turn(serverCall);
      serverCall.signal.throwIfAborted();
      let message: Message;
      let { bytes } = frame;
      if (continues && longField !== undefined && piece !== undefined)
        message = continuedMessage(method.input, longField, piece);
      else {
        const data = await plainData(frame, served);
        message = await decode(method.input, data);
        if (longField !== undefined && piece !== undefined) putLongField(message, longField, piece);
        if (frame.compressed) bytes += data.byteLength;
      }
      const kept = keeps(message, bytes);
      hold.release(bytes - kept);
      hold.arrived();
      clearTimeout(serverCall.patience);
      yield message;
      arrive();
      if (method.methodKind === "bidi_streaming") hold.release(kept);
    }
  }
  hold.arrived();
  if (reader.partial) throw truncated();
}

/** Leaving the stream's own iterator early would destroy the stream, and with it the answer. */
async function* readPieces({ serverCall }: Served): AsyncIterable<Buffer> {
  const { stream, signal } = serverCall;
  let wake = () => {};
  const onChange = () => wake();
  stream.on("readable", onChange).on("end", onChange);
  serverCall.onDone = onChange;
  for (;;) {
    if (serverCall.done) {
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
