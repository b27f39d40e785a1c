import { toBinary } from "@bufbuild/protobuf";
import { cardinalityError, type UnaryRpc } from "../rpc.ts";
import { encodeFrame, type Frame, FrameReader } from "./frame.ts";
import { pack } from "./gzip.ts";
import type { Served } from "./handler.ts";
import { decode, plainData, truncated } from "./message.ts";

/** Serves a call with one request and one response; this is the path that has to be cheap. */
export function serveUnary(rpc: UnaryRpc, served: Served): void {
  const { exchange } = served;
  const reader = new FrameReader(served.maxMessageBytes);
  let request: Frame | undefined;

  exchange.stream.on("data", (piece: Buffer) => {
    if (exchange.done) return;
    try {
      reader.push(piece);
      for (let frame = reader.next(); frame !== undefined; frame = reader.next()) {
        if (request !== undefined) throw cardinalityError("more than one");
        request = frame;
      }
    } catch (thrown) {
      exchange.fail(thrown);
    }
  });

  exchange.stream.on("end", () => {
    if (exchange.done) return;
    if (reader.partial) exchange.fail(truncated());
    else if (request === undefined) exchange.fail(cardinalityError("no"));
    else void answer(rpc, request, served);
  });
}

async function answer(rpc: UnaryRpc, frame: Frame, served: Served): Promise<void> {
  const { exchange, gzipMinBytes } = served;
  try {
    const data = frame.compressed ? await plainData(frame, served) : frame.data;
    const response = await rpc.handle(decode(rpc.method.input, data), served.call);
    if (exchange.done) return;
    const body = toBinary(rpc.method.output, response);
    if (body.length > gzipMinBytes) exchange.answer(encodeFrame(await pack(body), true), "gzip");
    else exchange.answer(encodeFrame(body, false));
  } catch (thrown) {
    exchange.fail(thrown);
  }
}
