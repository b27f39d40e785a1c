import { LanceError } from "../../namespace/errors.ts";

interface Failed {
  readonly kind: "failed";
  readonly message: string;
}

/** Asks a worker for the next piece of its result. */
export const NEXT = "next";

/** What a worker answers to {@link NEXT}. */
export type PieceNews =
  | { readonly kind: "piece"; readonly bytes: Uint8Array }
  | { readonly kind: "end" }
  | Failed;

interface Listening<News> {
  readonly signal?: AbortSignal | undefined;
  /** Called with what the worker reports before its answer. */
  onNews?(news: News): unknown;
}

/**
 * Lets a worker beside the page do a task, and ends it.
 *
 * @param isLast whether the worker reports nothing after this
 * @throws LanceError InvalidInput with the message of the worker.
 */
export async function runInWorker<News extends { readonly kind: string }, Last extends News>(
  script: string,
  task: unknown,
  isLast: (news: News) => news is Last,
  listening: Listening<News> = {},
): Promise<Last> {
  const worker = startWorker(script);
  try {
    return await ask(worker, script, task, isLast, listening);
  } finally {
    worker.terminate();
  }
}

/**
 * Yields what a worker beside the page makes of a task, piece by piece: it works when the next piece is taken.
 *
 * @throws LanceError InvalidInput with the message of the worker.
 */
export async function* readFromWorker<News extends { readonly kind: string }>(
  script: string,
  task: unknown,
  onNews: (news: News) => unknown,
): AsyncIterable<Uint8Array> {
  const worker = startWorker(script);
  const isAnswer = (news: News | PieceNews): news is PieceNews => ["piece", "end"].includes(news.kind);
  try {
    worker.postMessage(task);
    for (;;) {
      const news = await ask(worker, script, NEXT, isAnswer, {
        onNews: (other) => onNews(other as News),
      });
      if (news.kind !== "piece") return;
      yield news.bytes;
    }
  } finally {
    worker.terminate();
  }
}

function startWorker(script: string): Worker {
  return new Worker(new URL(script, document.baseURI).href, { type: "module" });
}

function ask<News extends { readonly kind: string }, Last extends News>(
  worker: Worker,
  script: string,
  message: unknown,
  isLast: (news: News) => news is Last,
  { signal, onNews = () => {} }: Listening<News>,
): Promise<Last> {
  return new Promise<Last>((resolve, reject) => {
    signal?.addEventListener("abort", () => reject(signal.reason));
    worker.onerror = () => reject(new LanceError("Internal", `${script} of the console cannot run`));
    worker.onmessage = ({ data }: MessageEvent<News | Failed>) => {
      if (data.kind === "failed") reject(new LanceError("InvalidInput", (data as Failed).message));
      else if (isLast(data as News)) resolve(data as Last);
      else onNews(data as News);
    };
    worker.postMessage(message);
  });
}
