import assert from "node:assert/strict";
import { once } from "node:events";
import { type IncomingMessage, request } from "node:http";
import { setTimeout } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import { RecordBatchStreamWriter, Table, vectorFromArray } from "apache-arrow";
import { pino } from "pino";
import { afterAll, beforeAll, describe, test } from "vitest";
import { createGrpcBackend } from "../../src/backends/grpc/index.ts";
import { createRestBackend } from "../../src/backends/rest/index.ts";
import { connect, type Namespace } from "../../src/client/index.ts";
import { createQueryResult } from "../../src/client/rows/query-result.ts";
import { textToArrow } from "../../src/client/text/text-to-arrow.ts";
import { LanceNamespaceService } from "../../src/gen/lance/namespace/v1/service_pb.ts";
import { LanceError } from "../../src/namespace/errors.ts";
import { COLUMNS, tableOf } from "../support/every-type.ts";
import { jsonOf, sendHttp } from "../support/http.ts";
import {
  type DirectoryServer,
  fakeBackend,
  startDirectoryServer,
  startServer,
  type TestServer,
} from "../support/server.ts";
import { until } from "../support/until.ts";

const log = pino({ level: "silent" });
const ARROW_STREAM = "application/vnd.apache.arrow.stream";
const ARROW_FILE = "application/vnd.apache.arrow.file";
const JSON_TYPE = "application/json";
const LINES = "application/x-ndjson";
/** The agent of a generated client of lance-namespace. */
const GENERATED = "OpenAPI-Generator/0.13.0/python";
const names = Object.keys(COLUMNS);

/** Rows of a batch that the endless result repeats: 1 MB. */
const BATCH_ROWS = 131_072;

/** The first row, in which each column has its first value. */
const FIRST =
  '{"null":null,"bool":true,"int8":-128,"int16":-32768,"int32":-2147483648,"int64":-9223372036854775808,"uint8":0,"uint16":0,"uint32":0,"uint64":0,' +
  '"float16":0.0999755859375,"float32":0.1,"float64":0.1,"decimal128":"1234567890123456789012345678.0123456789",' +
  `"decimal256":"${"9".repeat(66)}.0123456789","decimal_of_hundreds":"123400","text":"","large_text":"","bytes":"","large_bytes":"","fixed_bytes":"AAH/",` +
  '"day":"-5877641-06-23","day_in_millis":"1969-12-31","time_s":"00:00:00","time_ms":"00:00:00","time_us":"00:00:00","time_ns":"00:00:00",' +
  '"at_s":"-292277022657-01-27T08:29:52","at_ms":"-292275055-05-16T16:47:04.192","at_us":"-290308-12-21T19:59:05.224192","at_ns":"1677-09-21T00:12:43.145224192",' +
  '"at_s_utc":"-292277022657-01-27T08:29:52Z","at_us_zone":"-290308-12-21T19:59:05.224192Z","lasts_s":-9223372036854775808,"lasts_ns":-9223372036854775808,' +
  '"list":[18446744073709551615,null],"list_of_times":["1970-01-01T00:00:00.000000001Z",null],"list_of_lists":[["",null],null,[]],' +
  '"vector":[0.1,-0],"vector_of_doubles":[0.1,5e-324],"struct":{"a":"","t":"1970-01-01T00:00:00.000001"},"list_of_structs":[{"a":"1.20"},null],' +
  '"map":{"a":9223372036854775807},"map_of_numbers":[[1,"1970-01-01T00:00:00.000001"]],"kept_once":"a"}';

/** A backend whose result has batches without an end, or fails after some. */
function endlessBackend(progress: { batches: number; isEnded: boolean }, failAfter?: number) {
  const column = vectorFromArray(new Float64Array(BATCH_ROWS));
  const writer = RecordBatchStreamWriter.writeAll(new Table({ x: column }));
  const bytes = writer.toUint8Array(true);
  // Without the mark at the end of the stream.
  const [first, batch] = [bytes.subarray(0, -8), bytes.subarray(bytes.indexOf(0xff, 8), -8)];
  return fakeBackend({
    async *queryTable() {
      const { output } = LanceNamespaceService.method.queryTable;
      try {
        yield create(output, { data: { contentType: ARROW_STREAM, data: first } });
        for (; progress.batches !== failAfter; progress.batches += 1)
          yield create(output, { data: { data: batch } });
        throw new LanceError("ServiceUnavailable", "the disk has gone");
      } finally {
        progress.isEnded = true;
      }
    },
  });
}

async function* piece(bytes: Uint8Array) {
  yield bytes;
}

describe("rows over REST", () => {
  let owner: DirectoryServer;
  let ns: Namespace;
  const gateways: Record<string, TestServer> = {};

  beforeAll(async () => {
    owner = await startDirectoryServer();
    const uri = `http://127.0.0.1:${owner.port}`;
    ns = await connect("rest", { uri });
    await ns.createTable({ id: ["every"] }, tableOf(names));
    gateways["a directory"] = owner;
    gateways["a REST upstream"] = await startServer(await createRestBackend({ uri, log }));
    const addresses = [`127.0.0.1:${owner.port}`];
    gateways["a gRPC upstream"] = await startServer(await createGrpcBackend({ addresses, log }));
  });
  afterAll(async () => {
    await ns.close();
    for (const gateway of Object.values(gateways).reverse()) await gateway.close();
  });

  const query = async (
    accept: string | undefined,
    body: object,
    { over = "a directory", agent = "" } = {},
  ) => {
    const headers = {
      ...{ "content-type": "application/json", ...(accept !== undefined && { accept }) },
      ...(agent !== "" && { "user-agent": agent }),
    };
    const { port } = gateways[over] as TestServer;
    const answer = await sendHttp(port, {
      path: "/v1/table/every/query",
      headers,
      body: JSON.stringify(body),
    });
    return { ...answer, type: answer.headers["content-type"], text: answer.bytes.toString() };
  };

  test.each(["a directory", "a REST upstream", "a gRPC upstream"])(
    "rows of every type are the same as JSON and as Arrow, from %s",
    async (over) => {
      const arrow = await query(ARROW_FILE, {}, { over });
      assert.equal(arrow.type, ARROW_FILE);
      const before = createQueryResult(() => piece(arrow.bytes));
      const lines = await query(LINES, {}, { over });
      assert.deepEqual([lines.status, lines.type], [200, LINES]);
      assert.equal(lines.text.slice(0, lines.text.indexOf("\n")), FIRST);
      const array = await query(JSON_TYPE, {}, { over });
      assert.deepEqual([array.status, array.type], [200, JSON_TYPE]);
      assert.equal(array.text, `[${lines.text.trimEnd().replaceAll("\n", ",\n")}]\n`);
      const { schema } = await before.toTable();
      const back = textToArrow(() => piece(lines.bytes), schema, { format: "jsonl", isForTable: true });
      assert.deepEqual(await createQueryResult(() => back).toArray(), await before.toArray());
    },
  );

  test("a result without rows is an empty array, or nothing", async () => {
    const none = { filter: "int8 = 1", columns: { column_names: ["int8"] } };
    assert.equal((await query(JSON_TYPE, none)).text, "[]\n");
    const lines = await query(LINES, none);
    assert.deepEqual([lines.status, lines.type, lines.text], [200, LINES, ""]);
  });

  test.each([
    [JSON_TYPE, JSON_TYPE],
    ["Application/JSON; charset=utf-8", JSON_TYPE],
    [LINES, LINES],
    ["application/json;q=0.5, application/x-ndjson", LINES],
    ["application/x-ndjson, application/json", LINES],
    ["application/json, text/plain;q=0.5", JSON_TYPE],
    ["application/json, */*;q=0", JSON_TYPE],
    [undefined, ARROW_FILE],
    ["*/*", ARROW_FILE],
    ["application/json, */*", ARROW_FILE],
    ["application/json, text/plain, */*", ARROW_FILE],
    ["application/json, */*;q=0.5", ARROW_FILE],
    ["application/json, application/*;q=0.1", ARROW_FILE],
    [`application/json, ${ARROW_FILE}`, ARROW_FILE],
    [`${ARROW_FILE};q=0.1, application/json`, ARROW_FILE],
    ["application/json;q=0", ARROW_FILE],
    ["text/csv", ARROW_FILE],
  ])("accept: %s gets %s", async (accept, type) => {
    const { status, type: got } = await query(accept, { columns: { column_names: ["int8"] } });
    assert.deepEqual([status, got], [200, type]);
  });

  test("a generated client that accepts JSON by habit gets Arrow, and rows where it asks for lines", async () => {
    for (const agent of [GENERATED, "OpenAPI-Generator/0.7.0-beta.1/java", "Swagger-Codegen/1.0.0/python"])
      assert.equal((await query(JSON_TYPE, {}, { agent })).type, ARROW_FILE, agent);
    assert.equal((await query(LINES, {}, { agent: GENERATED })).type, LINES);
  });

  test("a failure before the first row has its status", async () => {
    const { status, type, bytes, headers } = await query(LINES, { filter: "no_such = 1" });
    assert.deepEqual([status, type], [404, JSON_TYPE]);
    assert.equal(jsonOf({ status, headers, bytes })["code"], 12);
  });
});

describe("a long result as JSON", () => {
  const progress = { batches: 0, isEnded: false };
  const path = "/v1/table/t/query";

  test.each([JSON_TYPE, LINES])("breaks off %s visibly if the catalog fails", async (accept) => {
    const server = await startServer(endlessBackend({ batches: 0, isEnded: false }, 3));
    try {
      await assert.rejects(
        sendHttp(server.port, { path, headers: { accept }, body: "{}" }),
        /cut off|aborted/,
      );
    } finally {
      await server.close();
    }
  });

  test("is read from the catalog as fast as its client reads, and ended when that leaves", async () => {
    const server = await startServer(endlessBackend(progress));
    const outgoing = request({
      host: "127.0.0.1",
      port: server.port,
      path,
      method: "POST",
      headers: { accept: LINES },
    });
    try {
      outgoing.on("error", () => {}).end("{}");
      const [response] = (await once(outgoing, "response")) as [IncomingMessage];
      await once(response, "readable");
      // The sockets on the way have a few megabytes of text, and a batch is half a megabyte of it.
      for (let seen = -1; seen < progress.batches; ) {
        seen = progress.batches;
        await setTimeout(500);
      }
      assert.ok(progress.batches < 64, `${progress.batches} batches were read ahead`);
      assert.equal(progress.isEnded, false);
      outgoing.destroy();
      await until(() => progress.isEnded);
    } finally {
      outgoing.destroy();
      await server.close();
    }
  });
});
