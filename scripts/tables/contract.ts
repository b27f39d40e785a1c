import { type DescField, type DescMessage, type DescMethod, getOption, ScalarType } from "@bufbuild/protobuf";
import { http } from "../../src/gen/google/api/annotations_pb.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { commentOf } from "../../src/server/openapi/schemas.ts";
import { isRequired, restName } from "../../src/transcode/descriptors.ts";
import { markdownTable } from "./markdown.ts";

/** The contract: each operation with its messages, and then the messages that these refer to. */
export function contractReference(): string {
  const { methods } = LanceNamespaceService;
  const ofOperations = new Set(methods.flatMap(({ input, output }) => [input, output]));
  const others = [...reachable([...ofOperations])].filter((message) => !ofOperations.has(message));
  const sorted = others.toSorted((a, b) => (a.name < b.name ? -1 : 1));
  return [
    ...["## Operations", ...methods.map(operation)],
    ...["## Messages", ...sorted.map((message) => `### ${message.name}\n\n${describe(message)}`)],
  ].join("\n\n");
}

function operation(method: DescMethod): string {
  const rule = getOption(method, http);
  const routes = [rule, ...rule.additionalBindings].map(
    ({ pattern }) => `\`${pattern.case?.toUpperCase()} ${pattern.value}\``,
  );
  return [
    `### ${method.name}`,
    commentOf(method) ?? "",
    `REST: ${routes.join(", ")}.`,
    ...[method.input, method.output].map((message) => `#### ${message.name}\n\n${describe(message)}`),
  ].join("\n\n");
}

function describe(message: DescMessage): string {
  const rows = message.fields.map((field) => [
    `\`${restName(field)}\``,
    typeOf(field),
    `${isRequired(field) ? "Required. " : ""}${(commentOf(field) ?? "").replaceAll("\n", " ")}`,
  ]);
  const table = rows.length === 0 ? "" : `\n\n${markdownTable(["Field", "Type", "Meaning"], rows)}`;
  return `${commentOf(message) ?? ""}${table}`;
}

function typeOf(field: DescField): string {
  const item = itemType(field);
  if (field.fieldKind === "list") return `list of ${item}`;
  return field.fieldKind === "map" ? `map to ${item}` : item;
}

function itemType(field: DescField): string {
  if (field.enum !== undefined) return field.enum.values.map(({ name }) => `\`${name}\``).join(", ");
  const { message } = field;
  if (message === undefined) return ScalarType[field.scalar as ScalarType].toLowerCase();
  return isOwn(message) ? `[${message.name}](#${message.name.toLowerCase()})` : `\`${message.typeName}\``;
}

function isOwn({ typeName }: DescMessage): boolean {
  return typeName.startsWith("lance.");
}

/** Returns messages and all those of the contract that their fields refer to. */
function reachable(messages: readonly DescMessage[], found = new Set<DescMessage>()): Set<DescMessage> {
  for (const message of messages) {
    if (found.has(message) || !isOwn(message)) continue;
    found.add(message);
    reachable(
      message.fields.flatMap((field) => field.message ?? []),
      found,
    );
  }
  return found;
}
