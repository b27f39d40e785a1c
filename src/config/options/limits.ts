import { DEFAULT_MAX_MESSAGE_BYTES } from "../../namespace/memory/byte-budget.ts";
import { BACKEND_KINDS, type OptionTable } from "../option-spec.ts";
import { parseDuration, parseInteger, parseSize } from "../parsers.ts";

/** Options that limit memory, time and the number of requests. */
export const LIMIT_OPTIONS = {
  maxMessageBytes: {
    flag: "max-message-size",
    value: "SIZE",
    help: "Maximum size of a JSON body, and of a single message of the other protocols.",
    fallback: `${DEFAULT_MAX_MESSAGE_BYTES / 2 ** 20}MiB`,
    parse: parseSize,
  },
  maxUploadBytes: {
    flag: "max-upload-size",
    value: "SIZE",
    help: "Maximum size of the Arrow body of one call.",
    fallback: "1GiB",
    parse: parseSize,
    backends: BACKEND_KINDS,
  },
  maxBufferedBytes: {
    flag: "max-buffered-size",
    value: "SIZE",
    help: "Memory for the bodies and messages of all requests together; the gateway refuses a request past it with 429, or with 413 if the request does not fit alone. Answers of upstreams have half as much in addition.",
    fallback: "1GiB",
    parse: parseSize,
  },
  readAheadBytes: {
    flag: "read-ahead-size",
    value: "SIZE",
    help: "Memory for query results that the engine reads ahead of clients, over all databases; further results wait.",
    fallback: "128MiB",
    parse: parseSize,
  },
  maxConcurrentCalls: {
    flag: "max-concurrent-calls",
    value: "N",
    help: "Maximum number of calls at a time; the gateway refuses more. Default: no limit.",
    parse: parseInteger(1, 1_000_000),
    backends: BACKEND_KINDS,
  },
  maxConnections: {
    flag: "max-connections",
    value: "N",
    help: "Maximum number of connections. Beyond it a new one takes the place of an idle one, or of one of the address with the most; without any, the gateway answers only probes over HTTP/1.1.",
    fallback: "4096",
    parse: parseInteger(1, 1_000_000),
  },
  silenceMs: {
    flag: "client-idle-timeout",
    value: "TIME",
    help: "Maximum time in which a client sends nothing of a body or takes nothing of an answer; 0s for no limit.",
    fallback: "60s",
    parse: parseDuration,
  },
  defaultDeadlineMs: {
    flag: "default-deadline",
    value: "TIME",
    help: "Deadline of calls that bring none, except those with Arrow bodies; 0s for no limit.",
    fallback: "1h",
    parse: parseDuration,
  },
} as const satisfies OptionTable;
