import type { Message } from "@bufbuild/protobuf";
import { actionOf } from "../../namespace/actions.ts";
import type { Call } from "../../namespace/call.ts";
import { agreedIdentifier } from "../../namespace/identifier.ts";
import { reachOf, type Touch } from "../../namespace/objects.ts";
import { refusal } from "../authorize.ts";
import type { Databases } from "../databases.ts";
import type { Interceptor, OperationRequest } from "../interceptor.ts";
import { createLookups } from "./lookups.ts";
import { mayAll } from "./may-all.ts";
import { METHODS, type Permissions } from "./permissions.ts";

/**
 * Refuses the calls that do to one of their objects what the caller may not do. The objects are those of the parsed
 * request that the backend executes, and nothing looks before whether they exist.
 */
export function authorizeObjects(permissions: Permissions, databases: Databases): Interceptor {
  const lookupsOf = createLookups(permissions, databases);

  async function check(call: Call, touches: readonly Touch[], own: readonly Touch[]): Promise<void> {
    for (const touch of touches) {
      const allowed = permissions.allow(call, touch);
      if (allowed === true || (allowed !== false && (await allowed))) continue;
      const { operation, id } = (touch.unnamed === true ? own[0] : touch) ?? touch;
      const method = METHODS[operation];
      throw refusal(call, method.name, actionOf(method), id);
    }
  }

  return async (call, request, next) => {
    nameEntries(request);
    const lookups = lookupsOf(call, next);
    const { own, more } = await reachOf(request.operation, request.message, call.id, lookups);
    await check(call, own, own);
    if (more !== undefined) await check(call, await more(), own);
    call.may = (action) => mayAll(permissions, call, action);
    return next(call, request);
  };
}

/** Makes the lists of a commit's entries name their tables, so that nothing has to parse a text after the decision. */
function nameEntries({ message, operation }: OperationRequest): void {
  if (operation !== "batchCommitTables") return;
  const { operations, delimiter: common } = message as Message & Commit;
  for (const { operation: entry } of operations) {
    if (entry.value === undefined) continue;
    const { id, identifier, delimiter = common } = entry.value;
    entry.value.id = [...agreedIdentifier(id, identifier, delimiter)];
    entry.value.identifier = "";
  }
}

interface Commit {
  readonly delimiter?: string;
  readonly operations: readonly { readonly operation: { readonly value?: Entry } }[];
}

interface Entry {
  id: string[];
  identifier: string;
  readonly delimiter?: string;
}
