import { constants, type Http2Server, type Http2ServerRequest } from "node:http2";
import type { ErrorName } from "../../namespace/errors.ts";
import type { NoteRefusal } from "../../pipeline/records/refusals.ts";
import { peerOf } from "../../wires/arrival.ts";
import { stopReading } from "../../wires/grpc/server-call.ts";

/**
 * Refuses what a server of HTTP/2 does not have: expectations other than `100-continue`, and tunnels. Node would answer them by itself, and keep
 * what their clients send on for as long as they like.
 *
 * @param refused called for these requests.
 */
export function refuseSpecialRequests(server: Http2Server, refused: NoteRefusal | undefined): void {
  const refuse = ({ stream }: Http2ServerRequest, status: number, code: ErrorName, fault: string) => {
    const { peer } = peerOf(stream.session?.socket);
    refused?.({ protocol: "http", code, fault, peer });
    if (stream.destroyed) return;
    stream.respond({ ":status": status }, { endStream: true });
    stopReading(stream);
  };
  server.on("checkExpectation", (request) =>
    refuse(request, constants.HTTP_STATUS_EXPECTATION_FAILED, "InvalidInput", "expectation"),
  );
  server.on("connect", (request: Http2ServerRequest) =>
    refuse(request, constants.HTTP_STATUS_METHOD_NOT_ALLOWED, "MethodNotAllowed", "connect"),
  );
}
