import type { Binding } from "../../src/transcode/binding.ts";
import { bindingFor, type Route, type Transcoder } from "../../src/transcode/transcoder.ts";

/** A binding, and the undecoded segments of the path that led to it. */
export interface FoundBinding {
  readonly binding: Binding;
  readonly segments: readonly string[];
}

/**
 * Finds the binding of a request without a server around it.
 *
 * @throws Error when no binding matches
 */
export function findBinding(
  { routes }: Transcoder,
  httpMethod: string,
  path: string,
  contentType?: string,
): FoundBinding {
  const segments = path.replace(/^\/|\/$/g, "").split("/");
  const literals = ({ template }: Route) => template.segments.filter((segment) => segment !== "*").length;
  const [route] = routes
    .filter((each) => each.httpMethod === httpMethod && matches(each, segments))
    .sort((a, b) => literals(b) - literals(a));
  if (route === undefined) throw new Error(`no binding for ${httpMethod} ${path}`);
  return { binding: bindingFor(route, contentType), segments };
}

function matches({ template }: Route, segments: readonly string[]): boolean {
  if (template.segments.length !== segments.length) return false;
  return template.segments.every((segment, index) => segment === "*" || segment.literal === segments[index]);
}
