import { toBinary } from "@bufbuild/protobuf";
import { lateMessage, MESSAGE_MS } from "../limits.ts";
import { cardinalityError, type UnaryRpc } from "../rpc.ts";
import { encodeFrame, type Frame, FrameReader } from "./frame.ts";
import { pack } from "./gzip.ts";
import type { Served } from "./handler.ts";
import { decode, plainData, truncated } from "./message.ts";

/** Serves a call with one request and one response; this is the path that has to be cheap. */
export function serveUnary(rpc: UnaryRpc, served: Served): void {
  const { exchange, hold } = served;
  const reader = new FrameReader(served.maxMessageBytes);
  let request: Frame | undefined;
  let patience: NodeJS.Timeout | undefined;
  // From the end of the request on, its answer gives the memory back.
  exchange.onDone = () => {
    clearTimeout(patience);
    hold.release();
  };

  exchange.stream.on("data", (piece: Buffer) => {
    if (exchange.done) return;
    try {
      hold.take(piece.length);
      reader.push(piece);
      for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
        if (request !== undefined) throw cardinalityError("more than one");
        request = frame;
      }
      if (reader.partial) patience ??= setTimeout(() => exchange.fail(lateMessage()), MESSAGE_MS);
    } catch (thrown) {
      exchange.fail(thrown);
    }
  });

  exchange.stream.on("end", () => {
    if (exchange.done) return;
    if (reader.partial) exchange.fail(truncated());
    else if (request === undefined) exchange.fail(cardinalityError("no"));
    else {
      clearTimeout(patience);
      exchange.onDone = undefined;
      void answer(rpc, request, served);
    }
  });
}

async function answer(rpc: UnaryRpc, frame: Frame, served: Served): Promise<void> {
  const { exchange, hold, gzipMinBytes } = served;
  try {
    const data = frame.compressed ? await plainData(frame, served) : frame.data;
    const response = await rpc.handle(decode(rpc.method.input, data), served.call);
    if (exchange.done) return;
    const body = toBinary(rpc.method.output, response);
    if (body.length > gzipMinBytes) exchange.answer(encodeFrame(await pack(body), true), "gzip");
    else exchange.answer(encodeFrame(body, false));
  } catch (thrown) {
    exchange.fail(thrown);
  } finally {
    hold.release();
  }
}
