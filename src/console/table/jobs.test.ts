import { expect, test } from "vitest";
import { listJobs, readLog } from "./jobs.ts";

const { signal } = new AbortController();

test("the jobs of a table come from all pages, the newest first", async () => {
  const job = (job_id: string, table: string, state: string) => ({
    ...{ job_id, table, state },
    job_type: "backfill_column",
    created_at_millis: 0,
    ...(state === "DONE" && { ended_at_millis: 1500 }),
  });
  const pages: Record<string, object> = {
    "": { jobs: [job("1", "a$t", "DONE"), job("2", "other", "DONE")], page_token: "2" },
    "2": { jobs: [{ ...job("3", "a$t", "IN_PROGRESS"), engine: "ray" }] },
  };
  const progress = { step: "training", done: 2, total: 8 };
  const fetch = async (path: string, init: RequestInit = {}) => {
    const { page_token = "", job_id } = JSON.parse(String(init.body)) as Record<string, string>;
    if (path === "/v1/jobs/describe") return Response.json({ job_id, progress });
    return Response.json(pages[page_token]);
  };
  const jobs = await listJobs({ fetch }, ["a", "t"], signal);
  expect(
    jobs.map(({ id, kind, state, until, progress, engine }) => [id, kind, state, until, progress, engine]),
  ).toEqual([
    ["3", "backfill column", "in progress", undefined, progress, "ray"],
    ["1", "backfill column", "done", 1500, undefined, undefined],
  ]);
});

test("the log of a job is its last lines, or what the catalog says against it", async () => {
  const fetch = async (_: string, init: RequestInit = {}) => {
    const { job_id, log_lines } = JSON.parse(String(init.body)) as Record<string, unknown>;
    if (job_id === "1") return Response.json({ job_id, log: `${log_lines} lines` });
    return Response.json({ error: "logs are for owners" }, { status: 403 });
  };
  expect(await readLog({ fetch }, "1", signal)).toBe("200 lines");
  await expect(readLog({ fetch }, "2", signal)).rejects.toThrow("logs are for owners");
});

test("a catalog whose pages do not go on is not asked for ever", async () => {
  const fetch = async () => Response.json({ jobs: [], page_token: "2" });
  await expect(listJobs({ fetch }, ["t"], signal)).rejects.toMatchObject({ kind: "ServiceUnavailable" });
});

test("a catalog without jobs counts as one that does not support them", async () => {
  const fetch = async () => Response.json({}, { status: 406 });
  await expect(listJobs({ fetch }, ["t"], signal)).rejects.toMatchObject({ kind: "Unsupported" });
});
