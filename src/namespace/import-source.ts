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
