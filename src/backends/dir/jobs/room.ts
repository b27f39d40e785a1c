import { createTurns, type Turns } from "../concurrency/turns.ts";
import { untilAborted } from "../concurrency/wait.ts";
import { isForCluster, type Job } from "./job.ts";

/** Default number of jobs that run concurrently in a process. */
export const MAX_RUNNING_JOBS = 2;

/** Turns of jobs, and those of jobs whose processes died. */
export interface JobTurns {
  readonly turns: Turns;
  readonly alone: Turns;
}

/** Room for the jobs that run and wait in a process. The jobs of several stores may share it. */
export interface JobRoom {
  /** Number of jobs in it. */
  readonly size: number;
  /** Returns the number of jobs of a caller in it. */
  countOf(caller: string): number;
  /** Counts a job of a caller. @returns ends that */
  enter(caller: string): () => void;
  /** Turns of the work in this process. */
  readonly here: JobTurns;
  /** Returns the turns of a job. */
  turnsOf(job: Pick<Job, "kind" | "spec">): JobTurns;
}

/** Creates the room of a process, in which that many jobs run at a time, and as many of each kind wait for a cluster. */
export function createJobRoom(maxRunning: number = MAX_RUNNING_JOBS): JobRoom {
  const createJobTurns = (): JobTurns => ({ turns: createTurns(maxRunning), alone: createTurns(1) });
  const here = createJobTurns();
  /** The turns of each kind of job on a cluster: a job waits there for hours, and keeps none of another kind waiting. */
  const onCluster = new Map<string, JobTurns>();
  const counts = new Map<string, number>();
  let size = 0;
  return {
    get size() {
      return size;
    },
    countOf: (caller) => counts.get(caller) ?? 0,
    enter(caller) {
      const add = (jobs: number) => {
        const count = (counts.get(caller) ?? 0) + jobs;
        size += jobs;
        if (count === 0) counts.delete(caller);
        else counts.set(caller, count);
      };
      add(1);
      return () => add(-1);
    },
    here,
    turnsOf: (job) => (isForCluster(job) ? onCluster.getOrInsertComputed(job.kind, createJobTurns) : here),
  };
}

/**
 * Waits for a turn and the work, but not beyond the signal. Work that began keeps its turn until it ends: the engine
 * goes on with it.
 */
export async function inTurn<T>(
  signal: AbortSignal,
  among: Turns,
  caller: string,
  work: () => Promise<T>,
): Promise<T> {
  const { promise: begun, resolve: begin } = Promise.withResolvers<void>();
  const ended = among.run(
    () => {
      begin();
      return work();
    },
    () => !signal.aborted,
    caller,
  );
  ended.catch(() => {});
  await untilAborted(begun, signal);
  return (await untilAborted(ended, signal)) as T;
}
