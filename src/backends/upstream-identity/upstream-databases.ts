import { create } from "@bufbuild/protobuf";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { copyCall } from "../../namespace/call/call.ts";
import { isDatabase, type RootDatabases } from "../../namespace/call/database-context.ts";
import { type ErrorName, LanceError } from "../../namespace/errors.ts";
import type { LanceNamespace } from "../../namespace/lance-namespace.ts";
import type { HeaderPolicy } from "./headers.ts";

/** Errors of a description that say that no database has the name. */
const MISSING: ReadonlySet<ErrorName> = new Set(["NamespaceNotFound", "InvalidInput", "Unsupported"]);

/**
 * Returns the databases of an upstream. An upstream that gets the client's header chooses by itself; where it does not, because
 * the gateway decides about objects or the operator has chosen the upstream's database, each call with a name asks the
 * upstream for the properties of the namespace.
 */
export function databasesOfUpstream(
  policy: HeaderPolicy,
  describeNamespace: LanceNamespace["describeNamespace"],
): RootDatabases {
  const method = LanceNamespaceService.method.describeNamespace;
  return {
    async has(name, call) {
      if (policy.passesDatabase(call)) return false;
      const own = copyCall(call, { method, id: [name], takes: undefined, responseHeaders: {} });
      try {
        const { properties } = await describeNamespace(create(method.input, { id: [name] }), own);
        return isDatabase(properties);
      } catch (error) {
        if (error instanceof LanceError && MISSING.has(error.kind)) return false;
        throw error;
      }
    },
  };
}
