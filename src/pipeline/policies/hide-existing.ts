import { CreateTableMode } from "../../gen/lance/namespace/v1/data_pb.ts";
import { CreateNamespaceMode } from "../../gen/lance/namespace/v1/namespace_pb.ts";
import type { Call } from "../../namespace/call.ts";
import type { Touch } from "../../namespace/objects.ts";
import { type Interceptor, interceptOperations } from "../interceptor.ts";
import type { Permissions } from "./permissions.ts";

/**
 * Leaves the properties of an object that existed before out of the answer to a creation with EXIST_OK, unless the caller may
 * describe the object. The answer then has those of the request, whether the object is new or not.
 */
export function hideExisting(permissions: Permissions): Interceptor {
  async function isHidden(call: Call, touch: Pick<Touch, "operation" | "kind">): Promise<boolean> {
    const isVisible = await permissions.allow(call, { ...touch, id: call.id });
    if (!isVisible) call.takes = undefined;
    return !isVisible;
  }
  return interceptOperations({
    async createNamespace(call, request, next) {
      const { mode, properties } = request.message;
      const isOpen = mode === CreateNamespaceMode.EXIST_OK && call.id.length > 0;
      const hides = isOpen && (await isHidden(call, { operation: "describeNamespace", kind: "Namespace" }));
      const answer = await next(call, request);
      return hides ? { ...answer, properties } : answer;
    },
    async createTable(call, request, next) {
      const { mode, properties } = request.message;
      const isOpen = mode === CreateTableMode.EXIST_OK && call.id.length > 0;
      const hides = isOpen && (await isHidden(call, { operation: "describeTable", kind: "Table" }));
      const answer = await next(call, request);
      return hides ? { ...answer, properties } : answer;
    },
  });
}
