import type { DescMethod } from "@bufbuild/protobuf";
import { ActionSchema, operation } from "../../gen/lance/namespace/v1/options_pb.ts";
import { type Action, isReadAction } from "../call/principal.ts";
import { optionOf } from "../option.ts";

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
