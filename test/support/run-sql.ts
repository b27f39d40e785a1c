import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { tableFromIPC } from "apache-arrow";
import { createFetchTransport } from "../../src/client/connections/connect.ts";
import { SqlService } from "../../src/gen/lance/gateway/v1/sql_pb.ts";

const { runSql: method } = SqlService.method;

/** Runs a statement by the SQL service of a gateway, and returns its rows, whose values are numbers. */
export async function runSql(
  uri: string,
  headers: Readonly<Record<string, string>>,
  init: MessageInitShape<typeof method.input>,
): Promise<number[][]> {
  async function* request() {
    yield create(method.input, init);
  }
  const transport = createFetchTransport(uri, (url, init) => fetch(url, init));
  const answer = await transport.stream(method, undefined, undefined, headers, request());
  const pieces = await Array.fromAsync(answer.message, ({ data }) => data);
  const rows = tableFromIPC(Buffer.concat(pieces)).toArray();
  return rows.map((row) => Object.values(row.toJSON()).map(Number));
}
