import type {
  DescMethodClientStreaming,
  DescMethodServerStreaming,
  DescMethodUnary,
  Message,
} from "@bufbuild/protobuf";
import type { Call } from "./call.ts";

/**
 * Receives the calls of every wire: the method, the request and the call's context. The pipeline implements it; a
 * wire knows nothing of what follows.
 */
export interface Service {
  unary(method: DescMethodUnary, request: Message, call: Call): Promise<Message>;
  /** The first message carries the parameters; `data` is the body of all messages, split anywhere. */
  upload(
    method: DescMethodClientStreaming,
    request: Message,
    data: AsyncIterable<Uint8Array>,
    call: Call,
  ): Promise<Message>;
  download(method: DescMethodServerStreaming, request: Message, call: Call): AsyncIterable<Message>;
}
