import { type DescService, getOption, hasOption } from "@bufbuild/protobuf";
import { http } from "../gen/google/api/annotations_pb.ts";
import { LanceError } from "../namespace/errors.ts";
import { type Binding, type Codecs, compileBinding } from "./binding.ts";
import { createJsonDecoders } from "./json-decode.ts";
import { createJsonEncoders } from "./json-encode.ts";
import { createTrie } from "./trie.ts";

/** A binding, and the segments of the path that led to it. */
export interface RouteMatch {
  readonly binding: Binding;
  /** As they were sent, for {@link Binding.decode}. */
  readonly segments: readonly string[];
}

/** The REST form of services: from an HTTP method and a path to a binding. */
export interface Transcoder {
  /** All bindings, in the order of the methods and their rules. */
  readonly bindings: readonly Binding[];
  /**
   * Finds the binding of a request. Slashes at both ends of the path do not count.
   *
   * @param path the path as it was sent, without the query.
   * @throws LanceError RouteNotFound, or MethodNotAllowed with an `allow` header.
   */
  match(httpMethod: string, path: string): RouteMatch;
}

/**
 * Compiles the `google.api.http` annotations of services; methods without one have no REST form.
 *
 * @throws Error, naming the method, for a bad template, an unknown or unfit field, or two equal routes.
 */
export function createTranscoder(services: readonly DescService[]): Transcoder {
  const codecs: Codecs = { decoders: createJsonDecoders(), encoders: createJsonEncoders() };
  const trie = createTrie<Binding>();
  const bindings: Binding[] = [];
  for (const method of services.flatMap((service) => service.methods)) {
    if (!hasOption(method, http)) continue;
    const rule = getOption(method, http);
    for (const each of [rule, ...rule.additionalBindings]) {
      const binding = compileBinding(method, each, codecs);
      try {
        trie.add(binding.httpMethod, binding.template, binding);
      } catch (cause) {
        throw new Error(`${method.parent.typeName}.${method.name}: ${(cause as Error).message}`, { cause });
      }
      bindings.push(binding);
    }
  }

  function match(httpMethod: string, path: string): RouteMatch {
    const found = trie.match(httpMethod, path);
    if (found.target !== undefined) return { binding: found.target, segments: found.segments };
    if (found.allowed.length === 0)
      throw new LanceError("RouteNotFound", `no route for ${httpMethod} ${path}`);
    const allow = found.allowed.join(", ");
    throw new LanceError("MethodNotAllowed", `${path} takes ${allow} and not ${httpMethod}`, {
      headers: { allow },
    });
  }

  return { bindings, match };
}
