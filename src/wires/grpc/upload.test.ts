import assert from "node:assert/strict";
import { once } from "node:events";
import { create, toBinary } from "@bufbuild/protobuf";
import { Metadata, type ServiceError, status } from "@grpc/grpc-js";
import { test } from "vitest";
import { codecs, fakeService, METHODS, pathOfMethod, startGrpc } from "../../../test/fixtures/wires/grpc.ts";
import { steady } from "../../../test/support/steady.ts";
import { CreateTableRequestSchema, CreateTableResponseSchema } from "../../gen/lance/namespace/v1/data_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { createByteBudget } from "../../namespace/memory/byte-budget.ts";
import { encodeFrame } from "./frame.ts";

const upload = (data: Uint8Array, id: string[] = []) =>
  create(CreateTableRequestSchema, { id, data: { data } });

test("the parameters of an upload count for the memory of requests until the upload ends, and its body only until it is read", async () => {
  const budget = createByteBudget();
  const read = Promise.withResolvers<void>();
  await using server = await startGrpc(
    fakeService({
      async upload(_method, _request, data) {
        for await (const _ of data) read.resolve();
        return create(CreateTableResponseSchema, {});
      },
    }),
    { budget },
  );
  const first = create(CreateTableRequestSchema, {
    context: { filler: "x".repeat(80_000) },
    data: { data: Buffer.alloc(500_000) },
  });
  const path = { ":path": pathOfMethod(METHODS.createTable) };
  const stream = server.session.request({ ":method": "POST", ...path, "content-type": "application/grpc" });
  stream.write(encodeFrame(toBinary(CreateTableRequestSchema, first), false));
  await read.promise;
  assert.ok(budget.held > 70_000 && budget.held < 100_000, `${budget.held}`);
  stream.end();
  stream.resume();
  await once(stream, "close");
  assert.equal(budget.held, 0);
});

test("an upload passes its parameters and the bytes of all messages", async () => {
  let seen: unknown;
  await using server = await startGrpc(
    fakeService({
      async upload(_method, request, data) {
        const pieces: Uint8Array[] = [];
        for await (const bytes of data) pieces.push(bytes);
        seen = [(request as unknown as { id: string[] }).id, Buffer.concat(pieces).toString()];
        return create(CreateTableResponseSchema, { version: 1n });
      },
    }),
  );
  const response = await new Promise<Record<string, unknown> | undefined>((resolve, reject) => {
    const call = server.client.makeClientStreamRequest(
      ...codecs(METHODS.createTable),
      new Metadata(),
      {},
      (error, answer) => (error ? reject(error) : resolve(answer)),
    );
    call.write(upload(Buffer.from("ab"), ["t"]));
    call.write(upload(new Uint8Array(0)));
    call.write(upload(Buffer.from("cd"), ["ignored"]));
    call.end();
  });
  assert.deepEqual(seen, [["t"], "abcd"]);
  assert.equal(response?.["version"], 1n);
});

test("an upload that is not read is held back at the client", async () => {
  const { promise: release, resolve: go } = Promise.withResolvers<void>();
  let received = 0;
  await using server = await startGrpc(
    fakeService({
      async upload(_method, _request, data) {
        await release;
        for await (const bytes of data) received += bytes.length;
        return create(CreateTableResponseSchema, {});
      },
    }),
  );
  const stream = server.session.request({
    ":method": "POST",
    ":path": pathOfMethod(METHODS.createTable),
    "content-type": "application/grpc",
  });
  const frame = encodeFrame(toBinary(CreateTableRequestSchema, upload(Buffer.alloc(50_000))), false);
  for (let count = 0; count < 40; count++) stream.write(frame);
  stream.end();
  const waiting = await steady(() => stream.writableLength);
  assert.ok(waiting > 1_500_000, `only ${waiting} bytes are still at the client`);
  go();
  const trailers = await new Promise<Record<string, unknown>>((resolve) =>
    stream.on("trailers", resolve).resume(),
  );
  assert.equal(trailers["grpc-status"], "0");
  assert.equal(received, 2_000_000);
});

test("an upload that is refused early gets its error, and the client is told to stop", async () => {
  await using server = await startGrpc(
    fakeService({
      async upload() {
        throw new LanceError("PermissionDenied", "not you");
      },
    }),
  );
  const stream = server.session.request({
    ":method": "POST",
    ":path": pathOfMethod(METHODS.createTable),
    "content-type": "application/grpc",
  });
  stream.on("error", () => {});
  stream.write(encodeFrame(toBinary(CreateTableRequestSchema, upload(Buffer.alloc(50_000))), false));
  const headers = await new Promise<Record<string, unknown>>((resolve) =>
    stream.on("response", resolve).resume(),
  );
  assert.equal(headers["grpc-status"], "7");
  await new Promise((resolve) => stream.on("close", resolve));
  assert.equal(stream.rstCode, 0);

  const error = await new Promise<ServiceError | null>((resolve) => {
    const call = server.client.makeClientStreamRequest(
      ...codecs(METHODS.createTable),
      new Metadata(),
      {},
      resolve,
    );
    call.on("error", () => {});
    for (let count = 0; count < 100; count++) call.write(upload(Buffer.alloc(50_000)));
  });
  assert.equal(error?.code, status.PERMISSION_DENIED);
});
