import { pino } from "pino";
import { expect, test } from "vitest";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { createCall } from "../../namespace/call/call.ts";
import type { Action } from "../../namespace/call/principal.ts";
import type { OperationRequest } from "../call/interceptor.ts";
import { tellPermissions } from "./tell-permissions.ts";

interface Caller {
  readonly asks?: string;
  readonly may?: (action: Action) => boolean | Promise<boolean>;
  readonly isReadOnly?: boolean;
}

/** Returns what the step tells a caller; undefined if it tells nothing. */
async function told({ asks = "permissions", may, isReadOnly = false }: Caller): Promise<string | undefined> {
  const call = createCall({
    method: LanceNamespaceService.method.describeTable,
    ...{ protocol: "connect", requestId: "1", deadline: undefined, accept: undefined },
    headers: { "x-lance-gateway-tell": asks },
    signal: new AbortController().signal,
    log: pino({ level: "silent" }),
  });
  call.may = may;
  await tellPermissions(isReadOnly)(call, {} as OperationRequest, async () => ({}) as never);
  return call.responseHeaders["x-lance-gateway-permissions"];
}

test("a gateway that asks nobody allows everything", async () => {
  expect(await told({})).toBe("list, describe, read, write, manage, admin");
});

test("a caller learns what its role or its policies allow", async () => {
  expect(await told({ may: (action) => action === "read" })).toBe("read");
  expect(await told({ may: async () => false })).toBe("");
});

test("a gateway for reading only names no writes, whatever the role is", async () => {
  expect(await told({ may: () => true, isReadOnly: true })).toBe("list, describe, read");
});

test("a caller that does not ask is told nothing", async () => {
  expect(await told({ asks: "something else" })).toBeUndefined();
});
