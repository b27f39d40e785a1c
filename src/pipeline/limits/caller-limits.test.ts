import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { describe, it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { heapGrowth } from "../../../test/support/heap-growth.ts";
import { LanceNamespaceService } from "../../gen/lance/namespace/v1/service_pb.ts";
import { isLanceError } from "../../namespace/errors.ts";
import { compose, type Next } from "../call/interceptor.ts";
import { serviceOf } from "../create-service.ts";
import { limitQueryTime } from "./caller-limits.ts";

const { countTableRows, describeTable, queryTable } = LanceNamespaceService.method;
const isLate = (error: unknown) => isLanceError(error, "DeadlineExceeded");
const limited = (maxMs: number, last: Next) => serviceOf(compose([limitQueryTime(maxMs)], last));
const MANY = 100_000;
const never = new Promise<never>(() => {});

describe("limitQueryTime", () => {
  it("ends a call that reads, and cuts its answer off", async () => {
    const cut: unknown[] = [];
    const service = limited(1, () => never);
    const call = beginCall(countTableRows, { cutOff: (error) => cut.push(error) });
    await assert.rejects(service.unary(countTableRows, create(countTableRows.input), call), isLate);
    assert.ok(cut.length === 1 && isLate(cut[0]));
  });

  it("ends a download whose backend stops, and frees it", async () => {
    const { promise: freed, resolve: free } = Promise.withResolvers<void>();
    async function* messages() {
      try {
        yield create(queryTable.output);
        await new Promise((resolve) => setTimeout(resolve, 20));
        yield create(queryTable.output);
      } finally {
        free();
      }
    }
    const service = limited(5, async () => messages() as never);
    const answer = service.download(queryTable, create(queryTable.input), beginCall(queryTable));
    await assert.rejects(async () => {
      for await (const _ of answer);
    }, isLate);
    await freed;
  });

  it("keeps nothing of the messages that were read", async () => {
    const message = create(queryTable.output);
    async function* messages() {
      for (let count = 0; count < MANY; count += 1) yield message;
    }
    const service = limited(60_000, async () => messages() as never);
    let read = 0;
    const grown = await heapGrowth(async (measure) => {
      for await (const _ of service.download(queryTable, create(queryTable.input), beginCall(queryTable)))
        if (++read === MANY) measure();
    });
    assert.ok(grown < MANY * 50, `${grown} bytes for ${MANY} messages`);
  });

  it("frees a download that opens when its time is over", async () => {
    const { promise: freed, resolve: free } = Promise.withResolvers<void>();
    const { promise: opened, resolve: open } = Promise.withResolvers<void>();
    async function* messages() {
      try {
        yield create(queryTable.output);
      } finally {
        free();
      }
    }
    const service = limited(1, async () => {
      await opened;
      return messages() as never;
    });
    const answer = service.download(queryTable, create(queryTable.input), beginCall(queryTable));
    await assert.rejects(async () => {
      for await (const _ of answer);
    }, isLate);
    open();
    await freed;
  });

  it("tells the backend the deadline, unless the client's is nearer, and leaves other calls alone", async () => {
    const seen: (number | undefined)[] = [];
    const service = limited(60_000, async (call) => {
      seen.push(call.deadline);
      return create(call.method.output) as never;
    });
    const [near, far] = [Date.now() + 1_000, Date.now() + 3_600_000];
    for (const deadline of [near, far]) {
      const call = beginCall(countTableRows, { deadline });
      await service.unary(countTableRows, create(countTableRows.input), call);
    }
    await service.unary(
      describeTable,
      create(describeTable.input),
      beginCall(describeTable, { deadline: far }),
    );
    assert.deepEqual([seen[0], seen[2]], [near, far]);
    assert.ok((seen[1] as number) < far);
  });
});
