import {
  create,
  type DescField,
  type DescMessage,
  fromJson,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { codePoint } from "../../test/support/characters.ts";
import { isRequired } from "./descriptors.ts";

/**
 * Generates messages of a type; messages of a required field are always present, because JSON always has them.
 *
 * @param without local names of fields that stay unset.
 */
export function messages(
  descriptor: DescMessage,
  depth: number,
  without: ReadonlySet<string> = new Set(),
): fc.Arbitrary<Message> {
  const members: Record<string, fc.Arbitrary<unknown>> = {};
  for (const member of descriptor.members) {
    if (without.has(member.localName)) continue;
    if (member.kind === "oneof") {
      const cases = member.fields.map((field) =>
        values(field, depth).map((value) => ({ case: field.localName, value })),
      );
      members[member.localName] = fc.oneof(fc.constant({ case: undefined }), ...cases);
    } else if (member.fieldKind === "message") {
      if (isRequired(member)) members[member.localName] = values(member, depth);
      else if (depth > 0) members[member.localName] = fc.option(values(member, depth), { nil: undefined });
    } else if (member.fieldKind === "list") {
      members[member.localName] =
        depth > 0 ? fc.array(values(member, depth), { maxLength: 3 }) : fc.constant([]);
    } else if (member.fieldKind === "map") {
      const keys = fc.string({ unit: codePoint, maxLength: 5 }).filter((key) => key !== "__proto__");
      members[member.localName] = fc.dictionary(keys, values(member, depth), {
        maxKeys: 3,
        noNullPrototype: true,
      });
    } else {
      members[member.localName] = fc.option(values(member, depth), { nil: undefined });
    }
  }
  return fc.record(members).map((init) => create(descriptor, init));
}

/** Generates values of a field, or of its items. */
function values(field: DescField, depth: number): fc.Arbitrary<unknown> {
  if (field.enum !== undefined) return fc.constantFrom(...field.enum.values.map((value) => value.number));
  if (field.message !== undefined) {
    if (field.message.typeName !== ValueSchema.typeName) return messages(field.message, depth - 1);
    return fc
      .jsonValue()
      .filter((json) => json !== null)
      .map((json) => fromJson(ValueSchema, JSON.parse(JSON.stringify(json)) as JsonValue));
  }
  switch (field.scalar) {
    case ScalarType.BOOL:
      return fc.boolean();
    case ScalarType.INT32:
      return fc.integer();
    case ScalarType.INT64:
      return fc.bigInt({ min: -(2n ** 63n), max: 2n ** 63n - 1n });
    case ScalarType.FLOAT:
      return fc.float({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
    case ScalarType.DOUBLE:
      return fc.double({ noNaN: true, noDefaultInfinity: true }).map((value) => value + 0);
    case ScalarType.STRING:
      return fc.string({ unit: codePoint });
    default:
      throw new Error(`no values for ${field}`);
  }
}
