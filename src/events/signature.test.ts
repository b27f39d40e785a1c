import assert from "node:assert/strict";
import { randomBytes } from "node:crypto";
import { describe, it } from "vitest";
import { parseSecrets, signatureHeaders } from "./signature.ts";

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
