import { CreateTableMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import { CreateNamespaceMode } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import type { Touch } from "../../namespace/operations/touch.ts";
import { type Interceptor, interceptOperations, onlyFor } from "../call/interceptor.ts";
import type { Permissions } from "./permissions.ts";

/**
 * Leaves the properties of an object that existed before out of the answer to a creation with EXIST_OK, unless the caller may
 * describe the object. The answer then has those of the request, whether the object is new or not.
 */
export function hideExisting(permissions: Permissions): Interceptor {
  async function answerTo<A extends object, P>(
    call: Call,
    description: Pick<Touch, "operation" | "kind">,
    properties: P,
    next: () => Promise<A>,
  ): Promise<A> {
    if (call.id.length === 0 || (await permissions.allow(call, { ...description, id: call.id })))
      return next();
    call.takes = undefined;
    return { ...(await next()), properties };
  }
  const hide = interceptOperations({
    createNamespace(call, request, next) {
      const { mode, properties } = request.message;
      const create = () => next(call, request);
      if (mode !== CreateNamespaceMode.EXIST_OK) return create();
      return answerTo(call, { operation: "describeNamespace", kind: "Namespace" }, properties, create);
    },
    createTable(call, request, next) {
      const { mode, properties } = request.message;
      const create = () => next(call, request);
      if (mode !== CreateTableMode.EXIST_OK) return create();
      return answerTo(call, { operation: "describeTable", kind: "Table" }, properties, create);
    },
  });
  return onlyFor(({ event }) => event === "namespace.created" || event === "table.created", hide);
}
