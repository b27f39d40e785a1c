import type { Transcoder } from "../../transcode/transcoder.ts";
import { splitTarget } from "./http.ts";

const SLASH = 47;

/**
 * Creates what Fastify rewrites the targets of requests with: paths of REST may have any number of slashes at both ends,
 * and a target may be none that Fastify's router can read.
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
    // The router would take what follows a "#" for something else.
    return whole.replaceAll("#", "%23") + (query === "" ? "" : `?${query}`);
  };
}

/** Whether a target needs no change. */
function isPlain(target: string): boolean {
  if (target.charCodeAt(0) !== SLASH || target.charCodeAt(1) === SLASH || target.includes("#")) return false;
  const mark = target.indexOf("?");
  return target.charCodeAt((mark === -1 ? target.length : mark) - 1) !== SLASH || target === "/";
}
