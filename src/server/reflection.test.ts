import assert from "node:assert/strict";
import {
  create,
  createFileRegistry,
  type DescMethod,
  type DescService,
  fromBinary,
  type Message,
  type MessageInitShape,
} from "@bufbuild/protobuf";
import { FileDescriptorProtoSchema, FileDescriptorSetSchema } from "@bufbuild/protobuf/wkt";
import { getComments } from "@bufbuild/protoplugin";
import { Client, credentials, Metadata } from "@grpc/grpc-js";
import { test } from "vitest";
import { startServer } from "../../test/fixtures/server/server.ts";
import { codecs } from "../../test/fixtures/wires/grpc.ts";
import { beginCall } from "../../test/support/caller.ts";
import {
  ServerReflection,
  ServerReflectionRequestSchema,
  type ServerReflectionResponse,
} from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import { COMMENTS } from "../gen/lance/comments.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { StreamRpc } from "../wires/rpc.ts";
import { reflectionRpcs } from "./reflection.ts";

const LANCE = "lance.namespace.v1.LanceNamespaceService";
type Question = NonNullable<MessageInitShape<typeof ServerReflectionRequestSchema>["messageRequest"]>;

async function ask(address: string, questions: readonly Question[], service: DescService = ServerReflection) {
  const client = new Client(address, credentials.createInsecure());
  const method = service.methods[0] as DescMethod;
  const call = client.makeBidiStreamRequest(...codecs(method), new Metadata(), {});
  const answers: ServerReflectionResponse["messageResponse"][] = [];
  for (const messageRequest of questions) {
    call.write(create(method.input, { host: "h", messageRequest }) as Message);
  }
  call.end();
  for await (const response of call) {
    assert.equal((response as ServerReflectionResponse).validHost, "h");
    answers.push((response as ServerReflectionResponse).messageResponse);
  }
  client.close();
  return answers;
}

test("both versions list the services and hand out files that make a complete registry", async () => {
  await using server = await startServer();
  for (const service of [ServerReflection, ServerReflectionAlpha]) {
    const [list, symbol] = await ask(
      server.address,
      [
        { case: "listServices", value: "" },
        { case: "fileContainingSymbol", value: LANCE },
      ],
      service,
    );
    assert.ok(list?.case === "listServicesResponse");
    assert.deepEqual(
      list.value.service.map(({ name }) => name),
      [
        LANCE,
        "lance.gateway.v1.ViewService",
        "lance.gateway.v1.AccessService",
        "grpc.health.v1.Health",
        "grpc.reflection.v1.ServerReflection",
        "grpc.reflection.v1alpha.ServerReflection",
      ],
    );
    assert.ok(symbol?.case === "fileDescriptorResponse");
    const file = symbol.value.fileDescriptorProto.map((bytes) =>
      fromBinary(FileDescriptorProtoSchema, bytes),
    );
    const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: file.reverse() }));
    assert.equal(registry.getService(LANCE)?.methods.length, 54);
  }
});

test("files carry the comments of the contract, at the places where clients look for them", async () => {
  await using server = await startServer();
  const [answer] = await ask(server.address, [{ case: "fileContainingSymbol", value: LANCE }]);
  assert.ok(answer?.case === "fileDescriptorResponse");
  const files = answer.value.fileDescriptorProto.map((bytes) => fromBinary(FileDescriptorProtoSchema, bytes));
  const registry = createFileRegistry(create(FileDescriptorSetSchema, { file: files.reverse() }));
  const request = registry.getMessage("lance.namespace.v1.DescribeTableRequest");
  const described = [
    registry.getService(LANCE)?.method["describeTable"],
    request,
    request?.field["checkDeclared"],
    registry.getEnum("lance.namespace.v1.Action"),
    registry.getEnum("lance.namespace.v1.Action")?.values[1],
  ];
  for (const part of described) {
    assert.ok(part !== undefined);
    const name = "typeName" in part ? part.typeName : `${part.parent.typeName}.${part.name}`;
    const { leading = "" } = getComments(part);
    assert.equal(leading.replaceAll(/\s+/g, " ").trim(), COMMENTS[name]?.replaceAll(/\s+/g, " "), name);
    for (const line of leading.trimEnd().split("\n")) assert.match(line, /^(?: \S.{0,119})?$/);
  }
  const own = Object.keys(COMMENTS).filter((name) => name.startsWith("lance.namespace.v1."));
  const carried = files.flatMap(({ sourceCodeInfo }) => sourceCodeInfo?.location ?? []);
  assert.equal(carried.length, own.length);
});

test("every kind of symbol leads to its file", async () => {
  await using server = await startServer();
  const symbols = [
    `${LANCE}.DescribeTable`,
    "lance.namespace.v1.DescribeTableRequest",
    "lance.namespace.v1.DescribeTableRequest.id",
    "grpc.health.v1.HealthCheckResponse.ServingStatus",
    "grpc.health.v1.HealthCheckResponse.SERVING",
    "google.api.http",
    "google.api.HttpRule.pattern",
  ];
  const questions = symbols.map((value) => ({ case: "fileContainingSymbol" as const, value }));
  for (const [index, answer] of (await ask(server.address, questions)).entries()) {
    assert.equal(answer.case, "fileDescriptorResponse", String(symbols[index]));
  }
});

test("files, extensions and what does not exist", async () => {
  await using server = await startServer();
  const options = "google.protobuf.MethodOptions";
  const [file, extension, numbers, ...missing] = await ask(server.address, [
    { case: "fileByFilename", value: "google/api/annotations.proto" },
    { case: "fileContainingExtension", value: { containingType: options, extensionNumber: 72295728 } },
    { case: "allExtensionNumbersOfType", value: options },
    { case: "fileByFilename", value: "none.proto" },
    { case: "fileContainingSymbol", value: "none.Such" },
    { case: "fileContainingExtension", value: { containingType: options, extensionNumber: 1 } },
    { case: "allExtensionNumbersOfType", value: "none.Such" },
  ]);
  for (const answer of [file, extension]) {
    assert.ok(answer?.case === "fileDescriptorResponse");
    const [first] = answer.value.fileDescriptorProto;
    assert.equal(first && fromBinary(FileDescriptorProtoSchema, first).name, "google/api/annotations.proto");
  }
  assert.ok(numbers?.case === "allExtensionNumbersResponse");
  assert.ok(numbers.value.extensionNumber.includes(72295728));
  assert.equal(missing.length, 4);
  for (const answer of missing) {
    assert.ok(answer.case === "errorResponse" && answer.value.errorCode === 5);
  }
});

test("a file is encoded once, however often strangers ask for it", async () => {
  const [rpc] = reflectionRpcs([LanceNamespaceService.file]);
  async function firstOf(messageRequest: Question) {
    const request = create(ServerReflectionRequestSchema, { messageRequest });
    async function* requests() {
      yield request;
    }
    const call = beginCall(ServerReflection.method.serverReflectionInfo);
    for await (const answer of (rpc as StreamRpc).handle(requests(), call)) {
      const { messageResponse } = answer as ServerReflectionResponse;
      if (messageResponse.case === "fileDescriptorResponse")
        return messageResponse.value.fileDescriptorProto[0];
    }
    return undefined;
  }
  const question: Question = { case: "fileContainingSymbol", value: LANCE };
  const bytes = await firstOf(question);
  assert.ok(bytes !== undefined && bytes === (await firstOf(question)));
});
