import { type DescField, type DescMessage, ScalarType } from "@bufbuild/protobuf";
import type { Dialect } from "../../dialects/dialect.ts";
import { RestForm } from "../../gen/lance/namespace/v1/options_pb.ts";
import { isJsonObject } from "../../runtime/text.ts";
import { isImplicit, isRequired, oneofOf, restForm, restName } from "../descriptors.ts";

/**
 * Whether a parsed answer is what the gateway would write for it, so that its text can go on without becoming a
 * message: known names only, the required ones among them, no empty value that is omitted, no `context`, and texts and
 * booleans in objects, lists and maps. Anything else needs the message: a number has several spellings.
 */
export type IsPlain = (json: unknown) => boolean;

interface Slot {
  readonly required: boolean;
  readonly isPlain: IsPlain;
}

const never: IsPlain = () => false;
const isText: IsPlain = (json) => typeof json === "string" && json.isWellFormed();
const isFlag: IsPlain = (json) => typeof json === "boolean";
const SCALARS: ReadonlyMap<ScalarType, IsPlain> = new Map([
  [ScalarType.STRING, isText],
  [ScalarType.BOOL, isFlag],
]);

/**
 * Compiles the check for a type of message.
 *
 * @param forms types of messages that are written in another form, which are never plain.
 */
export function createPlainCheck(type: DescMessage, forms: Dialect["forms"]): IsPlain {
  return messageCheck(type, forms, new Set());
}

function messageCheck(type: DescMessage, forms: Dialect["forms"], above: ReadonlySet<DescMessage>): IsPlain {
  const isObject = restForm(type) === RestForm.UNSPECIFIED && !type.typeName.startsWith("google.protobuf.");
  if (above.has(type) || forms.has(type.typeName) || !isObject) return never;
  const inside = new Set([...above, type]);
  const slots = new Map<string, Slot>();
  for (const field of type.fields) {
    if (field.name === "context" || oneofOf(field) !== undefined) continue;
    slots.set(restName(field), {
      required: isRequired(field),
      isPlain: fieldCheck(field, (message) => messageCheck(message, forms, inside)),
    });
  }
  const required = [...slots.values()].filter((slot) => slot.required).length;

  return (json) => {
    if (!isJsonObject(json)) return false;
    let missing = required;
    for (const name in json) {
      const slot = slots.get(name);
      if (slot === undefined || !slot.isPlain(json[name])) return false;
      if (slot.required) missing--;
    }
    return missing === 0;
  };
}

function fieldCheck(field: DescField, ofMessage: (type: DescMessage) => IsPlain): IsPlain {
  const isItem =
    field.message !== undefined
      ? ofMessage(field.message)
      : (field.enum === undefined && SCALARS.get(field.scalar as ScalarType)) || never;
  const mayBeEmpty = isRequired(field);
  switch (field.fieldKind) {
    case "list":
      return (json) => Array.isArray(json) && (mayBeEmpty || json.length > 0) && json.every(isItem);
    case "map":
      return field.mapKey === ScalarType.STRING ? mapCheck(isItem, mayBeEmpty) : never;
    default:
      return mayBeEmpty || !isImplicit(field) ? isItem : (json) => isItem(json) && Boolean(json);
  }
}

function mapCheck(isItem: IsPlain, mayBeEmpty: boolean): IsPlain {
  return (json) => {
    if (!isJsonObject(json)) return false;
    let isEmpty = true;
    for (const key in json) {
      isEmpty = false;
      if (!key.isWellFormed() || !isItem(json[key])) return false;
    }
    return mayBeEmpty || !isEmpty;
  };
}
