import { clone, type Message } from "@bufbuild/protobuf";
import {
  type CreateViewRequest,
  CreateViewRequestSchema,
  type CreateViewResponse,
  type DescribeViewResponse,
  ViewService,
} from "../../gen/lance/gateway/v1/sql_view_pb.ts";
import { type Call, copyCall } from "../../namespace/call/call.ts";
import type { Service } from "../../namespace/service.ts";
import { resolveRequest } from "../../pipeline/call/resolve.ts";
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
      // The pipeline changes both for the backend.
      const sent = {
        request: clone(method.input, request),
        call: copyCall(call, { headers: Object.assign(Object.create(null), call.headers) }),
      };
      if (method === createView) call.planView = planOf(service, sent as Sent, runner);
      const response = await service.unary(method, request, call);
      resolveRequest(sent.request, sent.call);
      return withDatabase(response as CreateViewResponse | DescribeViewResponse, sent.call);
    },
  };
}

/** A creation of a view as its caller has sent it. */
interface Sent {
  readonly request: CreateViewRequest;
  readonly call: Call;
}

function planOf(
  service: Service,
  sent: Sent,
  { planView }: Pick<SqlRunner, "planView">,
): () => Promise<Uint8Array> {
  return async () => {
    const request = clone(CreateViewRequestSchema, sent.request);
    const outer = copyCall(sent.call, { headers: Object.assign(Object.create(null), sent.call.headers) });
    // The message may have the credentials, and name the database.
    resolveRequest(request, outer);
    const { apiKey, authToken } = outer.identity;
    if (apiKey !== undefined) outer.headers["x-api-key"] = apiKey;
    if (authToken !== undefined) outer.headers["authorization"] = `Bearer ${authToken}`;
    const { query, defaultNamespace, defaultRoot } = request;
    const path = outer.id;
    const own = defaultNamespace.length > 0 ? defaultNamespace : path.slice(0, -1);
    const namespacePath = defaultRoot === true ? [] : own;
    // As calls of Flight, because REST would answer with rows in the file form.
    const caller = await sqlCallerOf(await beginPipelineCalls(service, outer));
    return planView({ path, query, namespacePath }, caller);
  };
}

/** An upstream may have its own name for the database. */
function withDatabase(response: CreateViewResponse | DescribeViewResponse, { headers }: Call): Message {
  response.defaultDatabase ||= catalogOf(headers);
  return response;
}
