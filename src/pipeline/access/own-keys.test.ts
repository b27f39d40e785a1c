import assert from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { it } from "vitest";
import { beginCall } from "../../../test/support/caller.ts";
import { createAuthenticator, type Way } from "../../auth/authenticator.ts";
import { DriverService } from "../../gen/lance/gateway/v1/driver_pb.ts";
import { LanceDbService } from "../../gen/lance/gateway/v1/lancedb_pb.ts";
import { isLanceError, LanceError } from "../../namespace/errors.ts";
import type { Backend } from "../../namespace/lance-namespace.ts";
import { createService } from "../create-service.ts";

const tokens: Way = {
  needs: "a token",
  close() {},
  prove() {
    throw new LanceError("Unauthenticated", "the token is wrong");
  },
};

it("lets an operation check a key of its own, and no other operation", async () => {
  const keys: unknown[] = [];
  const backend: Backend = {
    name: "fake",
    operations: {},
    extensions: {
      async describeDriverTask(_, { identity, principal }) {
        keys.push([identity.authToken, principal]);
        return create(DriverService.method.describeDriverTask.output, { kind: "k" });
      },
      async cancelJob() {
        throw new Error("nobody may call it");
      },
    },
    ready: async () => true,
    close: async () => {},
  };
  const databases = new Map([[undefined, { backend, limits: { maxUploadBytes: 1 } }]]);
  const authenticator = createAuthenticator([tokens], { failed: () => 0 });
  const authorizer = { allows: () => false, close() {} };
  const services = [{}, { authorizer }].map((more) =>
    createService({ databases, authenticator, ...more } as never),
  );
  const headers = { authorization: "Bearer the key of a driver" };
  const isRefused = (error: unknown) => isLanceError(error, "Unauthenticated");
  for (const service of services) {
    const { describeDriverTask } = DriverService.method;
    assert.equal(
      service.receive?.({ method: describeDriverTask, headers, certificate: undefined }),
      undefined,
    );
    const task = create(describeDriverTask.input, { jobId: "j", run: 1 });
    const answer = await service.unary(describeDriverTask, task, beginCall(describeDriverTask, { headers }));
    assert.equal((answer as { kind?: string }).kind, "k");
    const { cancelJob } = LanceDbService.method;
    const job = create(cancelJob.input, { jobId: "j" });
    await assert.rejects(service.unary(cancelJob, job, beginCall(cancelJob, { headers })), isRefused);
  }
  assert.deepEqual(keys, [
    ["the key of a driver", undefined],
    ["the key of a driver", undefined],
  ]);
});
