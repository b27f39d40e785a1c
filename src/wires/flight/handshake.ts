import { create, fromBinary, type Message } from "@bufbuild/protobuf";
import {
  BasicAuthSchema,
  type HandshakeRequest,
  HandshakeResponseSchema,
} from "../../gen/arrow/flight/protocol/Flight_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { LanceError } from "../../namespace/errors.ts";
import type { Service } from "../../namespace/service.ts";
import { requirePassword, tokenIn } from "./headers.ts";
import { beginPipelineCalls, receiveFlight } from "./pipeline-calls.ts";

/**
 * Returns the token of later calls for a key or a token that is the password of Basic, either in `authorization` or in the payload of a message. It is the
 * key or the token itself: the gateway keeps no sessions.
 */
export async function* shakeHands(
  requests: AsyncIterable<Message>,
  call: Call,
  service: Service,
): AsyncIterable<Message> {
  const inHeaders = tokenIn(call.headers);
  const token = inHeaders ?? (await tokenInPayload(requests));
  const headers = Object.assign(Object.create(null), call.headers);
  if (token !== undefined) headers["authorization"] = `Bearer ${token}`;
  const { method, certificate } = call;
  call.reception = await receiveFlight(service)?.({ method, headers, certificate });
  await beginPipelineCalls(service, call);
  if (token === undefined) return;
  if (inHeaders !== undefined) call.responseHeaders["authorization"] = `Bearer ${token}`;
  else yield create(HandshakeResponseSchema, { payload: Buffer.from(token) });
}

async function tokenInPayload(requests: AsyncIterable<Message>): Promise<string | undefined> {
  for await (const message of requests) {
    const { payload } = message as HandshakeRequest;
    if (payload.byteLength === 0) continue;
    try {
      return requirePassword(fromBinary(BasicAuthSchema, payload).password);
    } catch (cause) {
      if (cause instanceof LanceError) throw cause;
      throw new LanceError("InvalidInput", "the payload of a handshake must be BasicAuth", { cause });
    }
  }
  return undefined;
}
