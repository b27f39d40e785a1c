// The smallest usable gRPC proxy on grpc-js: it passes messages, metadata, deadlines, cancellations and statuses on
// without looking at them.
import grpc from "@grpc/grpc-js";
import { DESCRIBE_PATH } from "../wires/answer.ts";

const upstream = new grpc.Client(process.argv[2] as string, grpc.credentials.createInsecure());
const asItIs = (bytes: Buffer) => bytes;

const server = new grpc.Server();
server.addService(
  {
    describeTable: {
      path: DESCRIBE_PATH,
      requestStream: false,
      responseStream: false,
      requestSerialize: asItIs,
      requestDeserialize: asItIs,
      responseSerialize: asItIs,
      responseDeserialize: asItIs,
    },
  },
  {
    describeTable: (call: grpc.ServerUnaryCall<Buffer, Buffer>, callback: grpc.sendUnaryData<Buffer>) => {
      let answer: Buffer | undefined;
      upstream
        // With its parent, the call has the deadline of the client's, and is cancelled with it.
        .makeUnaryRequest(
          DESCRIBE_PATH,
          asItIs,
          asItIs,
          call.request,
          call.metadata,
          { parent: call },
          (_, message) => {
            answer = message;
          },
        )
        .on("metadata", (headers) => call.sendMetadata(headers))
        .on("status", ({ code, details, metadata }) => {
          if (code === grpc.status.OK) callback(null, answer, metadata);
          else callback({ code, details, metadata });
        });
    },
  },
);
server.bindAsync("127.0.0.1:0", grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});
