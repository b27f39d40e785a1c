import { connect as connectByFetch } from "../../src/client/browser.ts";
import { connect } from "../../src/client/index.ts";
import { startDirectoryServer } from "../support/server.ts";
import { clientSuite } from "./suite.ts";

for (const [name, open] of [
  ["rest", connect],
  ["rest, over fetch", connectByFetch],
] as const) {
  clientSuite(name, async () => {
    const server = await startDirectoryServer();
    const namespace = await open("rest", { uri: `http://127.0.0.1:${server.port}` });
    return {
      namespace,
      opensTables: open === connect,
      async close() {
        await namespace.close();
        await server.close();
      },
    };
  });
}
