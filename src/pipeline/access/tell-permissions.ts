import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import type { Call } from "../../namespace/call/call.ts";
import { type Action, isReadAction, ROLES } from "../../namespace/call/principal.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { type Databases, databaseOf } from "../call/databases.ts";
import type { Interceptor } from "../call/interceptor.ts";

/** Header of a request that asks what its caller may do to the object of the call; its value is {@link ASKS}. */
const ASKING_HEADER = "x-lance-gateway-tell";
const ASKS = "permissions";

/** Header of the answer: the kinds of operations that the caller may do to the object, separated by commas. */
const PERMISSIONS_HEADER = "x-lance-gateway-permissions";

/** Header of the answer: who the caller is, as policies name it, encoded as a part of an address. */
const PRINCIPAL_HEADER = "x-lance-gateway-principal";

/** Header of the answer: the name of the backend whose database has the object, for example `glue`. */
const BACKEND_HEADER = "x-lance-gateway-backend";

/** Header of the answer: the operations that the backend does not support, separated by commas. */
const UNSUPPORTED_HEADER = "x-lance-gateway-unsupported";

/** Header of the answer on a root that the caller may list: where the backend has the data, encoded as a part of an address. */
const STORAGE_HEADER = "x-lance-gateway-storage";

/** Header of the answer: the version of the gateway. */
const VERSION_HEADER = "x-lance-gateway-version";

/** Header of the answer: the largest Arrow body of an upload to the database, in bytes. */
const UPLOAD_HEADER = "x-lance-gateway-max-upload-bytes";

/**
 * Tells a caller that asks for it what it may do to the object of its call, who it is, what the object's backend cannot do, where
 * it has its data, and how much its database takes in an upload, so that a user interface can leave out the rest. Roles or policies decide; a kind is listed if every operation of it is allowed.
 *
 * @param isReadOnly whether the gateway refuses everything that writes.
 * @param version the gateway's. Default: it is not told.
 */
export function tellPermissions(isReadOnly: boolean, databases: Databases, version?: string): Interceptor {
  const possible = ROLES.owner.filter((action) => !isReadOnly || isReadAction(action));

  async function tell(call: Call): Promise<void> {
    const allowed: Action[] = [];
    for (const action of possible) {
      if (call.may === undefined || (await call.may(action))) allowed.push(action);
    }
    call.responseHeaders[PERMISSIONS_HEADER] = allowed.join(", ");
    const { principal } = call;
    if (principal !== undefined)
      call.responseHeaders[PRINCIPAL_HEADER] = encodeURIComponent(`${principal.by}:${principal.name}`);
    const { backend, limits } = databaseOf(databases, call);
    call.responseHeaders[BACKEND_HEADER] = backend.name;
    call.responseHeaders[UNSUPPORTED_HEADER] = unsupportedBy(backend).join(", ");
    if (backend.place !== undefined && call.id.length === 0 && allowed.includes("list"))
      call.responseHeaders[STORAGE_HEADER] = encodeURIComponent(backend.place);
    if (version !== undefined) call.responseHeaders[VERSION_HEADER] = version;
    call.responseHeaders[UPLOAD_HEADER] = String(limits.maxUploadBytes);
    // The header is also an entry of the message.
    call.takes = undefined;
  }

  return (call, request, next) =>
    call.headers[ASKING_HEADER] === ASKS ? tell(call).then(() => next(call, request)) : next(call, request);
}

function unsupportedBy({ operations }: Backend): string[] {
  return Object.keys(LanceNamespaceService.method).filter((name) => !Object.hasOwn(operations, name));
}
