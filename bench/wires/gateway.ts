// The gateway on its single port: all wires, the whole pipeline, and a backend that answers from memory.
import { pino } from "pino";
import { serveBackend } from "../../src/gateway/compose.ts";
import { describeAnswer } from "./answer.ts";

const { address } = await serveBackend(
  {
    name: "memory",
    operations: { describeTable: async (request) => describeAnswer(request) },
    ready: async () => true,
    close: async () => {},
  },
  {
    host: "127.0.0.1",
    port: 0,
    maxMessageBytes: 16 * 2 ** 20,
    maxUploadBytes: 2 ** 30,
    maxBufferedBytes: 2 ** 31,
    drainSeconds: 0,
  },
  { log: pino({ level: "info" }, process.stderr) },
);
console.log(address.port);
