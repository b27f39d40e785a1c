import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it, type TestContext } from "vitest";
import { eventOf, SECRET, startReceiver } from "../../test/fixtures/events.ts";
import { createAddressGuard, createGuardedAgent } from "./guarded-agent.ts";
import { type Attempt, createWebhook, parseSecrets, send, signatureHeaders } from "./send.ts";

const secretOf = (bytes: number) => `whsec_${randomBytes(bytes).toString("base64")}`;

describe("the signature of an event", () => {
  // The example that libraries of Standard Webhooks test themselves with.
  const secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
  const message = {
    id: "msg_p5jXN8AQM9LWM0D4loKWxJek",
    timestamp: 1_614_265_330,
    body: '{"test": 2432232314}',
  };
  const signature = "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=";

  it("is that of Standard Webhooks", () => {
    assert.deepEqual(signatureHeaders(message, parseSecrets(secret)), {
      "webhook-id": message.id,
      "webhook-timestamp": "1614265330",
      "webhook-signature": signature,
    });
  });

  it("is there for each of two secrets while they change", () => {
    const headers = signatureHeaders(message, parseSecrets(`${secretOf(24)}\n${secret}\n`));
    const [other, own, ...rest] = headers["webhook-signature"]?.split(" ") ?? [];
    assert.equal(own, signature);
    assert.match(other ?? "", /^v1,[A-Za-z0-9+/]{43}=$/);
    assert.notEqual(other, own);
    assert.deepEqual(rest, []);
  });
});

describe("a file of secrets", () => {
  it("is refused without a secret, with a short or broken one, or with three, and nothing of it is repeated", () => {
    const broken = secretOf(32).slice(0, -2);
    const texts = ["", "\n", "secret", secretOf(23), secretOf(65), broken, `${secretOf(32)}\n${broken}`];
    for (const text of [...texts, [1, 2, 3].map(() => secretOf(32)).join("\n")]) {
      assert.throws(
        () => parseSecrets(text),
        (error: Error) => {
          for (const part of text.split("\n").filter((line) => line.length > 6))
            assert.ok(!error.message.includes(part.slice(6)), error.message);
          return true;
        },
        text,
      );
    }
  });
});

const secrets = parseSecrets(SECRET);

function sender({ onTestFinished }: TestContext, guard = createAddressGuard()) {
  const agent = createGuardedAgent({ guard, connections: 1, timeoutMs: 1_000 });
  onTestFinished(() => agent.destroy());
  const end = new AbortController();
  return (url: string, event = eventOf("t"), timeoutMs = 60_000): Promise<Attempt> => {
    const webhook = createWebhook({ url }, () => secrets);
    return send(agent, webhook, { id: event.id, body: JSON.stringify(event) }, timeoutMs, end.signal);
  };
}

const reasonOf = (attempt: Attempt) => (attempt === "delivered" ? attempt : attempt.reason);

describe("a delivery", () => {
  it("is the event as JSON, signed with its id and time", async (context) => {
    const { url, received } = await startReceiver(context);
    const event = eventOf("team$people");
    assert.equal(await sender(context)(`${url}?token=1`, event), "delivered");
    const [{ headers, body, path } = assert.fail()] = received;
    assert.equal(path, "/hook?token=1");
    assert.equal(headers["content-type"], "application/cloudevents+json; charset=utf-8");
    assert.equal(body, JSON.stringify(event));
    const timestamp = Number(headers["webhook-timestamp"]);
    assert.ok(Math.abs(timestamp - Date.now() / 1000) < 60);
    for (const [name, value] of Object.entries(signatureHeaders({ id: event.id, timestamp, body }, secrets)))
      assert.equal(headers[name], value);
  });

  it("fails by every answer but success, and follows no redirect", async (context) => {
    const { url, received } = await startReceiver(context, (response, { path }) => {
      const status = Number(new URLSearchParams(path.split("?")[1]).get("s"));
      response.writeHead(status, { location: "/elsewhere", "retry-after": "7" }).end("x".repeat(100_000));
    });
    const attempt = sender(context);
    for (const status of [302, 307, 308, 400, 404, 500, 503]) {
      const failed = await attempt(`${url}?s=${status}`);
      assert.deepEqual(failed, { reason: `it answers ${status}`, isFinal: false, pauseMs: 7_000 });
    }
    assert.deepEqual(await attempt(`${url}?s=410`), {
      ...{ reason: "it answers 410", isFinal: true, pauseMs: 7_000 },
    });
    assert.equal(await attempt(`${url}?s=201`), "delivered");
    assert.ok(received.every(({ path }) => path.startsWith("/hook")));
  });

  it("fails when the receiver is silent, absent, or not what its address says", async (context) => {
    const { url, port } = await startReceiver(context, () => {});
    const attempt = sender(context);
    assert.equal(reasonOf(await attempt(url, eventOf("t"), 50)), "it does not answer within 50 ms");
    assert.notEqual(reasonOf(await attempt(`https://127.0.0.1:${port}/`)), "delivered");
    assert.match(reasonOf(await attempt("http://127.0.0.1:1/")), /ECONNREFUSED/);
  });

  it("reaches no address that is refused: not by a literal, and not by a name that leads there", async (context) => {
    const { port, received } = await startReceiver(context);
    const attempt = sender(context, { permits: () => false });
    for (const host of ["127.0.0.1", "2130706433", "0x7f.1", "[::ffff:127.0.0.1]", "localhost"])
      assert.match(reasonOf(await attempt(`http://${host}:${port}/`)), /to which no events go/, host);
    assert.deepEqual(received, []);
  });
});
