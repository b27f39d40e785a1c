import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DescMethod, getOption } from "@bufbuild/protobuf";
import { pino } from "pino";
import { createDirectoryBackend } from "../../src/backends/dir/index.ts";
import { http } from "../../src/gen/google/api/annotations_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { markdownTable } from "./markdown.ts";

const RPC_KINDS: Readonly<Record<DescMethod["methodKind"], string>> = {
  unary: "unary",
  client_streaming: "client stream",
  server_streaming: "server stream",
  bidi_streaming: "both stream",
};

/** Every operation of the contract, how it is reached, and which backends have it. */
export async function operationTable(): Promise<string> {
  const root = mkdtempSync(join(tmpdir(), "lance-gateway-docs-"));
  const backend = await createDirectoryBackend({ root, log: pino({ level: "silent" }) });
  const rows = LanceNamespaceService.methods.map((method) => [
    method.name,
    `\`${restRoute(method)}\``,
    RPC_KINDS[method.methodKind],
    Object.hasOwn(backend.operations, method.localName) ? "yes" : "Unsupported",
  ]);
  await backend.close();
  rmSync(root, { recursive: true });
  return markdownTable(["Operation", "REST", "gRPC, Connect, gRPC-Web", "Directory"], rows);
}

function restRoute(method: DescMethod): string {
  const { pattern } = getOption(method, http);
  return pattern.case === undefined ? "" : `${pattern.case.toUpperCase()} ${pattern.value}`;
}
