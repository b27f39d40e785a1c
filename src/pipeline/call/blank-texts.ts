import type { DescMessage, Message } from "@bufbuild/protobuf";
import { not_blank } from "../../gen/lance/namespace/v1/options_pb.ts";
import { LanceError } from "../../namespace/errors.ts";
import { optionOf } from "../../namespace/option.ts";
import type { Interceptor } from "./interceptor.ts";
import { createTextChecks } from "./text-checks.ts";

/**
 * Refuses a request with a blank text in a field with the option `not_blank`: a condition that selects nothing must not become one that
 * selects everything, nor a branch without a name the main branch.
 *
 * @throws LanceError InvalidInput
 */
export const checkBlankTexts: (type: DescMessage, request: Message) => void = createTextChecks((field) => {
  if (!optionOf(field, not_blank)) return undefined;
  return (text) => {
    if (text.trim() === "") {
      throw new LanceError("InvalidInput", `${field.name} must not be blank; omit it instead`);
    }
  };
});

/** Refuses blank texts as {@link checkBlankTexts} does. */
export const refuseBlankTexts: Interceptor = (call, request, next) => {
  checkBlankTexts(call.method.input, request.message);
  return next(call, request);
};
