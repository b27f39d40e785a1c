import type { ServeOptions } from "../config/options.ts";
import type { ReadDocument } from "../server/document-page.ts";
import { packageVersion } from "./version.ts";

/** Returns the reader of the OpenAPI document, which is made when it is read first; undefined if it is turned off. */
export function openDocument({
  noDocs = false,
  auth: security = [],
}: Partial<Pick<ServeOptions, "noDocs" | "auth">>): ReadDocument | undefined {
  if (noDocs) return undefined;
  let text: Promise<string> | undefined;
  return () => {
    text ??= import("../openapi/document.ts").then(({ createDocument }) =>
      JSON.stringify(createDocument({ version: packageVersion(), security })),
    );
    return text;
  };
}
