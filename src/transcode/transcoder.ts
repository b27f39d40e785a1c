import { type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import type { Dialect } from "../dialects/dialect.ts";
import { specification } from "../dialects/specification.ts";
import { http } from "../gen/google/api/annotations_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import { type Binding, type Codecs, compileBinding } from "./binding.ts";
import { createJsonDecoders } from "./json-decode.ts";
import { createJsonEncoders } from "./json-encode.ts";
import { createTrie } from "./trie.ts";

/** How the media types of Arrow begin. */
const ARROW = "application/vnd.apache.arrow";

/** A binding, and the segments of the path that led to it. */
export interface RouteMatch {
  readonly binding: Binding;
  /** As they were sent, for {@link Binding.decode}. */
  readonly segments: readonly string[];
}

/** The REST form of services in one dialect: from an HTTP method and a path to a binding. */
export interface Transcoder {
  readonly dialect: Dialect;
  /** All bindings, in the order of the methods and their rules. */
  readonly bindings: readonly Binding[];
  /**
   * Finds the binding of a request. Slashes at both ends of the path do not count.
   *
   * @param path the path as it was sent, without the query.
   * @param contentType what the body is said to be; it tells apart two bindings of one route.
   * @throws LanceError RouteNotFound, or MethodNotAllowed with an `allow` header.
   */
  match(httpMethod: string, path: string, contentType?: string): RouteMatch;
}

/** The bindings of one route: of two, one takes JSON or nothing and the other takes bytes. */
interface Route {
  plain?: Binding;
  raw?: Binding;
}

/**
 * Compiles the `google.api.http` annotations of services; methods without one have no REST form.
 *
 * @param dialect Default: the specification's.
 * @throws Error, naming the method, for a bad template, an unknown or unfit field, or two equal routes, unless
 *   one of them takes bytes and the other does not.
 */
export function createTranscoder(
  services: readonly DescService[],
  dialect: Dialect = specification,
): Transcoder {
  const { forms } = dialect;
  const codecs: Codecs = {
    forms,
    decoders: createJsonDecoders(forms),
    encoders: createJsonEncoders(forms),
  };
  const trie = createTrie<Route>();
  const routes = new Map<string, Route>();
  const bindings: Binding[] = [];

  function add(binding: Binding): void {
    const { httpMethod, template } = binding;
    const kind = binding.requestBody === "raw" ? "raw" : "plain";
    const key = `${httpMethod} ${template.source}`;
    const known = routes.get(key);
    const route = known?.[kind] === undefined ? (known ?? {}) : {};
    route[kind] = binding;
    if (route !== known) trie.add(httpMethod, template, route);
    routes.set(key, route);
    bindings.push(binding);
  }

  for (const method of services.flatMap((service) => service.methods)) {
    if (!hasOption(method, http)) continue;
    const rule = getOption(method, http);
    for (const each of [rule, ...rule.additionalBindings]) {
      const binding = compileBinding(method, each, codecs);
      try {
        add(binding);
      } catch (cause) {
        throw new Error(`${method.parent.typeName}.${method.name}: ${(cause as Error).message}`, { cause });
      }
    }
  }

  function match(httpMethod: string, path: string, contentType = ""): RouteMatch {
    const found = trie.match(httpMethod, path);
    if (found.target !== undefined) {
      return { binding: chosen(found.target, contentType), segments: found.segments };
    }
    if (found.allowed.length === 0)
      throw new LanceError("RouteNotFound", `no route for ${httpMethod} ${path}`);
    const allow = found.allowed.join(", ");
    throw new LanceError("MethodNotAllowed", `${path} takes ${allow} and not ${httpMethod}`, {
      headers: { allow },
    });
  }

  return { dialect, bindings, match };
}

function chosen({ plain, raw }: Route, contentType: string): Binding {
  if (raw === undefined || (plain !== undefined && !contentType.startsWith(ARROW))) return plain as Binding;
  return raw;
}
