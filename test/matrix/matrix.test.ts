import { createProtocolClients } from "../support/protocols.ts";
import { startDirectoryServer } from "../support/server.ts";
import { matrixSuite } from "./suite.ts";

matrixSuite("an open gateway", async () => {
  const server = await startDirectoryServer();
  const clients = createProtocolClients(server.port);
  return {
    clients,
    async close() {
      for (const { close } of Object.values(clients)) close();
      await server.close();
    },
  };
});
