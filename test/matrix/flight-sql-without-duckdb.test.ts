import assert from "node:assert/strict";
import { registerHooks } from "node:module";
import { create, toBinary } from "@bufbuild/protobuf";
import { AnySchema, anyPack } from "@bufbuild/protobuf/wkt";
import { type ServiceError, status } from "@grpc/grpc-js";
import { onTestFinished, test } from "vitest";
import { CommandStatementQuerySchema } from "../../src/gen/arrow/flight/protocol/sql/FlightSql_pb.ts";
import { connectFlight } from "../support/flight.ts";
import { startDirectoryServer } from "../support/server.ts";

const PACKAGE = "@duckdb/node-bindings";

test("a gateway without DuckDB answers statements with what to install", async () => {
  const hooks = registerHooks({
    resolve(specifier, context, next) {
      if (specifier !== PACKAGE) return next(specifier, context);
      throw Object.assign(new Error(`Cannot find module '${PACKAGE}'`), { code: "MODULE_NOT_FOUND" });
    },
  });
  onTestFinished(() => hooks.deregister());
  const server = await startDirectoryServer();
  onTestFinished(() => server.close());
  const client = connectFlight(server.port);
  onTestFinished(() => client.close());
  const query = create(CommandStatementQuerySchema, { query: "SELECT 1" });
  const cmd = toBinary(AnySchema, anyPack(CommandStatementQuerySchema, query)) as Uint8Array<ArrayBuffer>;
  const error: ServiceError = await client.call("getFlightInfo", { type: 2, cmd }).then(
    () => assert.fail("the call succeeds"),
    (thrown) => thrown,
  );
  assert.equal(error.code, status.UNIMPLEMENTED);
  // A clone installs it by its lock, everybody else by its name.
  assert.match(error.details, /SQL needs the package @duckdb\/node-bindings.* install it with npm /);
});
