// Mounts the gateway below /lance in an application with a login of its own: TOKEN=… node examples/mounted.ts DIRECTORY
import fastify from "fastify";
import { createDirectoryBackend } from "lance-gateway";
import { lanceGateway } from "lance-gateway/fastify";
import { pino } from "pino";

const { TOKEN, PORT = "3000" } = process.env;
if (!TOKEN) throw new Error("TOKEN is missing: anyone could guess an empty one");

const log = pino({ level: "warn" }, process.stderr);
const backend = await createDirectoryBackend({ root: process.argv[2] ?? "./lance-data", log });

const app = fastify({ routerOptions: { maxParamLength: 2_000 } });
app.get("/", async () => ({ text: "a page of the application" }));
app.register((members, _options, done) => {
  members.addHook("onRequest", async ({ headers }, reply) => {
    if (headers.authorization === `Bearer ${TOKEN}`) return;
    return reply.code(401).send({ error: "log in first" });
  });
  members.register(lanceGateway, { prefix: "/lance", backend, log });
  done();
});
process.stdout.write(`${await app.listen({ port: Number(PORT) })}\n`);
process.once("SIGTERM", () => void app.close());
