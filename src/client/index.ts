/** The client: the same interface to a directory, a REST server or a gRPC server. */
import { loadLibrary } from "../backends/load-library.ts";
import { type ConnectProperties, openConnect } from "./connections/connect.ts";
import { type DirProperties, openDirectory } from "./connections/dir.ts";
import { type GrpcProperties, openGrpc } from "./connections/grpc.ts";
import type { Properties } from "./connections/properties.ts";
import { createRegistry } from "./connections/registry.ts";
import { openRest, type RestProperties } from "./connections/rest.ts";
import type { Namespace } from "./namespace.ts";
import { openNodeFetch, openNodeTransport } from "./transport/node-transport.ts";

export type { DirProperties } from "./connections/dir.ts";
export type { GrpcProperties } from "./connections/grpc.ts";
export * from "./exports.ts";

const { registerNamespace, connectByName } = createRegistry(
  {
    dir: openDirectory,
    rest: (properties) => openRest(properties, openNodeTransport),
    grpc: openGrpc,
    connect: async (properties) => openConnect(properties, await openNodeFetch()),
  },
  () => loadLibrary("openTable", "@lancedb/lancedb", () => import("@lancedb/lancedb")),
);

export { registerNamespace };

/** Opens a directory in this process. */
export function connect(name: "dir", properties: DirProperties): Promise<Namespace>;
/** Connects to a server over REST. */
export function connect(name: "rest", properties: RestProperties): Promise<Namespace>;
/** Connects to a server over gRPC. */
export function connect(name: "grpc", properties: GrpcProperties): Promise<Namespace>;
/** Connects to a server over the Connect protocol. */
export function connect(name: "connect", properties: ConnectProperties): Promise<Namespace>;
/** Connects by the name of a registered implementation. */
export function connect(name: string, properties?: Properties): Promise<Namespace>;
export function connect(name: string, properties: object = {}): Promise<Namespace> {
  return connectByName(name, properties as Properties);
}
