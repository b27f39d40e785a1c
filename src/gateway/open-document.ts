import { readFile } from "node:fs/promises";
import type { ServeOptions } from "../config/options/groups.ts";
import { once } from "../runtime/once.ts";
import type { ApiDocuments } from "../server/app/document-page.ts";
import { packageVersion } from "./version.ts";

/** Returns the documents of the API, which are made when they are read first; undefined if they are turned off. */
export function openDocument({
  noDocs = false,
  auth: security = [],
}: Partial<Pick<ServeOptions, "noDocs" | "auth">>): ApiDocuments | undefined {
  if (noDocs) return undefined;
  const made = once(async () => {
    const [{ createDocument }, { renderPage }] = await Promise.all([
      import("../server/openapi/document.ts"),
      import("../server/openapi/page.ts"),
    ]);
    const document = createDocument({ version: packageVersion(), security });
    return { json: JSON.stringify(document), page: renderPage(document) };
  });
  return {
    json: async () => (await made()).json,
    async file(name) {
      if (name === "index.html") return (await made()).page;
      return readFile(new URL(`../server/openapi/page/${name}`, import.meta.url), "utf8");
    },
  };
}
