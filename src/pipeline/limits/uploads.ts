import { wholeBody } from "../../arrow/upload/whole-body.ts";
import type { Call } from "../../namespace/call/call.ts";
import { callerKey } from "../../namespace/call/caller-key.ts";
import { LanceError } from "../../namespace/errors.ts";
import { type ByteBudget, type ByteHold, tooLargeAlone } from "../../namespace/memory/byte-budget.ts";
import { noteReceived } from "../../runtime/internals/v8-flags.ts";
import { type Databases, databaseOf } from "../call/databases.ts";
import { type Interceptor, onlyFor } from "../call/interceptor.ts";
import type { Quota } from "./quotas.ts";

/**
 * Admits the Arrow bodies of uploads: each is bounded by its database's limit, must be complete, and takes its memory
 * from a budget that all calls share. The completion of a multipart write has no body, and takes memory from the budget
 * for the parts that it reads.
 *
 * @param ofCaller bytes that a caller may hold. Default: no bound.
 */
export function admitUploads(databases: Databases, budget: ByteBudget, ofCaller?: Quota): Interceptor {
  const admit: Interceptor = (call, request, next) => {
    const { maxUploadBytes } = databaseOf(databases, call).limits;
    const hold = ofCaller === undefined ? budget.open() : holdOf(callerKey(call), ofCaller, budget.open());
    call.holdBody = (bytes) => hold.take(bytes);
    call.releaseBody = (bytes) => hold.release(bytes);
    const admitted =
      request.kind === "upload"
        ? { ...request, data: admitBody(whole(request.data, call), hold, maxUploadBytes, call) }
        : request;
    return next(call, admitted).finally(() => hold.release());
  };
  return onlyFor(({ method, readsParts }) => method.methodKind === "client_streaming" || readsParts, admit);
}

/** Returns a hold whose bytes count for a caller, too. */
function holdOf(caller: string, quota: Quota, hold: ByteHold): ByteHold {
  let held = 0;
  return {
    get bytes() {
      return held;
    },
    take(bytes) {
      if (held + bytes > quota.max) throw tooLargeAlone(`the bodies of a caller may use ${quota.max} bytes`);
      if (!quota.take(caller, bytes)) {
        const headers = { "retry-after": "1" };
        throw new LanceError("Throttling", "caller's body memory limit exceeded", {
          headers,
          limit: "memory",
        });
      }
      held += bytes;
      hold.take(bytes);
    },
    release(bytes = held) {
      const returned = Math.min(bytes, held);
      held -= returned;
      quota.release(caller, returned);
      hold.release(bytes);
    },
    arrive: (senderOf, end) => hold.arrive(senderOf, end),
    arrived: () => hold.arrived(),
  };
}

function whole(data: AsyncIterable<Uint8Array>, { hasKnownEnd }: Call): AsyncIterable<Uint8Array> {
  return hasKnownEnd === true ? data : wholeBody(data);
}

/**
 * Passes the chunks of an Arrow body on, after it takes their bytes from the call's hold. While it waits for the client, the call ends when
 * others need its memory.
 *
 * The iterable throws LanceError PayloadTooLarge beyond the limit of a call, and the errors of the hold.
 */
export async function* admitBody(
  chunks: AsyncIterable<Uint8Array>,
  hold: ByteHold,
  maxUploadBytes: number,
  call: Call,
): AsyncGenerator<Uint8Array> {
  let passed = 0;
  const arrive = () =>
    hold.arrive(
      () => callerKey(call),
      (error) => call.cutOff?.(error),
    );
  arrive();
  for await (const chunk of chunks) {
    hold.arrived();
    passed += chunk.byteLength;
    if (passed > maxUploadBytes) {
      throw new LanceError("PayloadTooLarge", `body is larger than ${maxUploadBytes} bytes`, {
        limit: "upload_size",
      });
    }
    hold.take(chunk.byteLength);
    noteReceived(chunk.byteLength);
    yield chunk;
    arrive();
  }
  hold.arrived();
}
