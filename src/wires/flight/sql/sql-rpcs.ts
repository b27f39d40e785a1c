import { create } from "@bufbuild/protobuf";
import { END_OF_STREAM } from "../../../arrow/ipc/stream.ts";
import {
  type RunSqlRequest,
  RunSqlResponseSchema,
  SqlService,
} from "../../../gen/lance/gateway/v1/sql_pb.ts";
import type { Service } from "../../../namespace/service.ts";
import { onlyRequest, type Rpc } from "../../rpc.ts";
import { beginPipelineCalls } from "../pipeline-calls.ts";
import { type SqlRunner, sqlCallerOf } from "./statements.ts";

/** The rpcs of SQL for clients without Arrow Flight. A statement reads tables by calls of the pipeline. */
export function sqlRpcs(service: Service, { runner }: { readonly runner: SqlRunner }): Rpc[] {
  return [
    {
      kind: "stream",
      method: SqlService.method.runSql,
      receive: service.receive,
      async *handle(requests, call) {
        const { statement: text, namespacePath, explain } = (await onlyRequest(requests)) as RunSqlRequest;
        const caller = await sqlCallerOf(await beginPipelineCalls(service, call, call.protocol));
        const described = await runner.describe({ text, namespacePath }, caller);
        const result = explain ? described.explain(caller) : described.run(caller, undefined);
        for await (const data of result) yield create(RunSqlResponseSchema, { data });
        yield create(RunSqlResponseSchema, { data: END_OF_STREAM });
      },
    },
  ];
}
