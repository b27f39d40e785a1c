import { type DescField, type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../gen/google/api/annotations_pb.ts";
import { LanceError } from "./errors.ts";
import { parseTemplate } from "./template.ts";

const SEPARATOR = String.raw`(?:[/\\]|%2f|%5c)`;

/** A segment of dots, also percent-encoded, and also with the parameters that some servers cut off (`..;a=b`). */
const DOT_SEGMENT = new RegExp(`(?:^|${SEPARATOR})(?:\\.|%2e)+(?:;.*?)?(?:$|${SEPARATOR})`, "is");

/**
 * Whether a value, once it is in a path, contains a segment that URL parsers and proxies fold away: `/index/../drop`
 * becomes `/drop`, which is another operation (docs/adr/0037).
 */
export function hasDotSegment(value: string): boolean {
  return DOT_SEGMENT.test(value);
}

/**
 * Checks a value that a path carries.
 *
 * @throws LanceError InvalidInput for a value with a segment of dots.
 */
export function checkPathValue(value: string, field: string): void {
  if (!hasDotSegment(value)) return;
  throw new LanceError(
    "InvalidInput",
    `field "${field}" must not be dots alone, or have such a part: ${JSON.stringify(value)}`,
  );
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
  const rule = getOption(method, http);
  const names = new Set<string>();
  for (const { pattern } of [rule, ...rule.additionalBindings]) {
    if (pattern.case === undefined || typeof pattern.value !== "string") continue;
    for (const { field } of parseTemplate(pattern.value).variables) names.add(field);
  }
  return method.input.fields.filter(({ name, fieldKind }) => fieldKind === "scalar" && names.has(name));
}
