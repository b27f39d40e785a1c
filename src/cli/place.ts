import { resolve } from "node:path";
import type { ServeOptions } from "../config/options.ts";
import { redactText } from "../log/redact.ts";

/** Returns the place of the data for people, without credentials. */
export function placeOf(options: ServeOptions): string {
  switch (options.backend) {
    case "dir":
      return options.root.includes("://") ? redactText(options.root) : resolve(options.root);
    case "rest":
      return options.uris.map(withoutCredentials).join(", ");
    case "grpc":
      return options.addresses.join(", ");
    default:
      return options.backend;
  }
}

function withoutCredentials(uri: string): string {
  const parsed = URL.parse(uri);
  return parsed === null ? uri : `${parsed.origin}${parsed.pathname}`;
}
