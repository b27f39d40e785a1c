import assert from "node:assert/strict";
import { once } from "node:events";
import { connect, constants } from "node:http2";
import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { createByteBudget } from "../../namespace/byte-budget.ts";
import { fakeService, METHODS, pathOfMethod } from "../../wires/grpc/fixture.ts";
import { startServer } from "../fixture.ts";

const MIB = 1024 * 1024;

test("unread bytes of HTTP/2 count for the memory of requests, and the streams with the most of them are reset", async (t) => {
  const budget = createByteBudget(3 * MIB);
  const answered = Promise.withResolvers<void>();
  const service = fakeService({
    async upload() {
      await answered.promise;
      return create(CreateTableResponseSchema, {});
    },
  });
  await using server = await startServer({ service, budget });
  const session = connect(server.url);
  t.onTestFinished(() => session.destroy());
  await once(session, "remoteSettings");
  const upload = (bytes: number) => {
    const path = { ":path": pathOfMethod(METHODS.createTable), "content-type": "application/grpc" };
    const stream = session.request({ ":method": "POST", ...path });
    stream.on("error", () => {});
    stream.write(Buffer.alloc(bytes));
    return stream;
  };
  const small = [upload(MIB / 4), upload(MIB / 4)];
  const large = upload(4 * MIB);
  await new Promise((resolve) => large.on("close", resolve));
  assert.equal(large.rstCode, constants.NGHTTP2_ENHANCE_YOUR_CALM);
  // The wire has read the first piece of each.
  await expect.poll(() => budget.held > MIB / 4 && budget.held <= MIB / 2).toBe(true);
  assert.deepEqual(
    small.map(({ closed }) => closed),
    [false, false],
  );
  answered.resolve();
  session.destroy();
  await expect.poll(() => budget.held).toBe(0);
});
