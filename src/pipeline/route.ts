import type { DescMethod, Message } from "@bufbuild/protobuf";
import type { Call } from "../namespace/call.ts";
import { LanceError } from "../namespace/errors.ts";
import type { Service } from "../namespace/service.ts";
import { refused } from "./observe.ts";
import { resolveRequest } from "./resolve.ts";
import { createScope, type Scope } from "./scope.ts";

/** One way in which a call says which database it is for. */
export type Route =
  /** `x-service-database` and `x-lancedb-database`, each with a `…-prefix`: the database is `NAME/PREFIX` then. */
  | { readonly by: "header" }
  /** The path, from which the server has taken the name. */
  | { readonly by: "path" }
  /** The host that was asked for; `*.example.com` is any host below that one. */
  | { readonly by: "host"; readonly hosts: Readonly<Record<string, string>> }
  /** The first name of the object, which the database does not see. */
  | { readonly by: "namespace" };

/** What {@link createRoutedService} needs. */
export interface RoutedServiceOptions {
  /** What serves each database, with all further steps of the pipeline. */
  readonly databases: ReadonlyMap<string, Service>;
  /** The first that names a database decides. */
  readonly routes: readonly Route[];
  /** What serves calls that name no database. Default: they are refused. */
  readonly fallback?: Service | undefined;
}

/** The database of a call. */
interface Choice {
  readonly service: Service;
  /** The name that the database does not see, and that its answers get back. */
  readonly scope: string | undefined;
}

/**
 * The choice of the database, the step before all others where there are several. A database that there is not is
 * NamespaceNotFound; a call that names none, without a fallback, is InvalidInput.
 */
export function createRoutedService({ databases, routes, fallback }: RoutedServiceOptions): Service {
  const scopes = new Map<DescMethod, Scope>();
  const selectors = routes.map((route) => ({
    select: selectorOf(route, scopeOf),
    scoped: route.by === "namespace",
  }));

  function scopeOf(method: DescMethod): Scope {
    const scope = scopes.get(method) ?? createScope(method);
    scopes.set(method, scope);
    return scope;
  }

  function choose(method: DescMethod, request: Message, call: Call): Choice {
    resolveRequest(request, call);
    for (const { select, scoped } of selectors) {
      const name = select(request, call);
      if (name === undefined) continue;
      const service = databases.get(name);
      if (service === undefined) {
        throw new LanceError("NamespaceNotFound", `there is no database ${JSON.stringify(name)}`);
      }
      call.database = name;
      if (!scoped) return { service, scope: undefined };
      scopeOf(method).strip(request, name);
      call.id = call.id.slice(1);
      return { service, scope: name };
    }
    if (fallback !== undefined) return { service: fallback, scope: undefined };
    throw new LanceError("InvalidInput", "the request does not say which database it is for");
  }

  function restored(method: DescMethod, answer: Message, { scope }: Choice): Message {
    if (scope !== undefined) scopeOf(method).restore(answer, scope);
    return answer;
  }

  /** The same; what it throws is logged as any other end of a call. */
  function chosen(method: DescMethod, request: Message, call: Call): Choice {
    try {
      return choose(method, request, call);
    } catch (error) {
      throw refused(call, error);
    }
  }

  return {
    async unary(method, request, call) {
      const choice = chosen(method, request, call);
      return restored(method, await choice.service.unary(method, request, call), choice);
    },

    async upload(method, request, data, call) {
      const choice = chosen(method, request, call);
      return restored(method, await choice.service.upload(method, request, data, call), choice);
    },

    async *download(method, request, call) {
      yield* chosen(method, request, call).service.download(method, request, call);
    },
  };
}

type Selector = (request: Message, call: Call) => string | undefined;

function selectorOf(route: Route, scopeOf: (method: DescMethod) => Scope): Selector {
  switch (route.by) {
    case "header":
      return (_, { headers }) => namedByHeaders(headers);
    case "path":
      return (_, { address }) => address?.database;
    case "host":
      return (_, { address }) => databaseOfHost(route.hosts, address?.host);
    case "namespace":
      return (request, { id, method }) => id[0] ?? scopeOf(method).find(request);
  }
}

const HEADERS = ["x-service-database", "x-lancedb-database"] as const;

function namedByHeaders(headers: Readonly<Record<string, string>>): string | undefined {
  for (const header of HEADERS) {
    const [name, prefix] = [headers[header], headers[`${header}-prefix`]];
    if (name) return prefix ? `${name}/${prefix}` : name;
    if (prefix) throw new LanceError("InvalidInput", `${header}-prefix needs ${header} beside it`);
  }
  return undefined;
}

function databaseOfHost(hosts: Readonly<Record<string, string>>, host = ""): string | undefined {
  const name = host.replace(/:\d+$/, "").toLowerCase();
  for (const pattern in hosts) {
    if (pattern.startsWith("*.") ? name.endsWith(pattern.slice(1)) : name === pattern) return hosts[pattern];
  }
  return undefined;
}
