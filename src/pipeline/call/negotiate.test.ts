import assert from "node:assert/strict";
import { create, type MessageShape } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { people, personStream, rowsOf } from "../../../test/support/arrow.ts";
import { beginCall } from "../../../test/support/caller.ts";
import { ARROW_FILE, ARROW_STREAM } from "../../arrow/ipc/ipc-forms.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { negotiateRows } from "./negotiate.ts";

const { queryTable } = LanceNamespaceService.method;

async function* answer(pieces: readonly Uint8Array[], failure?: Error) {
  for (const data of pieces) {
    yield create(queryTable.output, { data: { contentType: ARROW_STREAM, data } });
  }
  if (failure !== undefined) throw failure;
}

async function asFile(messages: AsyncIterable<MessageShape<typeof queryTable.output>>): Promise<Buffer> {
  const pieces: Uint8Array[] = [];
  for await (const message of negotiateRows(
    messages,
    beginCall(queryTable, { accept: ARROW_FILE }),
    createByteBudget(),
  )) {
    const { data } = message as MessageShape<typeof queryTable.output>;
    assert.equal(data?.contentType, ARROW_FILE);
    pieces.push(data?.data ?? new Uint8Array());
  }
  return Buffer.concat(pieces);
}

describe("negotiateRows", () => {
  const stream = personStream(people(3));

  it("makes a file of a stream", async () => {
    assert.equal(rowsOf(await asFile(answer([stream]))).length, 3);
  });

  it("reads the answer to its end, so that the catalog does not take the client for gone", async () => {
    let isRead = false;
    async function* whole() {
      yield* answer([stream]);
      isRead = true;
    }
    await asFile(whole());
    assert.ok(isRead);
  });

  it("takes a stream that is none for the catalog's fault", async () => {
    for (const pieces of [[Buffer.alloc(100, "garbage ")], [stream.subarray(0, stream.length - 30)]]) {
      await assert.rejects(asFile(answer(pieces)), (error) => isLanceError(error, "ServiceUnavailable"));
    }
  });

  it("passes on what the catalog fails with", async () => {
    const failure = new LanceError("InvalidInput", "no such filter");
    for (const bytes of [stream.subarray(0, 100), stream]) {
      await assert.rejects(asFile(answer([bytes], failure)), failure);
    }
  });
});
