import { type DescField, type DescMessage, type DescMethod, hasOption } from "@bufbuild/protobuf";
import { http } from "../../gen/google/api/annotations_pb.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { optionOf } from "../option.ts";
import { parseTemplate } from "./template.ts";

/** Returns the local name of the field that carries a body other than JSON; undefined if a message has none. */
export function bodyFieldOf(message: DescMessage): string | undefined {
  return message.fields.find((field) => field.message?.typeName === HttpBodySchema.typeName)?.localName;
}

const NO_FIELDS: readonly DescField[] = [];
const fieldsOf = new WeakMap<DescMethod, readonly DescField[]>();

/** Returns the text fields of a request that the paths of a method carry, by its HTTP annotation. */
export function pathFieldsOf(method: DescMethod): readonly DescField[] {
  let fields = fieldsOf.get(method);
  if (fields === undefined) {
    fields = findPathFields(method);
    fieldsOf.set(method, fields);
  }
  return fields;
}

function findPathFields(method: DescMethod): readonly DescField[] {
  if (!hasOption(method, http)) return NO_FIELDS;
  const rule = optionOf(method, http);
  const names = new Set<string>();
  for (const { pattern } of [rule, ...rule.additionalBindings]) {
    if (pattern.case === undefined || typeof pattern.value !== "string") continue;
    for (const { field } of parseTemplate(pattern.value).variables) names.add(field);
  }
  return method.input.fields.filter(({ name, fieldKind }) => fieldKind === "scalar" && names.has(name));
}
