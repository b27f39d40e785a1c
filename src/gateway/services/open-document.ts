import { readFile } from "node:fs/promises";
import { setImmediate as nextTurn } from "node:timers/promises";
import type { ServeOptions } from "../../config/options/groups.ts";
import { once } from "../../runtime/once.ts";
import { inSlices } from "../../runtime/pace.ts";
import { codeFile } from "../../runtime/package-files.ts";
import type { ApiDocuments } from "../../server/app/document-page.ts";
import { packageVersion } from "../version.ts";

/** Returns the documents of the API, which are made when they are read first; undefined if they are turned off. */
export function openDocument({
  noDocs = false,
  auth: security = [],
}: Partial<Pick<ServeOptions, "noDocs" | "auth">>): ApiDocuments | undefined {
  if (noDocs) return undefined;
  // Loading and making them takes tens of milliseconds, so that parts have turns of the event loop of their own.
  const document = once(async () => {
    const { documentSteps } = await import("../../server/openapi/document.ts");
    await nextTurn();
    return inSlices(documentSteps({ version: packageVersion(), security }));
  });
  const page = once(async () => {
    const { renderPage } = await import("../../server/openapi/page.ts");
    const made = await document();
    await nextTurn();
    return renderPage(made);
  });
  return {
    json: async () => JSON.stringify(await document()),
    async file(name) {
      if (name === "index.html") return page();
      return readFile(codeFile(`server/openapi/page/${name}`), "utf8");
    },
  };
}
