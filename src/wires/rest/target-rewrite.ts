import type { Transcoder } from "../../transcode/transcoder.ts";
import { splitTarget } from "./http.ts";

const SLASH = 47;

/**
 * Creates the function with which Fastify rewrites the targets of requests: paths of REST may have any number of
 * slashes at both ends, and Fastify's router may be unable to read a target.
 */
export function createTargetRewrite(transcoders: readonly Transcoder[]): (target: string) => string {
  const routes = transcoders.flatMap((transcoder) => transcoder.routes);
  const firstSegments = routes.map(({ template: { segments } }) => segments[0] as { literal: string });
  const roots = new Set(firstSegments.map(({ literal }) => literal));

  return (target) => {
    if (isPlain(target)) return target;
    const { path, query } = splitTarget(target);
    let [start, end] = [0, path.length];
    while (path.charCodeAt(start) === SLASH) start++;
    while (end > start && path.charCodeAt(end - 1) === SLASH) end--;
    const trimmed = path.slice(start, end);
    const isRest = roots.has(trimmed.split("/", 1)[0] ?? "");
    const whole = isRest ? `/${trimmed}` : path.startsWith("/") ? path : `/${path}`;
    // The router would treat the text after a "#" as a fragment.
    return whole.replaceAll("#", "%23") + (query === "" ? "" : `?${query}`);
  };
}

/** Whether a target needs no change. */
function isPlain(target: string): boolean {
  if (target.charCodeAt(0) !== SLASH || target.charCodeAt(1) === SLASH || target.includes("#")) return false;
  const mark = target.indexOf("?");
  return target.charCodeAt((mark === -1 ? target.length : mark) - 1) !== SLASH || target === "/";
}
