import type { JsonObject } from "@bufbuild/protobuf";
import type { EngineStatus, JobEngine } from "./job-engine.ts";

/** Work that runs in this process. */
interface Running {
  readonly controller: AbortController;
  readonly ended: Promise<EngineStatus>;
}

/** Creates the engine that does all work in this process. */
export function createEmbeddedEngine(): JobEngine {
  const running = new Map<string, Running>();
  return {
    name: "embedded",
    async submit({ jobId, inProcess }) {
      const controller = new AbortController();
      const ended = inProcess(controller.signal).then(
        (result): EngineStatus => ({ state: "succeeded", result: result as JsonObject }),
        (error: unknown): EngineStatus => ({ state: "failed", error }),
      );
      running.set(jobId, { controller, ended });
    },
    // The native library cannot leave its work, so that the end is also waited for after a cancellation.
    async status(jobId) {
      const status = await (running.get(jobId) as Running).ended;
      running.delete(jobId);
      return status;
    },
    async cancel(jobId, reason) {
      running.get(jobId)?.controller.abort(reason);
    },
    logs: async () => "",
  };
}
