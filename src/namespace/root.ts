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

/** Why a text does not name a directory, a place in an S3 bucket or files there in a single way; undefined if it does. */
export function whyNoSource(source: string): string | undefined {
  const [, path = ""] = /^(?:s3:\/\/|\/)(.*)$/s.exec(source) ?? [];
  if (path === "") return "it must be an absolute path or start with s3://";
  if (path.split("/").some((part) => ["", ".", ".."].includes(part)))
    return "a part of its path is empty or has only dots";
  // A URI may say a character in two ways.
  if (source.startsWith("s3:") && /[%?#\\]/.test(path)) return "it has one of the characters % ? # \\";
  return /\p{Cc}/u.test(path) ? "it has a control character" : undefined;
}
