import type { LoopCall } from "./calls.ts";

const many = <T>(count: number, item: (number: number) => T) =>
  Array.from({ length: count }, (_, i) => item(i));

/** Answers of an upstream: their titles, what they are, and the calls that ask for them over REST and in the rpcs. */
const ANSWERS = {
  list: {
    title: "a list of 1,000,000 long names, 49 MB",
    answer: () => ({ tables: many(1_000_000, (i) => `${"x".repeat(39)}${i}`) }),
    path: "namespace/$/table/list",
    method: "ListTables",
  },
  short: {
    title: "a list of 1,000,000 short names, 10 MB",
    answer: () => ({ tables: many(1_000_000, (i) => `t${i}`) }),
    path: "namespace/$/table/list",
    method: "ListTables",
  },
  versions: {
    title: "400,000 versions of a table, 58 MB",
    answer: () => ({
      versions: many(400_000, (version) => ({
        version,
        manifest_path: `tables/${"t".repeat(32)}.lance/_versions/${version}.manifest`,
        manifest_size: 4096,
        timestamp_millis: 1_700_000_000_000 + version,
      })),
    }),
    path: "table/t/version/list",
    method: "ListTableVersions",
  },
  tags: {
    title: "50,000 tags of a table, 3 MB",
    answer: () => ({
      tags: Object.fromEntries(many(50_000, (i) => [`tag${i}`, { version: i, manifestSize: 4096 }])),
    }),
    path: "table/t/tags/list",
    method: "ListTableTags",
  },
} as const;

const callsOf = (name: string, { title, answer, path, method }: (typeof ANSWERS)[keyof typeof ANSWERS]) => ({
  [`${name}-rest`]: {
    title: `${title}, from a REST upstream, over REST`,
    upstream: answer,
    run: (send) => send(path, {}),
  } satisfies LoopCall,
  [`${name}-grpc`]: {
    title: `the same over gRPC`,
    upstream: answer,
    run: (_, { grpc }) =>
      ({
        ListTables: () => grpc.listTables({}),
        ListTableVersions: () => grpc.listTableVersions({ id: ["t"] }),
        ListTableTags: () => grpc.listTableTags({ id: ["t"] }),
      })[method](),
  } satisfies LoopCall,
  [`${name}-connect`]: {
    title: `the same over Connect`,
    upstream: answer,
    run: (_, { connect }) => connect(method, "proto"),
  } satisfies LoopCall,
  [`${name}-json`]: {
    title: `the same over Connect in JSON`,
    upstream: answer,
    run: (_, { connect }) => connect(method, "json"),
  } satisfies LoopCall,
});

/** The measured calls in front of a REST upstream with long answers. */
export const upstreamCalls: Readonly<Record<string, LoopCall>> = Object.assign(
  {},
  ...Object.entries(ANSWERS).map(([name, answer]) => callsOf(name, answer)),
);
