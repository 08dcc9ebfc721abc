/** Metrics of the gateway, as Prometheus reads them. */
import { expect, test } from "vitest";
import { request } from "../support/raw-http.ts";
import { until } from "../support/until.ts";
import { runGateway, startRelay } from "./running.ts";

const { set, upstream } = startRelay();

async function start(...args: string[]) {
  const listen = ["--metrics-listen", "127.0.0.1:0", "--metrics-host", "metrics.corp.com"];
  const gateway = await runGateway(...upstream(), "--descriptors", set, ...listen, ...args);
  const { port } = await gateway.line(({ event }) => event === "serving metrics");
  const metrics = `http://127.0.0.1:${port}`;
  const read = async () => (await fetch(`${metrics}/metrics`)).text();
  return { ...gateway, metrics, read };
}

test.each(["all", "none"])("requests are counted by RPC, status and code, whatever is logged: %s", async (log) => {
  const { origin, read } = await start("--log", log);
  for (const path of ["/v1/items/a", "/v1/items/a", "/v1/nowhere"])
    await (await fetch(`${origin}${path}`)).arrayBuffer();
  const count = (labels: string, number: number) => `gateway_request_duration_seconds_count{${labels}} ${number}\n`;
  await until(async () => {
    const text = await read();
    expect(text).toMatch(/gateway_request_duration_seconds_count\{rpc="[\w.]+\/\w+",status="200",code="OK"\} 2\n/);
    expect(text).toContain(count('rpc="",status="404",code="NotFound"', 1));
    expect(text).toContain("gateway_requests_in_flight 0\n");
    expect(text).toContain("gateway_upstream_errors_total 0\n");
    expect(text).toContain("process_cpu_seconds_total");
  });
});

test("the page is for a scraper, not for a page whose name resolves to it, and it is nowhere else", async () => {
  const { origin, metrics } = await start();
  const as = async (host: string, path = "/metrics") => (await request(metrics, { path, headers: { host } })).status;
  expect(await as("attacker.example.com")).toBe(421);
  expect(await as("metrics.corp.com")).toBe(200);
  expect(await as("gateway.monitoring.svc:9464")).toBe(200);
  expect(await as("127.0.0.1", "/v1/items/a")).toBe(404);
  expect((await fetch(`${origin}/metrics`)).status).toBe(404);
});
