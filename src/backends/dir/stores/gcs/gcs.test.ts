import assert from "node:assert/strict";
import { Readable } from "node:stream";
import type { AuthClient } from "google-auth-library";
import { type TestContext, test, vi } from "vitest";
import { failsWith } from "../../../../../test/fixtures/dir/directory-backend.ts";
import { startFake } from "../../../../../test/fixtures/dir/stores.ts";
import type { ObjectStore } from "../../format/storage.ts";
import { tokenAccess } from "./access.ts";
import { createGcsStore } from "./gcs.ts";

const LIMIT_MS = 100;

/** Opens a store whose service answers no requests with a method, each of which `onRequest` learns of. */
async function openSilent(t: TestContext, method: string, onRequest = () => {}): Promise<ObjectStore> {
  const gcs_base_url = await startFake(t, (request, response) => {
    if (request.method !== method) response.end(JSON.stringify({ generation: "1", size: "4" }));
    else onRequest();
  });
  const google_service_account_key = JSON.stringify({ gcs_base_url, disable_oauth: true });
  const options = { google_service_account_key, timeout: `${LIMIT_MS}ms` };
  return (await createGcsStore("bucket", options)).store;
}

const bytes = new Uint8Array(4);

const CONDITIONAL: Record<string, (store: ObjectStore) => Promise<boolean>> = {
  POST: (store) => store.replace("k", bytes, "1"),
  DELETE: (store) => store.deleteTagged("k", "1"),
};

for (const [method, change] of Object.entries(CONDITIONAL))
  test(`a conditional ${method} that Google does not answer is repeated and given up in time`, async (t) => {
    let requests = 0;
    const store = await openSilent(t, method, () => {
      requests += 1;
      // The time of a request passes when the service has it, which takes a busy machine longer than the limit.
      vi.advanceTimersByTime(LIMIT_MS);
    });
    vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout"] });
    t.onTestFinished(() => void vi.useRealTimers());
    await assert.rejects(change(store), failsWith("ServiceUnavailable"));
    assert.equal(requests, 5);
  });

const SMALL: Record<string, readonly ((store: ObjectStore) => Promise<unknown>)[]> = {
  GET: [(store) => store.head("k"), (store) => store.exists("d")],
  POST: [(store) => store.put("k", bytes)],
  DELETE: [(store) => store.delete("k")],
};

for (const [method, requests] of Object.entries(SMALL))
  test.concurrent(`a small ${method} that Google does not answer is given up in time`, async (t) => {
    const store = await openSilent(t, method);
    for (const request of requests) await assert.rejects(request(store), failsWith("ServiceUnavailable"));
  });

const ANSWERED: Record<string, (store: ObjectStore) => Promise<unknown>> = {
  listing: (store) => store.exists("d"),
  "look at an object": (store) => store.head("k"),
  write: (store) => store.put("k", bytes),
  replacement: (store) => store.replace("k", bytes, "1"),
  "deletion under a condition": (store) => store.deleteTagged("k", "1"),
  deletion: (store) => store.delete("k"),
  copy: (store) => store.copy("k", "l"),
  "streamed write": async (store) => store.putStream("k", Readable.from([bytes])),
};

for (const [name, request] of Object.entries(ANSWERED))
  test.concurrent(`a success that is a page of a proxy, not of Google, fails a ${name}`, async (t) => {
    const gcs_base_url = await startFake(t, (asked, response) => {
      asked.resume().on("end", () => {
        response.writeHead(200, { "content-type": "text/html" }).end("<html><body>back soon</body></html>");
      });
    });
    const key = JSON.stringify({ gcs_base_url, disable_oauth: true });
    const { store } = await createGcsStore("bucket", { google_service_account_key: key });
    await assert.rejects(request(store), failsWith("ServiceUnavailable"));
  });

test("a token of the options signs requests, and not the machine", async () => {
  const { authClient } = await tokenAccess({ google_storage_token: "vended" });
  const headers = await (authClient as AuthClient).getRequestHeaders();
  assert.equal(headers.get("authorization"), "Bearer vended");
  assert.deepEqual(await tokenAccess({ google_storage_token: "t", google_service_account_key: "{}" }), {});
  assert.deepEqual(await tokenAccess({}), {});
});
