import { type DescField, type DescMessage, type Message, ScalarType } from "@bufbuild/protobuf";
import { LanceError } from "../../namespace/errors.ts";
import type { Interceptor } from "../call/interceptor.ts";

/** Longest name, location, token or other short text of a request, in characters. */
export const MAX_NAME_LENGTH = 64 * 1024;

/**
 * Fields whose texts have bounds of their own: SQL, words to search for, definitions, values that users choose, and credentials, which
 * authentication refuses.
 */
const LONG_TEXTS = new Set(
  `filter predicate expression computed when_matched_update_all_filt when_not_matched_by_source_delete_filt where query terms
  source_query value manifest udf udtf output_schema api_key auth_token`.split(/\s+/),
);

type Fields = Record<string, unknown>;

/** Checks the texts in a field of a message. */
type Check = (message: Fields) => void;

const compiled = new WeakMap<DescMessage, readonly Check[]>();

/**
 * Refuses names of megabytes before anything reads them: looking for their parts, quoting them in errors and joining them to paths
 * takes up to 0.2 s.
 */
export const boundNames: Interceptor = (call, request, next) => {
  for (const check of checksOf(call.method.input)) check(request.message as Message & Fields);
  return next(call, request);
};

function checksOf(type: DescMessage): readonly Check[] {
  const known = compiled.get(type);
  if (known !== undefined) return known;
  const checks: Check[] = [];
  compiled.set(type, checks);
  for (const field of type.fields) {
    const check = checkOf(field);
    if (check !== undefined) checks.push(check);
  }
  return checks;
}

/** Returns the check of a field; undefined if it has no names. Maps have the names and values of users. */
function checkOf(field: DescField): Check | undefined {
  const each = field.fieldKind === "map" ? undefined : valueCheck(field);
  if (each === undefined) return undefined;
  const { localName } = field;
  const oneof = field.oneof?.localName;
  if (field.fieldKind === "list") {
    return (message) => {
      for (const item of message[localName] as readonly unknown[]) each(item);
    };
  }
  return (message) => {
    const chosen = oneof === undefined ? undefined : (message[oneof] as { case?: string; value?: unknown });
    const value = oneof === undefined ? message[localName] : chosen?.case === localName && chosen.value;
    if (value) each(value);
  };
}

function valueCheck(field: DescField): ((value: unknown) => void) | undefined {
  if (field.message !== undefined) {
    if (field.message.typeName.startsWith("google.")) return undefined;
    const checks = checksOf(field.message);
    return (value) => {
      for (const check of checks) check(value as Fields);
    };
  }
  if (field.scalar !== ScalarType.STRING || LONG_TEXTS.has(field.name)) return undefined;
  return (value) => {
    const { length } = value as string;
    if (length <= MAX_NAME_LENGTH) return;
    throw new LanceError(
      "InvalidInput",
      `${field.name} has ${length} characters; ${MAX_NAME_LENGTH} are the most`,
    );
  };
}
