import type { Headers, ProtocolClient } from "./client.ts";
import { createConnectClient, createConnectHttp2Client, createGrpcWebClient } from "./connect-client.ts";
import { createGrpcClient } from "./grpc-client.ts";
import { createRestClient } from "./rest-client.ts";

/** Functions from the port of a gateway to a client, for every protocol and transport. */
export const PROTOCOLS: Readonly<Record<string, (port: number, headers?: Headers) => ProtocolClient>> = {
  gRPC: createGrpcClient,
  "gRPC-Web": createGrpcWebClient,
  Connect: createConnectClient,
  "Connect over HTTP/2": createConnectHttp2Client,
  REST: createRestClient,
};

/** Creates a client of every protocol for the gateway at a port, by protocol. */
export function createProtocolClients(
  port: number,
  headers?: Headers,
): Readonly<Record<string, ProtocolClient>> {
  return Object.fromEntries(
    Object.entries(PROTOCOLS).map(([protocol, open]) => [protocol, open(port, headers)]),
  );
}
