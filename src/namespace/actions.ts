import { factsOf } from "./operations.ts";
import { type Action, isReadAction } from "./principal.ts";

/** Returns the kind of a method of the contract. An unknown method needs the most. */
export function actionOf({ localName }: { readonly localName: string }): Action {
  return factsOf(localName)?.action ?? "admin";
}

/** Whether a method of the contract changes nothing. An unknown method counts as a write. */
export function isRead(method: { readonly localName: string }): boolean {
  return isReadAction(actionOf(method));
}
