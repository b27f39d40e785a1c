import { LanceError } from "../../namespace/errors.ts";

interface Failed {
  readonly kind: "failed";
  readonly message: string;
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
  {
    signal,
    onNews = () => {},
  }: { readonly signal?: AbortSignal | undefined; onNews?: (news: News) => unknown } = {},
): Promise<Last> {
  const worker = new Worker(new URL(script, document.baseURI).href, { type: "module" });
  try {
    return await new Promise<Last>((resolve, reject) => {
      signal?.addEventListener("abort", () => reject(signal.reason));
      worker.onerror = () => reject(new LanceError("Internal", `${script} of the console cannot run`));
      worker.onmessage = ({ data }: MessageEvent<News | Failed>) => {
        if (data.kind === "failed") reject(new LanceError("InvalidInput", (data as Failed).message));
        else if (isLast(data as News)) resolve(data as Last);
        else onNews(data as News);
      };
      worker.postMessage(task);
    });
  } finally {
    worker.terminate();
  }
}
