import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Call } from "../../namespace/call/call.ts";
import { isReadAction } from "../../namespace/call/principal.ts";
import { LanceError } from "../../namespace/errors.ts";
import { factsOf } from "../../namespace/operations/operations.ts";
import type { Databases } from "./databases.ts";
import { databaseNamed } from "./enter-database.ts";
import {
  type Interceptor,
  isStream,
  type Next,
  type OperationRequest,
  type OperationResponse,
} from "./interceptor.ts";
import { createScopes, type Scope } from "./scope.ts";

/** A way in which a call names its database. */
export type Route =
  /** `x-service-database`, `x-lancedb-database` or the host of the region `local`, as {@link databaseNamed} reads them. */
  | { readonly by: "header" }
  /** The path, from which the server has taken the name. */
  | { readonly by: "path" }
  /** The requested host; `*.example.com` is any host below it. */
  | { readonly by: "host"; readonly hosts: Readonly<Record<string, string>> }
  /** The first name of the object, which the database does not see. */
  | { readonly by: "namespace" };

/**
 * Chooses the database of each call by the first route that names one. A later step refuses a name without a database
 * with NamespaceNotFound; a call that names none is InvalidInput, unless there is a database for these calls.
 *
 * A route by namespace removes the database's name from the request and puts it back into the response. A call that creates or drops
 * a database is for the list of them.
 */
export function chooseDatabase(databases: Databases, routes: readonly Route[]): Interceptor {
  const scopeOf = createScopes();
  const selectors = routes.map((route) => ({
    select: selectorOf(route, scopeOf),
    scoped: route.by === "namespace",
  }));

  /** Returns the name that the database does not see, and that its answers get back. */
  function choose(request: Message, call: Call): string | undefined {
    for (const { select, scoped } of selectors) {
      const name = select(request, call);
      if (name === undefined || (scoped && isAboutList(call))) continue;
      // Before the call has the name, which may be any text and must not get into the metrics by a failure.
      if (scoped) scopeOf(call.method).strip(request, name);
      call.database = name;
      if (!scoped) return undefined;
      call.takes = undefined;
      call.id = call.id.slice(1);
      return name;
    }
    if (databases.has(undefined)) return undefined;
    throw new LanceError("InvalidInput", "the request does not name a database");
  }

  return async (call, request, next) => {
    const scope = choose(request.message, call);
    if (!databases.has(call.database)) return await refuseUnknown(call, request, next);
    const response = await next(call, request);
    if (scope !== undefined && !isStream(response)) scopeOf(call.method).restore(response, scope);
    return response;
  };
}

/**
 * Lets the steps that decide about the caller refuse a call before it learns that its database does not exist. The log and
 * the metrics do not get the name, which may be any text.
 */
async function refuseUnknown(call: Call, request: OperationRequest, next: Next): Promise<OperationResponse> {
  try {
    return await next(call, request);
  } finally {
    call.database = undefined;
  }
}

/** Whether a call is about a database as an entry of the root's list: it creates or drops one. */
function isAboutList({ id, method }: Call): boolean {
  const facts = factsOf(method.localName);
  return id.length === 1 && facts?.kind === "Namespace" && !isReadAction(facts.action);
}

type Selector = (request: Message, call: Call) => string | undefined;

function selectorOf(route: Route, scopeOf: (method: DescMethod) => Scope): Selector {
  switch (route.by) {
    case "header":
      return (_, call) => databaseNamed(call);
    case "path":
      return (_, { address }) => address?.database;
    case "host":
      return (_, { address }) => databaseOfHost(route.hosts, address?.host);
    case "namespace":
      return (request, { id, method }) => id[0] ?? scopeOf(method).find(request);
  }
}

function databaseOfHost(hosts: Readonly<Record<string, string>>, host = ""): string | undefined {
  const name = host.replace(/:\d+$/, "").toLowerCase();
  for (const pattern in hosts) {
    if (pattern.startsWith("*.") ? name.endsWith(pattern.slice(1)) : name === pattern) return hosts[pattern];
  }
  return undefined;
}
