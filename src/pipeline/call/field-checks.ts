import {
  type DescEnum,
  type DescField,
  type DescMessage,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { not_blank } from "../../gen/lance/namespace/v1/options_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { optionOf } from "../../namespace/option.ts";
import type { Interceptor } from "./interceptor.ts";

/** Checks a value of a field: a text, or the number of an enum's value. It throws a LanceError for a value that it refuses. */
type ValueCheck = (value: never) => void;

type Fields = Record<string, unknown>;
type FieldCheck = (message: Fields) => void;

/**
 * Creates a check of the values in messages. The checks of a type are compiled once. They leave out maps, which have the names and values
 * of users, and Google's own types.
 *
 * @param checkOf returns the check of a field's values; undefined for a field without one
 */
function createFieldChecks(
  checkOf: (field: DescField) => ValueCheck | undefined,
): (type: DescMessage, message: Message) => void {
  const compiled = new WeakMap<DescMessage, readonly FieldCheck[]>();
  const unfinished = new Set<DescMessage>();

  function checksOf(type: DescMessage): readonly FieldCheck[] {
    const known = compiled.get(type);
    if (known !== undefined) return known;
    const checks: FieldCheck[] = [];
    compiled.set(type, checks);
    unfinished.add(type);
    for (const field of type.fields) {
      const check = fieldCheck(field);
      if (check !== undefined) checks.push(check);
    }
    unfinished.delete(type);
    return checks;
  }

  function fieldCheck(field: DescField): FieldCheck | undefined {
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
      if (value !== undefined && value !== false) each(value);
    };
  }

  function valueCheck(field: DescField): ((value: unknown) => void) | undefined {
    if (field.message === undefined) return checkOf(field) as ((value: unknown) => void) | undefined;
    if (field.message.typeName.startsWith("google.")) return undefined;
    const checks = checksOf(field.message);
    // A type in itself has its checks later.
    if (checks.length === 0 && !unfinished.has(field.message)) return undefined;
    return (value) => {
      for (const check of checks) check(value as Fields);
    };
  }

  return (type, message) => {
    for (const check of checksOf(type)) check(message as Message & Fields);
  };
}

/**
 * Refuses a request with a blank text in a field with the option `not_blank`: a condition that selects nothing must not become one that
 * selects everything, nor a branch without a name the main branch. It also refuses a value that its enum does not have, which Protobuf
 * passes on as a number: no operation may take it for the default.
 *
 * @throws LanceError InvalidInput
 */
export const checkFields: (type: DescMessage, request: Message) => void = createFieldChecks((field) => {
  if (field.enum !== undefined) return enumCheck(field.name, field.enum);
  return optionOf(field, not_blank) ? blankCheck(field.name) : undefined;
});

function blankCheck(name: string) {
  return (text: string) => {
    if (text.trim() === "")
      throw new LanceError("InvalidInput", `${name} must not be blank; omit it instead`);
  };
}

function enumCheck(name: string, { value: values }: DescEnum) {
  return (number: number) => {
    if (values[number] === undefined)
      throw new LanceError("InvalidInput", `${name} has the unknown value ${number}`);
  };
}

/** Refuses what {@link checkFields} refuses. */
export const refuseUnfitFields: Interceptor = (call, request, next) => {
  checkFields(call.method.input, request.message);
  return next(call, request);
};

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

const checkNames = createFieldChecks(({ scalar, name }) => {
  if (scalar !== ScalarType.STRING || LONG_TEXTS.has(name)) return undefined;
  return ({ length }: string) => {
    if (length <= MAX_NAME_LENGTH) return;
    throw new LanceError(
      "InvalidInput",
      `${name} has ${length} characters; the maximum is ${MAX_NAME_LENGTH}`,
    );
  };
});

/**
 * Refuses names of megabytes before anything reads them: looking for their parts, quoting them in errors and joining them to paths
 * takes up to 0.2 s.
 */
export const boundNames: Interceptor = (call, request, next) => {
  checkNames(call.method.input, request.message);
  return next(call, request);
};
