/** First bytes of images that browsers show, with the place where they are. */
const MAGIC: readonly (readonly [type: string, at: number, bytes: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/webp", 8, "WEBP"],
  ["image/avif", 4, "ftypavif"],
];

/** Returns the media type of bytes that are an image; SVG, which can have scripts, does not count. */
export function imageTypeOf(bytes: Uint8Array): string | undefined {
  const found = MAGIC.find(([, at, text]) =>
    [...text].every((character, index) => bytes[at + index] === character.charCodeAt(0)),
  );
  return found?.[0];
}
