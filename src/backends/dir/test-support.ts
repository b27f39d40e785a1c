import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type DescMessage, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import pino from "pino";
import type { TestContext } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { type ErrorName, isLanceError } from "../../namespace/errors.ts";
import { parseIdentifier } from "../../namespace/identifier.ts";
import type { Backend, LanceNamespace, Operation } from "../../namespace/lance-namespace.ts";
import { createDirectoryBackend } from "./index.ts";
import type { DirectoryBackendOptions } from "./options.ts";

/** A logger for tests, which writes nothing. */
export const silent = pino({ level: "silent" });

/** Creates a directory that is removed at the end of the test. */
export async function temporaryDirectory(t: TestContext): Promise<string> {
  const path = await mkdtemp(join(tmpdir(), "lance-gateway-"));
  // A background write of a hint may add a file to a directory that is being emptied.
  t.onTestFinished(() => rm(path, { recursive: true, force: true, maxRetries: 5 }));
  return path;
}

type Methods = typeof LanceNamespaceService.method;
type Request<K extends Operation> = MessageInitShape<Methods[K]["input"]>;

/** Calls operations by name on an object whose id is given as text. */
export interface TestClient {
  /** Calls a unary operation. */
  call<K extends Operation>(operation: K, id: string, request?: Request<K>): ReturnType<LanceNamespace[K]>;
  /** Uploads Arrow IPC bytes. */
  upload<K extends "createTable" | "insertIntoTable" | "mergeInsertIntoTable">(
    operation: K,
    id: string,
    request: Request<K>,
    ipc: Uint8Array,
  ): ReturnType<LanceNamespace[K]>;
  /** Returns a query's whole result as Arrow IPC bytes. */
  query(id: string, request?: Request<"queryTable">): Promise<Buffer>;
  close(): Promise<void>;
}

/** Opens a backend that is closed at the end of the test. */
export async function openClient(
  t: TestContext,
  root: string,
  options: Partial<DirectoryBackendOptions> = {},
): Promise<TestClient> {
  const client = clientOf(await createDirectoryBackend({ root, log: silent, ...options }));
  t.onTestFinished(client.close);
  return client;
}

/** Calls the operations of a backend. */
export function clientOf(backend: Backend): TestClient {
  let closed: Promise<void> | undefined;
  const close = () => (closed ??= backend.close());
  const run = (operation: Operation, id: string, request: Record<string, unknown>, ...rest: unknown[]) => {
    const method: DescMethod = LanceNamespaceService.method[operation];
    const handler = backend.operations[operation] as (...args: unknown[]) => unknown;
    return handler(
      create(method.input as DescMessage, request),
      ...rest,
      beginCall(method, { id: parseIdentifier(id) }),
    );
  };
  return {
    call: (operation, id, request) => run(operation, id, { ...request }) as never,
    upload: (operation, id, request, ipc) => run(operation, id, { ...request }, inPieces(ipc)) as never,
    async query(id, request = {}) {
      const pieces: Uint8Array[] = [];
      const result = run("queryTable", id, { ...request }) as ReturnType<LanceNamespace["queryTable"]>;
      for await (const message of result) pieces.push(message.data?.data ?? new Uint8Array());
      return Buffer.concat(pieces);
    },
    close,
  };
}

async function* inPieces(bytes: Uint8Array): AsyncIterable<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += 1000) yield bytes.subarray(at, at + 1000);
}

/** Creates a predicate for `assert.rejects`. */
export const failsWith = (name: ErrorName) => (error: unknown) => isLanceError(error, name);
