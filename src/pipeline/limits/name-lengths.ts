import { ScalarType } from "@bufbuild/protobuf";
import { LanceError } from "../../namespace/errors.ts";
import { createFieldChecks } from "../call/field-checks.ts";
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
