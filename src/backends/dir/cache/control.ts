import { randomUUID } from "node:crypto";
import { BroadcastChannel } from "node:worker_threads";
import type { StorageOptions } from "../stores/storage-options.ts";

/** Files about which a request is. */
export interface CachedFiles {
  readonly accessKeyId: string;
  readonly bucket: string;
  readonly keys: readonly string[];
}

/** The requests of the gateway's threads to the thread of the cache. */
export interface CacheControl {
  /** Returns the access key id with which the engine's requests are for a store. */
  register(options: StorageOptions): Promise<string>;
  /** Reads files into the cache, in their order, until it has no more room. */
  fill(files: CachedFiles, signal: AbortSignal): Promise<void>;
  /** Returns the sizes of the blocks of some files that are in the cache, in bytes. */
  measure(files: CachedFiles, signal: AbortSignal): Promise<readonly number[]>;
}

type Request =
  | { readonly id: string; readonly register: StorageOptions }
  | { readonly id: string; readonly fill: CachedFiles }
  | { readonly id: string; readonly measure: CachedFiles }
  | { readonly id: string; readonly cancel: true };

type Answer =
  /** The thread listens from now on: what was asked before may be lost. */
  | { readonly id: undefined }
  | {
      readonly id: string;
      readonly accessKeyId?: string;
      readonly sizes?: readonly number[];
      readonly failure?: string;
    };

type Found = Exclude<Answer, { readonly id: undefined }>;

/** Longest wait for the answer to a registration, in milliseconds: the thread of the cache may be starting again. */
const REGISTER_MS = 10_000;

/**
 * Channels between the threads of the process. The storage options contain credentials, and a port of the machine may have another listener
 * than the cache, so they do not go through it.
 */
const requestsOf = (secret: string) => `lance-gateway cache requests ${secret}`;
const answersOf = (secret: string) => `lance-gateway cache answers ${secret}`;

/** Answers what the other threads ask, until it is closed. */
export function answerControl(secret: string, { register, fill, measure }: CacheControl): { close(): void } {
  const requests = new BroadcastChannel(requestsOf(secret));
  const answers = new BroadcastChannel(answersOf(secret));
  const running = new Map<string, AbortController>();
  let isClosed = false;
  const post = (answer: Answer) => answers.postMessage(answer);

  async function answer(request: Exclude<Request, { cancel: true }>, signal: AbortSignal): Promise<object> {
    if ("register" in request) return { accessKeyId: await register(request.register) };
    if ("measure" in request) return { sizes: await measure(request.measure, signal) };
    await fill(request.fill, signal);
    return {};
  }
  requests.onmessage = ({ data }) => {
    const request = data as Request;
    const { id } = request;
    if ("cancel" in request) return running.get(id)?.abort();
    // It was sent again, since the answer could not be known to come.
    if (running.has(id)) return;
    const stop = new AbortController();
    running.set(id, stop);
    void answer(request, stop.signal)
      .catch((error: Error) => ({ failure: error.message }))
      .then((found) => {
        running.delete(id);
        if (!isClosed) post({ id, ...found });
      });
  };
  post({ id: undefined });
  return {
    close() {
      isClosed = true;
      for (const stop of running.values()) stop.abort();
      requests.close();
      answers.close();
    },
  };
}

/** Returns what asks the thread of the cache of the process. */
export function askControl(secret: string): CacheControl {
  async function ask(
    asked:
      | { readonly register: StorageOptions }
      | { readonly fill: CachedFiles }
      | { readonly measure: CachedFiles },
    signal: AbortSignal,
  ): Promise<Found> {
    signal.throwIfAborted();
    const id = randomUUID();
    const requests = new BroadcastChannel(requestsOf(secret));
    const answers = new BroadcastChannel(answersOf(secret));
    const { promise, resolve, reject } = Promise.withResolvers<Found>();
    const send = () => requests.postMessage({ id, ...asked } satisfies Request);
    const cancel = () => {
      requests.postMessage({ id, cancel: true } satisfies Request);
      reject(signal.reason as Error);
    };
    answers.onmessage = ({ data }) => {
      const answer = data as Answer;
      if (answer.id === undefined) return send();
      if (answer.id !== id) return;
      if (answer.failure === undefined) resolve(answer);
      else reject(new Error(answer.failure));
    };
    signal.addEventListener("abort", cancel);
    try {
      send();
      return await promise;
    } finally {
      signal.removeEventListener("abort", cancel);
      requests.close();
      answers.close();
    }
  }
  return {
    async register(options) {
      const stop = new AbortController();
      const late = () => stop.abort(new Error("the thread of the cache does not answer"));
      const timer = setTimeout(late, REGISTER_MS);
      const found = ask({ register: options }, stop.signal).finally(() => clearTimeout(timer));
      return (await found).accessKeyId ?? "";
    },
    async fill(files, signal) {
      await ask({ fill: files }, signal);
    },
    measure: async (files, signal) => (await ask({ measure: files }, signal)).sizes ?? [],
  };
}
