import assert from "node:assert/strict";
import { create, type DescMethodUnary, equals, fromBinary, toBinary } from "@bufbuild/protobuf";
import fc from "fast-check";
import { describe, it, test } from "vitest";
import { messages } from "../../../test/fixtures/transcode.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { passedBody } from "../../namespace/messages/passed-answer.ts";
import { createPassingReader, inMessageSizes, MESSAGE_BYTES } from "./call-handlers.ts";

const { methods, method } = LanceNamespaceService;

describe("an answer over gRPC passes unless it has a context", () => {
  for (const each of methods.filter((one): one is DescMethodUnary => one.methodKind === "unary")) {
    test(each.name, () => {
      const read = createPassingReader(each);
      fc.assert(
        fc.property(messages(each.output, 3), fc.boolean(), (message, withContext) => {
          (message as unknown as { context: object }).context = withContext ? { key: "value" } : {};
          const bytes = toBinary(each.output, message);
          const answer = read(bytes);
          const passed = passedBody(answer, "binary");
          if (withContext) assert.equal(passed, undefined);
          assert.ok(equals(each.output, message, passed ? fromBinary(each.output, passed) : answer));
        }),
        { numRuns: 10 },
      );
    });
  }

  test("passes a plain description", () => {
    const { output } = method.describeTable;
    const bytes = toBinary(output, create(output, { table: "t", version: 1n }));
    assert.equal(passedBody(createPassingReader(method.describeTable)(bytes), "binary"), bytes);
  });

  test("is refused if its fields break off or have a wrong tag", () => {
    const read = createPassingReader(method.describeTable);
    for (const bytes of [[0x12, 5, 0x61], [0x12], [0x00, 0x01], [0x17]]) {
      assert.throws(() => read(Uint8Array.from(bytes)), String(bytes));
    }
  });
});

describe("inMessageSizes", () => {
  it("keeps the bytes, and every piece but the last has the size", async () => {
    const sizes = fc.array(
      fc.oneof(fc.nat(2_000), fc.integer({ min: MESSAGE_BYTES - 2, max: 2 * MESSAGE_BYTES + 2 })),
      {
        maxLength: 6,
      },
    );
    await fc.assert(
      fc.asyncProperty(sizes, async (lengths) => {
        const body = lengths.map((length, index) => new Uint8Array(length).fill(index + 1));
        async function* pieces() {
          yield* body;
        }
        const out: Uint8Array[] = [];
        for await (const piece of inMessageSizes(pieces())) out.push(piece);
        assert.ok(Buffer.concat(out).equals(Buffer.concat(body)));
        assert.ok(out.slice(0, -1).every(({ length }) => length === MESSAGE_BYTES));
        assert.ok(out.every(({ length }) => length > 0 && length <= MESSAGE_BYTES));
      }),
      { numRuns: 30 },
    );
  });
});
