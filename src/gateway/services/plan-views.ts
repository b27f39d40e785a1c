import { clone, type Message } from "@bufbuild/protobuf";
import {
  type CreateViewRequest,
  type CreateViewResponse,
  type DescribeViewResponse,
  ViewService,
} from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import { defaultNamespaceOf } from "../../namespace/plan-view.ts";
import type { Service } from "../../namespace/service.ts";
import { resolveRequest } from "../../pipeline/call/resolve.ts";
import { once } from "../../runtime/promises.ts";
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
      // The pipeline changes both for the backend. The message may have the credentials, and name the database.
      const sent = clone(method.input, request);
      const outer = copyCall(call, { headers: Object.assign(Object.create(null), call.headers) });
      const resolved = once(async () => {
        resolveRequest(sent, outer);
        return outer;
      });
      if (method === createView)
        call.planView = async () => plan(service, sent as CreateViewRequest, await resolved(), runner);
      const response = await service.unary(method, request, call);
      return withDatabase(response as CreateViewResponse | DescribeViewResponse, await resolved());
    },
  };
}

async function plan(
  service: Service,
  request: CreateViewRequest,
  call: Call,
  { planView }: Pick<SqlRunner, "planView">,
): Promise<Uint8Array> {
  const { id: path, headers, identity } = call;
  const { apiKey, authToken } = identity;
  if (apiKey !== undefined) headers["x-api-key"] = apiKey;
  if (authToken !== undefined) headers["authorization"] = `Bearer ${authToken}`;
  const namespacePath = defaultNamespaceOf(request, path);
  // As calls of Flight, because REST would answer with rows in the file form.
  const caller = await sqlCallerOf(await beginPipelineCalls(service, call));
  return planView({ path, query: request.query, namespacePath }, caller);
}

/** An upstream may have its own name for the database. */
function withDatabase(response: CreateViewResponse | DescribeViewResponse, { headers }: Call): Message {
  response.defaultDatabase ||= catalogOf(headers);
  return response;
}
