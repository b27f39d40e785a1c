import assert from "node:assert/strict";
import { test } from "vitest";
import { type Received, verify } from "../../../test/fixtures/upstreams/sigv4.ts";

/** From the test suite of Signature Version 4 that AWS publishes. */
const VECTORS = {
  "get-vanilla": {
    signature: "5fa00fa31553b73ebf1942676e86291e8372ff2a2260956d9b8aae1d763fbf31",
  },
  "get-vanilla-query-order-key-case": {
    url: "/?Param2=value2&Param1=value1",
    signature: "b97d918cfa904a5beff61c982a1b6f458b799221646efd99d3219ec94cdf2500",
  },
  "post-vanilla": {
    method: "POST",
    signature: "5da7c1a2acd57cee7505fc6676e4e544621c30862966e37dddb68e92efbe5d6b",
  },
  "post-x-www-form-urlencoded": {
    method: "POST",
    body: "Param1=value1",
    headers: { "content-type": "application/x-www-form-urlencoded" },
    signature: "ff11897932ad3f4e8b18135d722051e5ac45fc38421b1da7b9d196a0fe09473a",
  },
};

test("the verifier takes the signatures that AWS publishes, and no others", () => {
  for (const [name, { signature, headers = {}, ...vector }] of Object.entries<{
    method?: string;
    url?: string;
    body?: string;
    headers?: Record<string, string>;
    signature: string;
  }>(VECTORS)) {
    const all: Record<string, string> = {
      ...headers,
      host: "example.amazonaws.com",
      "x-amz-date": "20150830T123600Z",
    };
    const signed = Object.keys(all).sort().join(";");
    const credential = "AKIDEXAMPLE/20150830/us-east-1/service/aws4_request";
    const request = (text: string): Received => ({
      method: "GET",
      url: "/",
      body: "",
      ...vector,
      headers: {
        ...all,
        authorization: `AWS4-HMAC-SHA256 Credential=${credential}, SignedHeaders=${signed}, Signature=${text}`,
      },
    });
    const secret = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";
    assert.equal(verify(request(signature), secret)?.service, "service", name);
    assert.equal(verify(request(signature), `${secret}x`), undefined, name);
    assert.equal(verify({ ...request(signature), method: "PUT" }, secret), undefined, name);
    assert.equal(verify({ ...request(signature), body: "other" }, secret), undefined, name);
  }
});
