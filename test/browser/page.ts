// The script of a page that works with a gateway of another origin when the test tells it to.
import { connect } from "../../src/client/browser.ts";
import { session } from "../clients/runtimes/session.ts";

async function work(kind: string, uri: string): Promise<string> {
  const ns = await connect(kind, { uri, "headers.authorization": "Bearer x" });
  return session(ns, `page-${kind}`);
}

Object.assign(globalThis, { work });
