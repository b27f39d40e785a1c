// The script of a page that works with a gateway of another origin when the test tells it to.
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { tableFromIPC } from "apache-arrow";
import { GrpcWebClientBase, MethodDescriptor, type RpcError } from "grpc-web";
import { connect } from "../../src/client/browser.ts";
import {
  QueryTableRequestSchema,
  QueryTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/query_pb.ts";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { session } from "../clients/runtimes/session.ts";

async function work(kind: string, uri: string): Promise<string> {
  const ns = await connect(kind, { uri, "headers.authorization": "Bearer x" });
  return session(ns, `page-${kind}`);
}

const SERVICE = "/lance.namespace.v1.LanceNamespaceService";

/** Google's client takes the encoded messages, as protoc-gen-grpc-web passes functions of its own. */
const encoded = (name: string, kind: string) =>
  new MethodDescriptor<Uint8Array, Uint8Array>(
    `${SERVICE}/${name}`,
    kind,
    Uint8Array,
    Uint8Array,
    (bytes: Uint8Array) => bytes,
    (bytes: Uint8Array) => bytes,
  );

/** Describes and reads a table of {@link work} by Google's client of gRPC-Web, and asks for one that is missing. */
async function workInGrpcWeb(format: string, uri: string): Promise<string> {
  const client = new GrpcWebClientBase({ format });
  const describe = (id: string[]) => {
    const request = toBinary(DescribeTableRequestSchema, create(DescribeTableRequestSchema, { id }));
    return new Promise<Uint8Array>((resolve, reject) => {
      const done = (error: RpcError | null, answer: Uint8Array) => (error ? reject(error) : resolve(answer));
      client.rpcCall(`${uri}${SERVICE}/DescribeTable`, request, {}, encoded("DescribeTable", "unary"), done);
    });
  };
  const id = ["page-rest", "t"];
  const { table } = fromBinary(DescribeTableResponseSchema, await describe(id));
  const query = toBinary(QueryTableRequestSchema, create(QueryTableRequestSchema, { id }));
  const pieces: Uint8Array[] = [];
  await new Promise<void>((resolve, reject) => {
    client
      .serverStreaming(`${uri}${SERVICE}/QueryTable`, query, {}, encoded("QueryTable", "server_streaming"))
      .on("data", (bytes) => pieces.push(fromBinary(QueryTableResponseSchema, bytes).data?.data ?? bytes))
      .on("error", reject)
      .on("end", resolve);
  });
  const error = await describe(["page-rest", "missing"]).then(
    () => undefined,
    (thrown: RpcError) => thrown,
  );
  return [table, tableFromIPC(pieces).numRows, error?.code, error?.message].join(" ");
}

Object.assign(globalThis, { work, workInGrpcWeb });
