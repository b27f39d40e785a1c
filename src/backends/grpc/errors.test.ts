import assert from "node:assert/strict";
import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { ERROR_TABLE, LanceError } from "../../namespace/errors.ts";
import { errorTrailers } from "../../wires/grpc/status.ts";
import { upstreamError } from "./errors.ts";

const { describeTable, describeNamespace, describeTransaction } = LanceNamespaceService.method;

function failure(code: number, details: string, metadata = new Metadata()): ServiceError {
  return Object.assign(new Error(`${code}: ${details}`), { code, details, metadata });
}

describe("upstreamError", () => {
  for (const { name, grpcCode } of ERROR_TABLE) {
    it(`reads ${name} as the gRPC wire writes it`, () => {
      const sent = new LanceError(name as never, "what happened", { detail: "more" });
      const trailers = errorTrailers(sent, "request-1");
      const metadata = new Metadata();
      metadata.set(
        "grpc-status-details-bin",
        Buffer.from(trailers["grpc-status-details-bin"] ?? "", "base64"),
      );
      const read = upstreamError(failure(grpcCode, "what happened", metadata), beginCall(describeTable));
      assert.deepEqual(
        [read.entry.name, read.message, read.detail, read.instance],
        [name, "what happened", "more", "request-1"],
      );
    });
  }

  it("maps a status without details by its code and by the method's resource", () => {
    const named = (code: number, method: Parameters<typeof beginCall>[0] = describeTable) =>
      upstreamError(failure(code, "text"), beginCall(method)).entry.name;
    assert.equal(named(status.NOT_FOUND), "TableNotFound");
    assert.equal(named(status.NOT_FOUND, describeNamespace), "NamespaceNotFound");
    assert.equal(named(status.NOT_FOUND, describeTransaction), "TransactionNotFound");
    assert.equal(named(status.ALREADY_EXISTS, describeNamespace), "NamespaceAlreadyExists");
    assert.equal(named(status.UNAUTHENTICATED), "Unauthenticated");
    assert.equal(named(status.RESOURCE_EXHAUSTED), "Throttling");
    assert.equal(named(status.UNAVAILABLE), "ServiceUnavailable");
    assert.equal(named(99), "Internal");
  });

  it("does not pass on what the library says of connections", () => {
    for (const code of [status.UNAVAILABLE, status.DEADLINE_EXCEEDED, status.CANCELLED]) {
      const { message, cause } = upstreamError(failure(code, "at 10.0.0.1:443"), beginCall(describeTable));
      assert.match(message, /^the upstream catalog [^0-9]+$/);
      assert.ok(cause instanceof Error);
    }
  });

  const ownWords = [
    [
      status.UNAVAILABLE,
      "No connection established. Last error: at 10.0.0.1",
      "unreached",
      "broken",
      "reset",
    ],
    [status.UNAVAILABLE, "Connection dropped", "reset", "broken", "reset"],
    [status.INTERNAL, "Received RST_STREAM with code 2 (Internal server error)", "reset", "broken", "reset"],
    [status.INTERNAL, "Response message parsing error: no", "broken", "broken", "broken"],
    [status.UNIMPLEMENTED, "No message received", "broken", "broken", "broken"],
  ] as const;
  for (const [code, words, fault, begun, bodySent] of ownWords) {
    it(`takes "${words}" for the library's own words`, () => {
      const thrown = failure(code, words);
      const call = beginCall(describeTable);
      const error = upstreamError(thrown, call);
      assert.match(error.message, /^the (answer of the )?upstream catalog [^0-9]+$/);
      assert.deepEqual([error.entry.name, error.fault], ["ServiceUnavailable", fault]);
      assert.equal(upstreamError(thrown, call, { begun: true }).fault, begun);
      assert.equal(upstreamError(thrown, call, { bodySent: true }).fault, bodySent);
    });
  }

  it("tells an answer that is too large from a request that is, by the head of an answer", () => {
    const thrown = failure(status.RESOURCE_EXHAUSTED, "Received message larger than max (1 vs 0)");
    const read = (progress: Parameters<typeof upstreamError>[2]) => {
      const { entry, fault } = upstreamError(thrown, beginCall(describeTable), progress);
      return [entry.name, fault];
    };
    for (const answered of [{ begun: true }, { headed: true }, { begun: true, bodySent: true }])
      assert.deepEqual(read(answered), ["ServiceUnavailable", "oversized"]);
    for (const refused of [{}, { bodySent: true }])
      assert.deepEqual(read(refused), ["PayloadTooLarge", undefined]);
  });

  it("derives the fault from the status", () => {
    const faultOf = (code: number) => upstreamError(failure(code, "text"), beginCall(describeTable)).fault;
    assert.equal(faultOf(status.UNAVAILABLE), "unavailable");
    assert.equal(faultOf(status.RESOURCE_EXHAUSTED), "throttled");
    assert.equal(faultOf(status.CANCELLED), "reset");
    assert.equal(faultOf(status.NOT_FOUND), undefined);
    assert.equal(faultOf(status.INTERNAL), undefined);
  });

  it("leaves open what became of a call whose proxy got no answer", () => {
    const faultOf = (httpStatus: number) =>
      upstreamError(
        failure(status.UNAVAILABLE, `Received HTTP status code ${httpStatus}`),
        beginCall(describeTable),
        { begun: true },
      ).fault;
    assert.deepEqual([502, 503, 504].map(faultOf), ["reset", "unavailable", "reset"]);
  });

  it("goes by the status where the details cannot be read", () => {
    const metadata = new Metadata();
    metadata.set("grpc-status-details-bin", Buffer.from([255, 255, 255]));
    const error = upstreamError(failure(status.NOT_FOUND, "no t", metadata), beginCall(describeTable));
    assert.deepEqual([error.entry.name, error.message], ["TableNotFound", "no t"]);
  });

  it("puts the abort of our own call first", () => {
    const reason = new LanceError("DeadlineExceeded", "too late");
    const call = beginCall(describeTable, { signal: AbortSignal.abort(reason) });
    assert.equal(upstreamError(failure(status.CANCELLED, ""), call), reason);
  });

  it("is Internal for anything but a failure of a call", () => {
    const error = upstreamError(new TypeError("broken"), beginCall(describeTable));
    assert.equal(error.entry.name, "Internal");
  });
});
