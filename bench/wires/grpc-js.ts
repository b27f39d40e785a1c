// The bare @grpc/grpc-js server: one handler, no pipeline.
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import grpc from "@grpc/grpc-js";
import {
  type DescribeTableRequest,
  DescribeTableRequestSchema,
  type DescribeTableResponse,
  DescribeTableResponseSchema,
} from "../../src/gen/lance/namespace/v1/table_pb.ts";
import { DESCRIBE_PATH, describeAnswer } from "./answer.ts";

const server = new grpc.Server();
server.addService(
  {
    describeTable: {
      path: DESCRIBE_PATH,
      requestStream: false,
      responseStream: false,
      requestSerialize: (message: DescribeTableRequest) =>
        Buffer.from(toBinary(DescribeTableRequestSchema, message)),
      requestDeserialize: (bytes: Buffer) => fromBinary(DescribeTableRequestSchema, bytes),
      responseSerialize: (message: DescribeTableResponse) =>
        Buffer.from(toBinary(DescribeTableResponseSchema, message)),
      responseDeserialize: (bytes: Buffer) => fromBinary(DescribeTableResponseSchema, bytes),
    },
  },
  {
    describeTable: (
      call: grpc.ServerUnaryCall<DescribeTableRequest, DescribeTableResponse>,
      callback: grpc.sendUnaryData<DescribeTableResponse>,
    ) => callback(null, describeAnswer(call.request)),
  },
);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});
