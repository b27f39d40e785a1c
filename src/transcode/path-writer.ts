import type { DescMessage } from "@bufbuild/protobuf";
import { LanceError } from "../namespace/errors.ts";
import { checkPathValue } from "../namespace/operations/path-value.ts";
import type { Template } from "../namespace/operations/template.ts";
import { type MessageRecord, restName } from "./descriptors.ts";

/**
 * Compiles the writer of a path from a template and the fields of a message.
 *
 * @param slashedPaths prefix of the paths that end with a slash.
 * @throws Error if the template needs more than a request has. The writer throws LanceError InvalidInput for a value
 *   that is empty, not Unicode, or a dot segment.
 */
export function createPathWriter(
  template: Template,
  message: DescMessage,
  slashedPaths: string | undefined,
): (request: MessageRecord) => string {
  const parts: (string | { readonly local: string; readonly name: string })[] = [];
  let literal = "";
  for (const [index, segment] of template.segments.entries()) {
    if (typeof segment === "object") {
      literal += `/${segment.literal}`;
      continue;
    }
    const variable = template.variables.find(({ start, end }) => start === index && end === index + 1);
    const field = message.fields.find(({ name }) => name === variable?.field);
    if (field === undefined) throw new Error(`path template "${template.source}" cannot be filled`);
    parts.push(`${literal}/`, { local: field.localName, name: restName(field) });
    literal = "";
  }
  if (slashedPaths !== undefined && template.source.startsWith(slashedPaths)) literal += "/";
  parts.push(literal);

  return (request) => {
    let path = "";
    for (const part of parts) {
      path += typeof part === "string" ? part : escaped(String(request[part.local]), part.name);
    }
    return path;
  };
}

/** Most names: no dot, which a segment of dots needs, and nothing to escape but the delimiter. */
const USUAL = /^[\w$-]+$/;

function escaped(value: string, name: string): string {
  if (USUAL.test(value)) return value.replaceAll("$", "%24");
  if (value === "") throw new LanceError("InvalidInput", `field ${JSON.stringify(name)} must not be empty`);
  checkPathValue(value, name);
  try {
    return encodeURIComponent(value);
  } catch (cause) {
    throw new LanceError("InvalidInput", `field ${JSON.stringify(name)} must be well-formed Unicode`, {
      cause,
    });
  }
}
