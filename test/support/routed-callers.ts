import { create, type MessageShape } from "@bufbuild/protobuf";
import { ConnectError, type Transport } from "@connectrpc/connect";
import {
  createConnectTransport,
  createGrpcWebTransport,
  Http2SessionManager,
} from "@connectrpc/connect-node";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { ErrorResponseSchema } from "../../src/gen/lance/namespace/v1/common_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { definitionOf, errorDetail } from "./grpc-client.ts";
import { jsonOf, sendHttp } from "./http.ts";

const method = LanceNamespaceService.method.describeTable;

/** The parts of a request that name its database. */
export interface Address {
  /** Default: `127.0.0.1`. */
  readonly host?: string;
  /** The text before the usual path. */
  readonly prefix?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly id?: readonly string[];
  readonly context?: Readonly<Record<string, string>>;
}

/** The outcome of a call: the namespace and the name of the table, or the code and the text of the error. */
export type Outcome =
  | { readonly namespace: readonly string[]; readonly table: string }
  | { readonly code: number | undefined; readonly text: string };

/** Describes a table of a gateway over one protocol. */
export type RoutedCaller = (port: number, address: Address) => Promise<Outcome>;

const request = ({ id = ["t"], context = {} }: Address) =>
  create(method.input, { id: [...id], context: { ...context } });

const outcomeOf = ({ namespace, table = "" }: MessageShape<typeof method.output>): Outcome => ({
  namespace,
  table,
});

const grpc: RoutedCaller = (port, address) => {
  const { host = "127.0.0.1", prefix = "", headers = {} } = address;
  const client = new Client(`${host}:${port}`, credentials.createInsecure());
  const metadata = new Metadata();
  for (const [name, value] of Object.entries(headers)) metadata.set(name, value);
  const { path, requestSerialize, responseDeserialize } = definitionOf(method);
  return new Promise<Outcome>((resolve) => {
    client.makeUnaryRequest(
      `${prefix}${path}`,
      requestSerialize,
      responseDeserialize,
      request(address),
      metadata,
      (error, answer) => {
        if (error) resolve({ code: errorDetail(error)?.code, text: error.details });
        else resolve(outcomeOf(answer as never));
      },
    );
  }).finally(() => client.close());
};

function connect(open: (baseUrl: string) => { transport: Transport; close?: () => void }): RoutedCaller {
  return async (port, address) => {
    const { host = "127.0.0.1", prefix = "", headers } = address;
    const { transport, close } = open(`http://${host}:${port}${prefix}`);
    try {
      const answer = await transport.unary(method, undefined, undefined, headers, request(address));
      return outcomeOf(answer.message);
    } catch (error) {
      if (!(error instanceof ConnectError)) throw error;
      return { code: error.findDetails(ErrorResponseSchema)[0]?.code, text: error.rawMessage };
    } finally {
      close?.();
    }
  };
}

const rest: RoutedCaller = async (port, address) => {
  const { host = "127.0.0.1", prefix = "", headers = {}, id = ["t"], context } = address;
  const answer = await sendHttp(port, {
    path: `${prefix}/v1/table/${id.map(encodeURIComponent).join("$")}/describe`,
    headers: { ...headers, host: `${host}:${port}`, "content-type": "application/json" },
    body: JSON.stringify({ context }),
  });
  const json = jsonOf(answer);
  if (answer.status !== 200) return { code: json["code"] as number, text: String(json["error"]) };
  return { namespace: (json["namespace"] ?? []) as string[], table: String(json["table"]) };
};

/** Callers for all protocols and transports. */
export const ROUTED_CALLERS: Readonly<Record<string, RoutedCaller>> = {
  gRPC: grpc,
  "gRPC-Web": connect((baseUrl) => ({ transport: createGrpcWebTransport({ baseUrl, httpVersion: "1.1" }) })),
  Connect: connect((baseUrl) => ({ transport: createConnectTransport({ baseUrl, httpVersion: "1.1" }) })),
  "Connect over HTTP/2": connect((baseUrl) => {
    const sessionManager = new Http2SessionManager(new URL(baseUrl).origin);
    const transport = createConnectTransport({ baseUrl, httpVersion: "2", sessionManager });
    return { transport, close: () => sessionManager.abort() };
  }),
  REST: rest,
};
