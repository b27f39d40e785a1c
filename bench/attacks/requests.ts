import { Agent, type OutgoingHttpHeaders, request } from "node:http";
import { sharedSchemaStream } from "../../test/support/hostile-arrow.ts";
import type { Attack } from "./attack.ts";

const MIB = 1024 * 1024;
const CLIENTS = 4;
const ARROW = { "content-type": "application/vnd.apache.arrow.stream" };
const JSON_TYPE = { "content-type": "application/json" };

/** Repeats a request on several connections, whatever the answers are. */
function repeated(
  title: string,
  path: (table: string) => string,
  body: () => Buffer,
  headers: OutgoingHttpHeaders = JSON_TYPE,
): Attack {
  return {
    title: `${title}, over and over on ${CLIENTS} connections`,
    async launch({ port, table }) {
      const agent = new Agent({ keepAlive: true, maxSockets: CLIENTS });
      const bytes = body();
      const options = { host: "127.0.0.1", port, method: "POST", path: path(table), agent };
      const again = () => {
        const next = () => setImmediate(again);
        const outgoing = request({ ...options, headers: { ...headers, "content-length": bytes.length } });
        outgoing.on("response", (answer) => answer.resume().on("close", next));
        outgoing.on("error", next).end(bytes);
      };
      for (let client = 0; client < CLIENTS; client += 1) again();
    },
  };
}

const query = (fields: Readonly<Record<string, unknown>>) => () => Buffer.from(JSON.stringify(fields));
const onTable = (operation: string) => (table: string) => `/v1/table/${table}/${operation}`;
const VECTOR = Array.from({ length: 128 }, () => 0.5);

export const sharedFields = repeated(
  "a schema of 1 kB with 2^30 fields",
  () => "/v1/table/shared/create",
  () => sharedSchemaStream(30),
  ARROW,
);
export const deepJson = repeated("4 MiB of open brackets", onTable("query"), () =>
  Buffer.alloc(4 * MIB, "["),
);
export const longChain = repeated(
  "a filter of 60,000 additions",
  onTable("count_rows"),
  query({ predicate: `1${"+1".repeat(60_000)} > 1` }),
);
export const deepFilter = repeated(
  "a filter within 10,000 brackets",
  onTable("count_rows"),
  query({ predicate: `${"(".repeat(10_000)}true${")".repeat(10_000)}` }),
);
export const grownText = repeated(
  "a filter that repeats a text to 4 GiB",
  onTable("count_rows"),
  query({ predicate: "length(repeat('a', 4294967295)) > 1" }),
);
export const largeNumbers = repeated(
  "a search whose k, offset and refine_factor are 2^31-1",
  onTable("query"),
  query({
    vector: { single_vector: VECTOR },
    k: 2 ** 31 - 1,
    offset: 2 ** 31 - 1,
    refine_factor: 2 ** 31 - 1,
  }),
);
export const manyVectors = repeated(
  "a search with 4,000 vectors",
  onTable("query"),
  query({ vector: { multi_vector: Array.from({ length: 4_000 }, () => VECTOR) }, k: 1 }),
);
