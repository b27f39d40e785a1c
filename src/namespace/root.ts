const SCHEMES: readonly string[] = ["file", "s3", "gs", "az"];

/**
 * Whether a text names the root of a catalog: a path, `file://…`, or a place in a bucket such as `s3://bucket/prefix`. A path does not
 * begin like such a URI, because `s3:/bucket` is more likely a slip than a directory.
 */
export function isRoot(text: string): boolean {
  const [, scheme = "", uri] = /^([a-z][a-z0-9+.-]+):(\/\/.*)?/is.exec(text) ?? [];
  if (uri === undefined) return !text.includes("://") && !SCHEMES.includes(scheme.toLowerCase());
  const place = scheme === "file" ? /^\/\/[^?#]*$/ : /^\/\/[^/?#]+(?:\/[^?#]*)?$/;
  return SCHEMES.includes(scheme) && place.test(uri);
}
