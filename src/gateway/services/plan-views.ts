import type { Message } from "@bufbuild/protobuf";
import {
  type CreateViewRequest,
  type CreateViewResponse,
  type DescribeViewResponse,
  ViewService,
} from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { agreedIdentifier } from "../../namespace/identifier.ts";
import type { Service } from "../../namespace/service.ts";
import { beginPipelineCalls } from "../../wires/flight/pipeline-calls.ts";
import { catalogOf, type SqlRunner, sqlCallerOf } from "../../wires/flight/sql/statements.ts";

const { createView, describeView } = ViewService.method;

/**
 * Lets the backends of a service have the queries of new views checked, by calls of the same caller that read the tables of the query. Descriptions
 * of views get the database as the caller names it.
 */
export function planViews(service: Service, runner: Pick<SqlRunner, "planView">): Service {
  return {
    ...service,
    async unary(method, request, call) {
      if (method !== createView && method !== describeView) return service.unary(method, request, call);
      call.takes = undefined;
      // The pipeline changes the request and the headers for the backend.
      const defaultDatabase = catalogOf(call.headers);
      if (method === createView) call.planView = planOf(service, request as CreateViewRequest, call, runner);
      const response = await service.unary(method, request, call);
      return withDatabase(response as CreateViewResponse | DescribeViewResponse, defaultDatabase);
    },
  };
}

function planOf(
  service: Service,
  { id, identifier, delimiter, query, defaultNamespace, defaultRoot }: CreateViewRequest,
  call: Call,
  { planView }: Pick<SqlRunner, "planView">,
): () => Promise<Uint8Array> {
  const outer = copyCall(call, { headers: Object.assign(Object.create(null), call.headers) });
  return async () => {
    const path = agreedIdentifier(id, identifier, delimiter);
    const own = defaultNamespace.length > 0 ? defaultNamespace : path.slice(0, -1);
    const namespacePath = defaultRoot === true ? [] : own;
    // As calls of Flight, because REST would answer with rows in the file form.
    const caller = await sqlCallerOf(await beginPipelineCalls(service, outer));
    return planView({ path, query, namespacePath }, caller);
  };
}

/** An upstream may have its own name for the database. */
function withDatabase(response: CreateViewResponse | DescribeViewResponse, database: string): Message {
  response.defaultDatabase ||= database;
  return response;
}
