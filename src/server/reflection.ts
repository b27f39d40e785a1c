import { setImmediate } from "node:timers/promises";
import {
  create,
  type DescExtension,
  type DescFile,
  type Message,
  type MessageInitShape,
  toBinary,
} from "@bufbuild/protobuf";
import { nestedTypes } from "@bufbuild/protobuf/reflect";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FileDescriptorProto,
  FileDescriptorProtoSchema,
  type SourceCodeInfo,
  type SourceCodeInfo_Location,
  SourceCodeInfo_LocationSchema,
  SourceCodeInfoSchema,
} from "@bufbuild/protobuf/wkt";
import {
  ServerReflection,
  type ServerReflectionRequest,
  type ServerReflectionResponseSchema,
} from "../gen/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../gen/grpc/reflection/v1alpha/reflection_pb.ts";
import type { Rpc } from "../wires/rpc.ts";

type Answer = MessageInitShape<typeof ServerReflectionResponseSchema>["messageResponse"];
type Request = ServerReflectionRequest["messageRequest"];

const INVALID_ARGUMENT = 3;
const NOT_FOUND = 5;

/**
 * The rpcs of grpc.reflection.v1 and v1alpha over the given files, all their imports, and reflection itself.
 *
 * An answer contains a file with all its imports and the comments of the contract, so that a client needs a single
 * request for a service. A missing name is an error response inside the stream.
 */
export function reflectionRpcs(files: readonly DescFile[]): Rpc[] {
  const own = [ServerReflection, ServerReflectionAlpha];
  const index = createDescriptorIndex([...files, ...own.map((service) => service.file)]);
  return own.map((service): Rpc => {
    const method = service.method.serverReflectionInfo;
    return {
      kind: "stream",
      method,
      async *handle(requests) {
        for await (const request of requests) {
          // Both versions have the same fields; only the package differs.
          const originalRequest = request as ServerReflectionRequest;
          const messageResponse = await answerOf(index, originalRequest.messageRequest);
          const init = { validHost: originalRequest.host, originalRequest, messageResponse };
          yield create(method.output, init as object) as Message;
        }
      },
    };
  });
}

function answerOf(index: DescriptorIndex, request: Request): Answer | Promise<Answer> {
  switch (request.case) {
    case "listServices":
      return {
        case: "listServicesResponse",
        value: { service: index.services.map((name) => ({ name })) },
      };
    case "fileByFilename":
      return fileAnswer(index, index.fileNamed(request.value));
    case "fileContainingSymbol":
      return fileAnswer(index, index.fileWithSymbol(request.value));
    case "fileContainingExtension": {
      const { containingType, extensionNumber } = request.value;
      return fileAnswer(index, index.fileWithExtension(containingType, extensionNumber));
    }
    case "allExtensionNumbersOfType": {
      const extensionNumber = index.extensionNumbers(request.value);
      if (extensionNumber === undefined) return errorAnswer(NOT_FOUND, "there is no such message");
      const value = { baseTypeName: request.value, extensionNumber };
      return { case: "allExtensionNumbersResponse", value };
    }
    default:
      return errorAnswer(INVALID_ARGUMENT, "the request has no question that is known here");
  }
}

async function fileAnswer(index: DescriptorIndex, file: DescFile | undefined): Promise<Answer> {
  if (file === undefined) return errorAnswer(NOT_FOUND, "no file has it");
  // Compiled descriptors lack the comments of the contract, and most processes are never asked for them.
  const { COMMENTS } = await import("../gen/lance/comments.ts");
  const fileDescriptorProto: Uint8Array[] = [];
  for (const each of index.withImports(file)) {
    // The first answer encodes all files, which takes longer than other calls should wait.
    if (!encoded.has(each)) await setImmediate();
    fileDescriptorProto.push(bytesOf(each, COMMENTS));
  }
  return { case: "fileDescriptorResponse", value: { fileDescriptorProto } };
}

/** Encoded files. Encoding them for each of a stranger's requests would take 2 ms. */
const encoded = new WeakMap<DescFile, Uint8Array>();

function bytesOf(file: DescFile, comments: Parameters<typeof sourceInfoOf>[1]): Uint8Array {
  const known = encoded.get(file);
  if (known !== undefined) return known;
  const sourceCodeInfo = sourceInfoOf(file.proto, comments);
  const bytes = toBinary(FileDescriptorProtoSchema, { ...file.proto, sourceCodeInfo });
  encoded.set(file, bytes);
  return bytes;
}

function errorAnswer(errorCode: number, errorMessage: string): Answer {
  return { case: "errorResponse", value: { errorCode, errorMessage } };
}

/** Index of the descriptors of a set of files; names are fully qualified, without a leading dot. */
interface DescriptorIndex {
  /** Names of all services, in the order of their files. */
  readonly services: readonly string[];
  fileNamed(name: string): DescFile | undefined;
  /** Returns the file that declares a message, field, enum, enum value, extension, service or method. */
  fileWithSymbol(name: string): DescFile | undefined;
  fileWithExtension(message: string, number: number): DescFile | undefined;
  /** Returns the numbers of a message's extensions in ascending order; undefined for an unknown message. */
  extensionNumbers(message: string): number[] | undefined;
  /** Returns a file and all its imports; each file precedes its own imports. */
  withImports(file: DescFile): DescFile[];
}

/** Indexes the given files and all their imports. */
function createDescriptorIndex(roots: readonly DescFile[]): DescriptorIndex {
  const files = new Map<string, DescFile>();
  const symbols = new Map<string, DescFile>();
  const extensions = new Map<string, Map<number, DescFile>>();
  const services: string[] = [];

  for (const root of roots) {
    for (const file of withImports(root)) {
      // The compiler's descriptors name the file `x.proto` as `x`.
      const name = `${file.name}.proto`;
      if (files.has(name)) continue;
      files.set(name, file);
      addSymbols(file);
    }
  }

  function addSymbols(file: DescFile): void {
    for (const type of nestedTypes(file)) {
      symbols.set(type.typeName, file);
      switch (type.kind) {
        case "message":
          if (!extensions.has(type.typeName)) extensions.set(type.typeName, new Map());
          for (const member of [...type.fields, ...type.oneofs]) {
            symbols.set(`${type.typeName}.${member.name}`, file);
          }
          break;
        case "enum": {
          // The values of an enum are siblings of the enum, not its children.
          const scope = type.typeName.slice(0, type.typeName.lastIndexOf(".") + 1);
          for (const value of type.values) symbols.set(scope + value.name, file);
          break;
        }
        case "extension":
          addExtension(type, file);
          break;
        case "service":
          if (roots.includes(file)) services.push(type.typeName);
          for (const method of type.methods) symbols.set(`${type.typeName}.${method.name}`, file);
      }
    }
  }

  function addExtension(extension: DescExtension, file: DescFile): void {
    const extended = extension.extendee.typeName;
    const numbers = extensions.get(extended) ?? new Map<number, DescFile>();
    extensions.set(extended, numbers.set(extension.number, file));
  }

  return {
    services,
    withImports,
    fileNamed: (name) => files.get(name),
    fileWithSymbol: (name) => symbols.get(name),
    fileWithExtension: (message, number) => extensions.get(message)?.get(number),
    extensionNumbers(message) {
      const numbers = extensions.get(message);
      return numbers && [...numbers.keys()].sort((a, b) => a - b);
    },
  };
}

function withImports(file: DescFile): DescFile[] {
  const seen = new Set<DescFile>();
  const importsFirst: DescFile[] = [];
  const add = (next: DescFile) => {
    if (seen.has(next)) return;
    seen.add(next);
    next.dependencies.forEach(add);
    importsFirst.push(next);
  };
  add(file);
  return importsFirst.reverse();
}

/** Longest line of a comment, in characters, as in the files of the contract. */
const LINE_LENGTH = 120;

/** Numbers of the fields in which a descriptor has its parts, of which the path to a comment consists (descriptor.proto). */
const FILE = { messages: 4, enums: 5, services: 6, extensions: 7 } as const;
const MESSAGE = { fields: 2, nested: 3, enums: 4 } as const;
const MEMBERS = 2;

/**
 * Returns the comments of a file in the form in which its descriptor carries them. Positions in the file are not known.
 *
 * @param comments texts of comments by the full names of what they describe, with a line for each paragraph
 */
function sourceInfoOf(
  { package: name, messageType, enumType, service, extension }: FileDescriptorProto,
  comments: Readonly<Record<string, string>>,
): SourceCodeInfo {
  const location: SourceCodeInfo_Location[] = [];

  function add(path: readonly number[], fullName: string): void {
    const text = comments[fullName];
    if (text === undefined) return;
    const leadingComments = text.split("\n").flatMap(linesOf).join("");
    const span = [0, 0, 0];
    location.push(create(SourceCodeInfo_LocationSchema, { path: [...path], span, leadingComments }));
  }
  function addAll(path: readonly number[], scope: string, parts: readonly { readonly name: string }[]): void {
    for (const [i, part] of parts.entries()) add([...path, i], `${scope}.${part.name}`);
  }
  function addEnums(path: readonly number[], scope: string, enums: readonly EnumDescriptorProto[]): void {
    addAll(path, scope, enums);
    for (const [i, each] of enums.entries())
      addAll([...path, i, MEMBERS], `${scope}.${each.name}`, each.value);
  }
  function addMessages(path: readonly number[], scope: string, messages: readonly DescriptorProto[]): void {
    addAll(path, scope, messages);
    for (const [i, message] of messages.entries()) {
      const [own, inside] = [[...path, i], `${scope}.${message.name}`];
      addAll([...own, MESSAGE.fields], inside, message.field);
      addMessages([...own, MESSAGE.nested], inside, message.nestedType);
      addEnums([...own, MESSAGE.enums], inside, message.enumType);
    }
  }
  addMessages([FILE.messages], name, messageType);
  addEnums([FILE.enums], name, enumType);
  addAll([FILE.extensions], name, extension);
  addAll([FILE.services], name, service);
  for (const [i, { name: own, method }] of service.entries())
    addAll([FILE.services, i, MEMBERS], `${name}.${own}`, method);
  return create(SourceCodeInfoSchema, { location });
}

/** Breaks a paragraph into lines that begin with a space, as they are behind the slashes of a file. */
function linesOf(paragraph: string): string[] {
  const lines: string[] = [];
  let line = "";
  for (const word of paragraph.split(" ")) {
    if (line !== "" && line.length + 1 + word.length > LINE_LENGTH) {
      lines.push(`${line}\n`);
      line = "";
    }
    line += ` ${word}`;
  }
  return [...lines, `${line.trimEnd()}\n`];
}
