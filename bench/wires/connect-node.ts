// connect-node over HTTP/2: an equal handler behind its router, native gRPC included.
import http2 from "node:http2";
import type { AddressInfo } from "node:net";
import { connectNodeAdapter } from "@connectrpc/connect-node";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { describeAnswer } from "./answer.ts";

const handler = connectNodeAdapter({
  routes: (router) => router.service(LanceNamespaceService, { describeTable: describeAnswer }),
});
const server = http2.createServer(handler).listen(0, "127.0.0.1", () => {
  console.log((server.address() as AddressInfo).port);
});
