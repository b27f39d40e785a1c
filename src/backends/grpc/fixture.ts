import { create } from "@bufbuild/protobuf";
import { pino } from "pino";
import { afterAll, beforeAll } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { fakeBackend, startServer, type TestServer } from "../../../test/support/server.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import {
  DescribeTableRequestSchema,
  DescribeTableResponseSchema,
} from "../../gen/lance/namespace/v1/table_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { type ErrorName, isLanceError } from "../../namespace/errors.ts";
import type { Backend, LanceNamespace } from "../../namespace/lance-namespace.ts";
import { createGrpcBackend, type GrpcBackendOptions } from "./index.ts";

export const log = pino({ level: "silent" });
export const { describeTable, createTable, queryTable } = LanceNamespaceService.method;
export const MIB = 1024 * 1024;

/** An upstream that answers by gRPC, and a backend that calls it. */
export interface GrpcWorld {
  /** The answers of the upstream. */
  upstream: Partial<LanceNamespace>;
  /** The last call of describeTable that the upstream saw. */
  seen: Call | undefined;
  readonly backend: Backend;
  /** Opens another backend. Default: of the same upstream. */
  open(options?: Partial<GrpcBackendOptions>): Promise<Backend>;
}

/** Starts an upstream and a backend before the tests of a file, and closes them after. */
export function useUpstream(): GrpcWorld {
  let [server, backend]: [TestServer?, Backend?] = [];
  const world: GrpcWorld = {
    upstream: {},
    seen: undefined,
    get backend() {
      return backend as Backend;
    },
    open: (options = {}) => createGrpcBackend({ addresses: [`127.0.0.1:${server?.port}`], log, ...options }),
  };
  beforeAll(async () => {
    server = await startServer(
      fakeBackend({
        describeTable: (request, call) => {
          world.seen = call;
          return (world.upstream.describeTable as LanceNamespace["describeTable"])(request, call);
        },
        createTable: (request, data, call) =>
          (world.upstream.createTable as LanceNamespace["createTable"])(request, data, call),
        queryTable: (request, call) =>
          (world.upstream.queryTable as LanceNamespace["queryTable"])(request, call),
      }),
    );
    backend = await world.open();
  });
  afterAll(async () => {
    await backend?.close();
    await server?.close();
  });
  return world;
}

/** Describes a table on a backend; the context's entries become headers of the call. */
export async function describeOn(
  on: Backend,
  overrides: Partial<Call> = {},
  context: Record<string, string> = {},
) {
  const call = beginCall(describeTable, overrides);
  const request = create(DescribeTableRequestSchema, { id: ["t"], context });
  for (const key in context) call.headers[key.replace("header.", "")] = context[key] as string;
  return await (on.operations.describeTable as LanceNamespace["describeTable"])(request, call);
}

export const answering = async () => create(DescribeTableResponseSchema, { table: "t" });

/** Whether an error has a name and a text. */
export const failsWith =
  (name: ErrorName, text = /./) =>
  (error: unknown) =>
    isLanceError(error, name) && text.test(error.message);
