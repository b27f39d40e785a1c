import { pino } from "pino";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { contractSuite } from "../contract/suite.ts";
import { makeTlsFiles } from "../fixtures/server/tls.ts";
import { matrixSuite } from "../matrix/suite.ts";
import { createCaller } from "../support/caller.ts";
import { withIdempotencyKeys } from "../support/callers-by-role.ts";
import { createProtocolClients } from "../support/protocols.ts";
import { startSecuredGateway } from "../support/secured-gateway.ts";

const limits = { maxUploadBytes: 2 ** 26 };
const log = pino({ level: "silent" });

contractSuite("a secured gateway with TLS and workers, as an owner with idempotency keys", {
  async open() {
    const tls = await makeTlsFiles();
    const { certificate, key } = tls.files;
    const gateway = await startSecuredGateway(
      ...["--workers=2", `--tls-cert=${certificate}`, `--tls-key=${key}`],
    );
    const uri = `https://127.0.0.1:${gateway.port}`;
    const backend = await createRestBackend({
      uri,
      log,
      headers: gateway.headers.owner,
      tls: { ca: tls.ca },
    });
    return {
      client: withIdempotencyKeys(createCaller({ backend, limits })),
      async close() {
        await backend.close();
        await gateway.close();
        await tls[Symbol.asyncDispose]();
      },
    };
  },
});

matrixSuite("a secured gateway, as an owner", async () => {
  const gateway = await startSecuredGateway();
  const clients = createProtocolClients(gateway.port, gateway.headers.owner);
  return {
    clients,
    async close() {
      for (const { close } of Object.values(clients)) close();
      await gateway.close();
    },
  };
});
