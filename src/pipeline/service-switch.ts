import type { Service } from "../namespace/service.ts";

/** A service that is replaced while calls run. */
export interface ServiceSwitch {
  readonly service: Service;
  /** Gives all later calls to another service; resolves when the running calls of the former one have ended. */
  replace(next: Service): Promise<void>;
  /** Resolves when the running calls of the present service have ended; nothing may call or replace it meanwhile. */
  ended(): Promise<void>;
}

/** A service and its running calls. */
interface Generation {
  readonly service: Service;
  calls: number;
  /** Called when its last call has ended, once it is replaced. */
  over?: () => void;
}

/** Creates a service that passes calls on to another one, which can be replaced. */
export function createServiceSwitch(first: Service): ServiceSwitch {
  let current: Generation = { service: first, calls: 0 };

  function leave(generation: Generation): void {
    generation.calls -= 1;
    if (generation.calls === 0) generation.over?.();
  }
  function ended(generation: Generation): Promise<void> {
    if (generation.calls === 0) return Promise.resolve();
    return new Promise((resolve) => {
      generation.over = resolve;
    });
  }
  async function counted<T>(run: (service: Service) => Promise<T>): Promise<T> {
    const own = current;
    own.calls += 1;
    try {
      return await run(own.service);
    } finally {
      leave(own);
    }
  }
  return {
    service: {
      receive: (call) => current.service.receive?.(call),
      unary: (method, message, call) => counted((service) => service.unary(method, message, call)),
      upload: (method, message, data, call) =>
        counted((service) => service.upload(method, message, data, call)),
      async *download(method, message, call) {
        const own = current;
        own.calls += 1;
        try {
          yield* own.service.download(method, message, call);
        } finally {
          leave(own);
        }
      },
    },
    replace(next) {
      const former = current;
      current = { service: next, calls: 0 };
      return ended(former);
    },
    ended: () => ended(current),
  };
}
