import assert from "node:assert/strict";
import { create, type Message } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../test/support/caller.ts";
import { LanceNamespaceService } from "../gen/lance/namespace/v1/service_pb.ts";
import type { Service } from "../namespace/service.ts";
import { createServiceSwitch } from "./service-switch.ts";

const { describeTable, queryTable } = LanceNamespaceService.method;

/** A service whose calls wait, and that notes them. */
function waitingService() {
  const noted: string[] = [];
  const opened = Promise.withResolvers<void>();
  const service: Service = {
    async unary(method) {
      noted.push(method.name);
      await opened.promise;
      return create(method.output);
    },
    upload: () => Promise.reject(new Error("refused")),
    async *download(method) {
      noted.push(method.name);
      yield create(method.output);
      await opened.promise;
    },
  };
  return { service, noted, open: opened.resolve };
}

const ask = (service: Service) =>
  service.unary(describeTable, create(describeTable.input), beginCall(describeTable));

async function isOver(promise: Promise<unknown>): Promise<boolean> {
  return Promise.race([
    promise.then(() => true),
    new Promise<boolean>((resolve) => setImmediate(resolve, false)),
  ]);
}

describe("createServiceSwitch", () => {
  it("gives later calls to the new service, and lets running ones end in the former", async () => {
    const [former, next] = [waitingService(), waitingService()];
    const { service, replace } = createServiceSwitch(former.service);
    const running = ask(service);
    const replaced = replace(next.service);
    next.open();
    await ask(service);
    assert.deepEqual([former.noted, next.noted], [["DescribeTable"], ["DescribeTable"]]);
    assert.equal(await isOver(replaced), false);
    former.open();
    await running;
    await replaced;
  });

  it("waits for the end of a download, also of one that its reader leaves", async () => {
    const former = waitingService();
    const { service, replace } = createServiceSwitch(former.service);
    const stream = service.download(queryTable, create(queryTable.input), beginCall(queryTable));
    const reader = stream[Symbol.asyncIterator]() as AsyncGenerator<Message>;
    await reader.next();
    const replaced = replace(waitingService().service);
    assert.equal(await isOver(replaced), false);
    former.open();
    await reader.return(undefined);
    await replaced;
  });

  it("waits for nothing where no call runs, and counts failed calls as ended", async () => {
    const { service, replace } = createServiceSwitch(waitingService().service);
    const { insertIntoTable: insert } = LanceNamespaceService.method;
    const none = (async function* () {})();
    await assert.rejects(service.upload(insert, create(insert.input), none, beginCall(insert)), /refused/);
    await replace(waitingService().service);
  });
});
