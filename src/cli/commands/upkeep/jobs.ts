import { setTimeout as sleep } from "node:timers/promises";
import type { DescMessage, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { createCaller } from "../../../client/caller.ts";
import type { Input } from "../../../client/exports.ts";
import { toMessage } from "../../../client/input.ts";
import { parsePath, pathText } from "../../../client/object-path.ts";
import { parseInteger } from "../../../config/parsers.ts";
import { type DescribeJobResponse, DescribeJobResponseSchema } from "../../../gen/lance/gateway/v1/job_pb.ts";
import { LanceDbService } from "../../../gen/lance/gateway/v1/lancedb_pb.ts";
import { LanceError } from "../../../namespace/errors.ts";
import type { Backend } from "../../../namespace/lance-namespace.ts";
import { pagesOf } from "../../../namespace/page-progress.ts";
import { catalogCommand, jsonOf } from "../catalog-command.ts";
import { factTable, isoTime, textTable, timeText } from "../text-table.ts";
import { TIMEOUT_OPTION } from "./indices.ts";

const { listJobs, describeJob, cancelJob } = LanceDbService.method;

/** Calls an operation of jobs, which the REST API has beyond the contract. */
async function call<I extends DescMessage, O extends DescMessage>(
  { name, extensions = {} }: Backend,
  method: DescMethodUnary<I, O>,
  input: Input<MessageShape<I>>,
  signal: AbortSignal,
): Promise<MessageShape<O>> {
  if (!(method.localName in extensions))
    throw new LanceError("Unsupported", `a ${name} connection has no jobs; REST and directories have them`);
  const caller = createCaller(name, extensions as never);
  return (await caller.unary(method, toMessage(method.input, input), { signal })) as MessageShape<O>;
}

/** `lance-gateway jobs ls`: lists jobs, the newest first. */
export const jobsLs = catalogCommand({
  operands: "[TABLE]",
  access: "read",
  options: {
    limit: {
      flag: "limit",
      value: "N",
      help: "Maximum number of jobs; 0 for all.",
      fallback: "20",
      parse: parseInteger(0, Number.MAX_SAFE_INTEGER),
    },
  },
  async run({ backend, operands: [path = ""], options: { limit }, signal, answer }) {
    const table = pathText(parsePath(path));
    const found = [];
    const pages = pagesOf((pageToken) => call(backend, listJobs, { pageToken }, signal));
    for await (const { jobs } of pages) found.push(...jobs);
    const wanted = found
      .map((job) => ({ ...job, table: pathText(parsePath(job.table)) }))
      .filter((job) => path === "" || job.table === table)
      .toReversed()
      .slice(0, limit === 0 ? undefined : limit);
    const facts = wanted.map(({ jobId, table: of, jobType, state, createdAtMillis, endedAtMillis }) => ({
      ...{ job: jobId, table: of, type: jobType, state },
      created: isoTime(Number(createdAtMillis)),
      ...(endedAtMillis !== undefined && { ended: isoTime(Number(endedAtMillis)) }),
    }));
    await answer(facts, () =>
      textTable([
        ["JOB", "TABLE", "TYPE", "STATE", "CREATED", "ENDED"],
        ...facts.map(({ job, table: of, type, state, created, ended }) => [
          ...[job, of, type, stateText(state)],
          ...[timeText(created), ended === undefined ? "" : timeText(ended)],
        ]),
      ]),
    );
  },
});

/** `lance-gateway jobs describe`: describes a job. */
export const jobsDescribe = catalogCommand({
  operands: "<JOB>",
  access: "read",
  options: {
    logLines: {
      flag: "log-lines",
      value: "N",
      help: "Also show the last lines of the log of its work on a cluster, at most 1000. Default: none.",
      fallback: "0",
      parse: parseInteger(0, 1_000),
    },
  },
  async run({ backend, operands: [jobId = ""], options: { logLines }, signal, answer }) {
    const job = await call(backend, describeJob, { jobId, logLines }, signal);
    const log = job.log === undefined ? "" : `\n${job.log}\n`;
    await answer(jsonOf(DescribeJobResponseSchema, job), () => `${jobText(job)}${log}`);
  },
});

/** Time between two looks at a job, in milliseconds. */
const INTERVAL_MS = 500;

/** `lance-gateway jobs wait`: waits until a job has ended. */
export const jobsWait = catalogCommand({
  operands: "<JOB>",
  access: "wait",
  options: { timeout: TIMEOUT_OPTION },
  async run({ backend, operands: [jobId = ""], options: { timeout }, signal, answer }) {
    const ends = timeout === undefined ? Number.POSITIVE_INFINITY : performance.now() + timeout;
    let job = await call(backend, describeJob, { jobId }, signal);
    while (job.jobState === "IN_PROGRESS") {
      const left = ends - performance.now();
      if (left <= 0) throw new Error(`job ${jobId} has not ended within the time`);
      await sleep(Math.min(INTERVAL_MS, left), undefined, { signal });
      job = await call(backend, describeJob, { jobId }, signal);
    }
    const { jobState, failure } = job;
    if (jobState !== "DONE")
      throw new Error(`job ${jobId} is ${stateText(jobState)}${failure ? `: ${failure.message}` : ""}`);
    await answer(jsonOf(DescribeJobResponseSchema, job), () => jobText(job));
  },
});

/** `lance-gateway jobs cancel`: cancels a job; a job that has ended stays as it is. */
export const jobsCancel = catalogCommand({
  operands: "<JOB>",
  options: {},
  async run({ backend, operands: [jobId = ""], signal, answer }) {
    await call(backend, cancelJob, { jobId }, signal);
    await answer({ job: jobId }, () => `asked job ${jobId} to end\n`);
  },
});

function jobText({
  jobId,
  jobType,
  jobState,
  engine,
  creationMs,
  spec,
  result,
  failure,
}: DescribeJobResponse): string {
  return factTable({
    job: jobId,
    type: jobType,
    state: stateText(jobState),
    ...(engine !== undefined && { engine }),
    created: timeText(isoTime(Number(creationMs))),
    ...(spec && { task: JSON.stringify(spec) }),
    ...(result && { result: JSON.stringify(result) }),
    ...(failure && { failure: failure.message }),
  });
}

function stateText(state: string): string {
  return state.toLowerCase().replaceAll("_", " ");
}
