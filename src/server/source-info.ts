import { create } from "@bufbuild/protobuf";
import {
  type DescriptorProto,
  type EnumDescriptorProto,
  type FileDescriptorProto,
  type SourceCodeInfo,
  type SourceCodeInfo_Location,
  SourceCodeInfo_LocationSchema,
  SourceCodeInfoSchema,
} from "@bufbuild/protobuf/wkt";

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
export function sourceInfoOf(
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
