import { create, type Message, toBinary } from "@bufbuild/protobuf";
import { senderKey } from "../../namespace/call/caller-key.ts";
import { isRefused } from "../../namespace/call/reception.ts";
import { encodeSteps, isLongMessage } from "../../namespace/messages/message-steps.ts";
import { passedBody } from "../../namespace/messages/passed-answer.ts";
import { bytesIn } from "../../runtime/byte-memory.ts";
import { inSlices } from "../../runtime/pace.ts";
import { cardinalityError, type UnaryRpc } from "../rpc.ts";
import { encodeFrame, encodeFramePieces, type Frame, FrameReader } from "./frame.ts";
import { decode, pack, packPieces, plainData, truncated } from "./message.ts";
import type { Served } from "./server-call.ts";

/** Serves a call with a single request and a single response; this path must be cheap. */
export function serveUnary(rpc: UnaryRpc, served: Served): void {
  const { serverCall, hold } = served;
  if (isRefused(served.call.reception)) {
    void answer(rpc, served, () => create(rpc.method.input));
    return;
  }
  const reader = new FrameReader(served.maxMessageBytes);
  let request: Frame | undefined;
  serverCall.reading = hold;
  serverCall.expectMessage();
  hold.arrive(
    () => senderKey(served.call),
    (error) => serverCall.fail(error),
  );

  serverCall.stream.on("data", (piece: Buffer) => {
    if (serverCall.done) return;
    try {
      hold.take(piece.length);
      reader.push(piece);
      for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
        if (request !== undefined) throw cardinalityError("more than one");
        request = frame;
      }
    } catch (thrown) {
      serverCall.fail(thrown);
    }
  });

  const end = () => {
    if (serverCall.done) return;
    const frame = request;
    if (reader.partial) serverCall.fail(truncated());
    else if (frame === undefined) serverCall.fail(cardinalityError("no"));
    else {
      clearTimeout(serverCall.patience);
      hold.arrived();
      // From here on, the answer releases the memory.
      serverCall.reading = undefined;
      void answer(rpc, served, () => messageIn(frame, rpc, served));
    }
  };
  // Node ends a stream without bytes before it has a reader.
  if (serverCall.stream.readableEnded) end();
  else serverCall.stream.on("end", end);
}

function messageIn(frame: Frame, { method }: UnaryRpc, served: Served): Message | Promise<Message> {
  if (!frame.compressed) return decode(method.input, frame.data);
  return plainData(frame, served).then((data) => decode(method.input, data));
}

/** @param read returns the message of the request. */
async function answer(rpc: UnaryRpc, served: Served, read: () => Message | Promise<Message>): Promise<void> {
  const { serverCall, hold, pace, gzipMinBytes } = served;
  try {
    if (!pace.enter()) await pace.turn(serverCall);
    if (serverCall.done) return;
    let request = read();
    if (request instanceof Promise) {
      request = await request;
      if (!pace.enter()) await pace.turn(serverCall);
      if (serverCall.done) return;
    }
    const response = await rpc.handle(request, served.call);
    if (serverCall.done) return;
    const { output } = rpc.method;
    const passed = passedBody(response, "binary");
    if (passed === undefined && isLongMessage(output, response)) {
      const steps = encodeSteps(output, response);
      await answerLong(await inSlices(steps, () => serverCall.signal.throwIfAborted()), served);
      return;
    }
    const body = passed ?? toBinary(output, response);
    if (body.length > gzipMinBytes) serverCall.answer(encodeFrame(await pack(body), true), "gzip");
    else serverCall.answer(encodeFrame(body, false));
  } catch (thrown) {
    serverCall.fail(thrown);
  } finally {
    hold.release();
  }
}

/** Sends a long message piece by piece: node takes 90 ms to send 60 MB in a single turn. */
async function answerLong(
  pieces: readonly Uint8Array[],
  { serverCall, gzipMinBytes }: Served,
): Promise<void> {
  const isPacked = bytesIn(pieces) > gzipMinBytes;
  const frame = isPacked
    ? encodeFramePieces(await packPieces(pieces), true)
    : encodeFramePieces(pieces, false);
  if (isPacked && !serverCall.done) serverCall.begin("gzip");
  for (const piece of frame) await serverCall.write(piece);
  serverCall.finish();
}
