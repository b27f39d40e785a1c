import { create, type DescMethodUnary, type MessageShape } from "@bufbuild/protobuf";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Properties } from "../../namespace/authorizer.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { Touch } from "../../namespace/operations/touch.ts";
import { callBackend, type Databases } from "../call/databases.ts";
import type { OperationRequest } from "../call/interceptor.ts";

const { describeNamespace, describeTable } = LanceNamespaceService.method;

/**
 * Creates the function that looks up the properties of an object, by a description that only the gateway sees. An object that
 * does not exist has none. Each object is looked up once for a call.
 *
 * @throws LanceError ServiceUnavailable if the backend cannot tell, for whatever reason: its text could say that the object exists.
 */
export function createPropertyLookup(
  databases: Databases,
): (call: Call, touch: Touch) => Promise<Properties> {
  const backend = callBackend(databases);
  const ofCalls = new WeakMap<Call, Map<string, Promise<Properties>>>();

  async function describe<M extends DescMethodUnary>(
    call: Call,
    method: M,
    { id, database = call.database }: Touch,
    options: object = {},
  ): Promise<MessageShape<M["output"]>> {
    const own = copyCall(call, { method, id, database, takes: undefined, responseHeaders: {} });
    const message = create(method.input, { id: [...id], ...options } as never);
    const request = { kind: "unary", operation: method.localName, message };
    return (await backend(own, request as unknown as OperationRequest)) as never;
  }

  async function lookUp(call: Call, touch: Touch): Promise<Properties> {
    try {
      const { properties } =
        touch.kind === "Table"
          ? await describe(call, describeTable, touch, { vendCredentials: false })
          : await describe(call, describeNamespace, touch);
      return properties;
    } catch (error) {
      if (isMissing(error)) return {};
      call.log.warn({ err: error }, "cannot look up an object's properties for the policies");
      throw new LanceError("ServiceUnavailable", "cannot look up an object's properties", {
        cause: error,
      });
    }
  }

  return (call, touch) => {
    const known = ofCalls.get(call) ?? new Map<string, Promise<Properties>>();
    ofCalls.set(call, known);
    const key = JSON.stringify([touch.kind, touch.database, touch.id]);
    const found = known.get(key) ?? lookUp(call, touch);
    known.set(key, found);
    return found;
  };
}

/** Whether an error says that an object, or the namespace around it, does not exist. */
function isMissing(error: unknown): boolean {
  return isLanceError(error, "TableNotFound") || isLanceError(error, "NamespaceNotFound");
}
