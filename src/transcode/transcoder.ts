import { type DescService, hasOption } from "@bufbuild/protobuf";
import { type Dialect, specification } from "../dialects/dialect.ts";
import { http } from "../gen/google/api/annotations_pb.ts";
import type { Template } from "../namespace/operations/template.ts";
import { optionOf } from "../namespace/option.ts";
import { type Binding, type Codecs, compileBinding } from "./binding.ts";
import { createJsonDecoders } from "./json/decode.ts";
import { createJsonEncoders } from "./json/encode.ts";
import { createStepEncoders } from "./json/encode-steps.ts";

/** Prefix of Arrow's media types. */
const ARROW = "application/vnd.apache.arrow";

/** The bindings of an HTTP method and path: of two, one takes JSON or no body, and the other takes bytes. */
export interface Route {
  /** HTTP method in capitals. */
  readonly httpMethod: string;
  /** Template of the first binding; others differ from it only in the names of variables. */
  readonly template: Template;
  readonly plain?: Binding | undefined;
  readonly raw?: Binding | undefined;
}

/** The REST form of services in a dialect. */
export interface Transcoder {
  readonly dialect: Dialect;
  /** All bindings, in the order of the methods and their rules. */
  readonly bindings: readonly Binding[];
  /** All bindings, by HTTP method and path. */
  readonly routes: readonly Route[];
}

/** Returns the HTTP method and the path without names; no request can distinguish two routes with equal keys. */
export function routeKey({ httpMethod, template }: Pick<Route, "httpMethod" | "template">): string {
  const segments = template.segments.map((segment) => (segment === "*" ? segment : segment.literal));
  return `${httpMethod} /${segments.join("/")}`;
}

/**
 * Returns the binding of a route for a request.
 *
 * @param contentType declared type of the body.
 */
export function bindingFor({ plain, raw }: Route, contentType = ""): Binding {
  if (raw === undefined || (plain !== undefined && !contentType.startsWith(ARROW))) return plain as Binding;
  return raw;
}

/**
 * Compiles the `google.api.http` annotations of services; methods without an annotation have no REST form.
 *
 * @param dialect Default: the specification's.
 * @throws Error, naming the method, for a bad template, an unknown or unfit field, or two equal routes, unless one of
 *   them takes bytes and the other does not.
 */
export function createTranscoder(
  services: readonly DescService[],
  dialect: Dialect = specification,
): Transcoder {
  const { forms } = dialect;
  const encoders = createJsonEncoders(forms);
  const codecs: Codecs = {
    forms,
    decoders: createJsonDecoders(forms),
    encoders,
    stepEncoders: createStepEncoders(encoders, forms),
  };
  const routes = new Map<string, Route>();
  const bindings: Binding[] = [];

  function add(binding: Binding): void {
    const { httpMethod, template } = binding;
    const kind = binding.requestBody === "raw" ? "raw" : "plain";
    const key = routeKey(binding);
    const known = routes.get(key);
    if (known?.[kind] !== undefined) throw new Error(`a second route ${httpMethod} ${template.source}`);
    routes.set(key, { httpMethod, template, ...known, [kind]: binding });
    bindings.push(binding);
  }

  for (const method of services.flatMap((service) => service.methods)) {
    if (!hasOption(method, http)) continue;
    const rule = optionOf(method, http);
    for (const each of [rule, ...rule.additionalBindings]) {
      const binding = compileBinding(method, each, codecs);
      try {
        add(binding);
      } catch (cause) {
        throw new Error(`${method.parent.typeName}.${method.name}: ${(cause as Error).message}`, { cause });
      }
    }
  }

  return { dialect, bindings, routes: [...routes.values()] };
}
