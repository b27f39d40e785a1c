import { Agent, type OutgoingHttpHeaders, request } from "node:http";
import { sharedSchemaStream } from "../../test/support/hostile-arrow.ts";
import { type Attack, WORDS } from "./attack.ts";

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

/** Repeats a search in the indexed words. */
function wordSearch(title: string, body: () => Buffer): Attack {
  return { ...repeated(title, onTable("query"), body), searchesWords: true };
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
export const columnPattern = repeated(
  "a filter with a pattern from a column",
  onTable("count_rows"),
  query({ predicate: "regexp_like(s, s || '(a{0,60}){0,60}')" }),
);
export const nestedPattern = repeated(
  "a filter with nested repetitions",
  onTable("count_rows"),
  query({ predicate: "regexp_like(s, '^(([ab]{0,9}){0,9}){0,9}c$')" }),
);
/** Patterns with many states, which together take nearly all steps that an expression may. */
const PATTERNS = Array.from({ length: 6 }, (_, i) => `regexp_like(s, 'a[ab]{${75 + i}}[^ab]')`).join(" OR ");
export const costlyPatterns = repeated(
  "a filter with the most steps of patterns",
  onTable("count_rows"),
  query({ predicate: PATTERNS }),
);
export const costlyScan = repeated(
  "a scan by a filter with the most steps of patterns",
  onTable("query"),
  query({ k: 1, vector: {}, filter: PATTERNS }),
);
export const manyWildcards = repeated(
  "a filter by LIKE with 50 wildcards",
  onTable("count_rows"),
  query({ predicate: `s LIKE '%a${"_".repeat(48)}z%'` }),
);
export const manyLikes = repeated(
  "a filter of 7,000 LIKEs",
  onTable("count_rows"),
  query({ predicate: Array.from({ length: 7_000 }, (_, i) => `s LIKE '%q${i}%'`).join(" OR ") }),
);
export const mostLikes = repeated(
  "a filter of 4,000 LIKEs",
  onTable("count_rows"),
  query({ predicate: Array.from({ length: 4_000 }, (_, i) => `s LIKE '%q${i}%'`).join(" OR ") }),
);
const searching = (condition: object) =>
  query({ k: 1, full_text_query: { structured_query: { query: condition } } });
const FUZZY = { column: WORDS, fuzziness: 2 };
export const fuzzyTerms = wordSearch(
  "a search for 5,400 fuzzy words with endless expansions",
  searching({ match: { ...FUZZY, terms: "ab ".repeat(5_400), max_expansions: 2 ** 31 - 1 } }),
);
export const fuzzyMatches = wordSearch(
  "a search for 1,000 fuzzy matches",
  searching({ boolean: { should: Array(1_000).fill({ match: { ...FUZZY, terms: "ab" } }) } }),
);
export const mostExpansions = wordSearch(
  "a search for a word with 450 expansions",
  searching({ match: { ...FUZZY, terms: "abcdef", max_expansions: 450 } }),
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
