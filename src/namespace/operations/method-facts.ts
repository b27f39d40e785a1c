import { type DescField, type DescMessage, type DescMethod, hasOption } from "@bufbuild/protobuf";
import { http } from "../../gen/google/api/annotations_pb.ts";
import { HttpBodySchema } from "../../gen/google/api/httpbody_pb.ts";
import { ActionSchema, operation } from "../../gen/lance/namespace/v1/options_pb.ts";
import { type Action, isReadAction } from "../call/principal.ts";
import { optionOf } from "../option.ts";
import { parseTemplate } from "./template.ts";

/*
 * Facts that clients need of a method. The table of all operations would bring every service into the first page of the console.
 */

const known = new WeakMap<DescMethod, Action>();

/** Returns the right that an operation requires, as the option of its method says. A method without the option needs the most. */
export function actionOf(method: DescMethod): Action {
  let action = known.get(method);
  if (action === undefined) {
    const { action: number } = optionOf(method, operation);
    action = number === 0 ? "admin" : (ActionSchema.value[number]?.localName.toLowerCase() as Action);
    known.set(method, action);
  }
  return action;
}

/** Whether an operation changes nothing. A method without the option counts as a write. */
export function isRead(method: DescMethod): boolean {
  return isReadAction(actionOf(method));
}

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
