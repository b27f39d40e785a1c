import { connect } from "../../src/client/index.ts";
import { startDirectoryServer } from "../support/server.ts";
import { clientSuite } from "./suite.ts";

clientSuite("connect", async () => {
  const server = await startDirectoryServer();
  const namespace = await connect("connect", { uri: `http://127.0.0.1:${server.port}` });
  return {
    namespace,
    async close() {
      await namespace.close();
      await server.close();
    },
  };
});
