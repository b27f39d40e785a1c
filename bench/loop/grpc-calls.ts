import { columns } from "./bodies.ts";
import type { LoopCall } from "./calls.ts";

const MIB = 1024 * 1024;

/** Fields of which the largest message that may change the metadata of each has an entry. */
const FIELDS = 12_570;

/** Entries in each of four maps; a message may have a little more. */
const ENTRIES = 6000;

const LIST = `c0 IN (${Array.from({ length: 49_000 }, (_, i) => i + 10 ** 9).join(", ")})`;

const create =
  (count: number): LoopCall["prepare"] =>
  (send) =>
    send("table/wide/create", columns(count));

/** The measured calls over gRPC. */
export const grpcCalls: Readonly<Record<string, LoopCall>> = {
  "grpc-fields": {
    title: `set the metadata of ${FIELDS.toLocaleString("en")} columns over gRPC`,
    prepare: create(FIELDS),
    run: (_, { grpc }) =>
      grpc.updateFieldMetadata({
        id: ["wide"],
        updates: Array.from({ length: FIELDS }, (_, i) => ({
          path: `c${i}`,
          metadata: { unit: { value: "m" } },
        })),
      }),
  },
  "grpc-maps": {
    title: "set 24,000 entries of metadata in four maps over gRPC",
    prepare: create(4),
    run: (_, { grpc }) => {
      const metadata = Object.fromEntries(
        Array.from({ length: ENTRIES }, (_, i) => [`k${i}`, { value: "v" }]),
      );
      const updates = Array.from({ length: 4 }, (_, i) => ({ path: `c${i}`, metadata }));
      return grpc.updateFieldMetadata({ id: ["wide"], updates });
    },
  },
  "grpc-entry": {
    title: "set an entry of metadata of 8 MiB over gRPC",
    prepare: create(2),
    run: (_, { grpc }) =>
      grpc.updateTableSchemaMetadata({ id: ["wide"], metadata: { a: "x".repeat(8 * MIB - 1) } }),
  },
  "grpc-large": {
    title: "set an entry of metadata of 16 MiB over gRPC",
    prepare: create(2),
    run: (_, { grpc }) =>
      grpc
        .updateTableSchemaMetadata({ id: ["wide"], metadata: { a: "x".repeat(16 * MIB - 100) } })
        .catch(() => {}),
  },
  "grpc-count": {
    title: "count rows by a list of 49,000 numbers over gRPC",
    prepare: create(2),
    run: (_, { grpc }) => grpc.countTableRows({ id: ["wide"], predicate: LIST }),
  },
  "grpc-delete": {
    title: "delete rows by a list of 49,000 numbers over gRPC",
    prepare: create(2),
    run: (_, { grpc }) => grpc.deleteFromTable({ id: ["wide"], predicate: LIST }),
  },
  "grpc-update": {
    title: "update rows by a list of 49,000 numbers over gRPC",
    prepare: create(2),
    run: (_, { grpc }) =>
      grpc.updateTable({ id: ["wide"], predicate: LIST, updates: [{ column: "c1", expression: "1" }] }),
  },
  "grpc-create": {
    title: "create a table of 32,000 columns over gRPC",
    prepare: create(2),
    run: (_, { grpc }) => grpc.createTable({ id: ["new"] }, columns(32_000)),
  },
};
