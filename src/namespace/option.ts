import { type DescExtension, getOption, hasOption } from "@bufbuild/protobuf";

const known = new WeakMap<object, Map<DescExtension, unknown>>();
/** Owner of the values that options have where they are not set. */
const UNSET = {};

/**
 * Returns the value of an option of a descriptor, or its zero value. Callers share the value and must not change it.
 *
 * `getOption` compiles a type of its own and makes a message of it at each call, also for an option that is not set, which took half the
 * time that codecs took to compile.
 */
export const optionOf = ((element, option) => {
  const owner = hasOption(element, option) ? element : UNSET;
  let values = known.get(owner);
  if (values === undefined) {
    values = new Map();
    known.set(owner, values);
  }
  if (!values.has(option)) values.set(option, getOption(element, option));
  return values.get(option);
}) as typeof getOption;
