import { expect, test } from "vitest";
import { dashboardQueries } from "../support/dashboard.ts";
import { startProgram } from "../support/program.ts";
import { startPrometheus } from "../support/prometheus.ts";
import { startGateway } from "./support/gateway.ts";

const PATIENCE = { timeout: 60_000, interval: 200 };

test("Prometheus scrapes a gateway, answers the dashboard, and fires alerts when its upstream or it is gone", async (t) => {
  const upstream = await startGateway();
  t.onTestFinished(() => upstream.close());
  const gateway = startProgram("serve", "--port", "0", "--uri", upstream.uri, "--upstream-retries", "0");
  t.onTestFinished(() => void gateway.child.kill("SIGKILL"));
  const address = `127.0.0.1:${await gateway.listening()}`;
  const prometheus = await startPrometheus([address]);
  t.onTestFinished(() => prometheus.close());

  const value = async (query: string) => {
    const { data } = await prometheus.get("query", { query });
    return Number(data.result[0]?.value[1]);
  };
  const firing = async () => {
    const { data } = await prometheus.get("alerts");
    const active = data.alerts as { state: string; labels: { alertname: string } }[];
    return active.filter(({ state }) => state === "firing").map(({ labels }) => labels.alertname);
  };
  const list = async () => (await fetch(`http://${address}/v1/namespace/%24/list`)).status;

  await expect.poll(() => value('up{job="lance-gateway"}'), PATIENCE).toBe(1);
  expect(await list()).toBe(200);
  await expect.poll(() => value('sum(lance_gateway_calls_total{code="OK"})'), PATIENCE).toBe(1);
  expect(await firing()).toEqual([]);

  for (const { expr } of dashboardQueries()) {
    const { status, error } = await prometheus.get("query", { query: expr });
    expect(status, `${expr}: ${error}`).toBe("success");
  }

  await upstream.close();
  await expect
    .poll(async () => {
      expect(await list()).toBe(503);
      return firing();
    }, PATIENCE)
    .toContain("LanceGatewayCallsFail");
  gateway.child.kill("SIGTERM");
  await gateway.ended;
  await expect.poll(firing, PATIENCE).toContain("LanceGatewayDown");
});
