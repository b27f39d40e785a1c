// A bare Fastify route with protobuf JSON in both directions, as in a hand-written REST server.
import type { AddressInfo } from "node:net";
import { fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import fastify from "fastify";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { describeAnswer } from "./answer.ts";

const app = fastify();
app.post("/v1/table/:id/describe", (request, reply) => {
  const { id } = request.params as { id: string };
  const message = fromJson(DescribeTableRequestSchema, (request.body ?? {}) as JsonValue);
  message.id = id.split("$");
  reply.send(toJson(DescribeTableResponseSchema, describeAnswer(message)));
});
await app.listen({ host: "127.0.0.1", port: 0 });
console.log((app.server.address() as AddressInfo).port);
