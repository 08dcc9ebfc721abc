/** Metrics of the gateway, as Prometheus reads them. */
import { connect } from "node:http2";
import { gzipSync } from "node:zlib";
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

test("bytes of bodies are counted by RPC as they are sent: compressed, over HTTP/1.1 and HTTP/2, in streams", async () => {
  const { origin, read } = await start();
  const headers = { "content-type": "application/json", "content-encoding": "gzip", "accept-encoding": "gzip" };
  const body = gzipSync(JSON.stringify({ name: "n".repeat(3_000) }));
  const zipped = await request(origin, { method: "POST", path: "/v1/items", headers, body });
  const lengthOfZipped = Number(zipped.headers.get("content-length"));
  expect(lengthOfZipped).toBeLessThan(1_000);
  await request(origin, { method: "HEAD", path: "/v1/items/a" });
  const session = connect(origin);
  const sent = '{"name":"\u00e9"}';
  const call = session.request({ ":method": "POST", ":path": "/v1/items" }).end(sent);
  const received = Buffer.concat(await call.toArray());
  session.destroy();
  const stream = await request(origin, { path: "/v1/counts/%C3%A9?number=3" });
  const upload = { method: "POST", path: "/v1/sums/a", headers: { "content-type": "application/x-ndjson" } };
  await request(origin, { ...upload, body: '{"number":1}\n{"number":2}\n' });
  const bytes = (of: string, rpc: string, number: number) =>
    `gateway_${of}_body_bytes_total{rpc="relay.v1.RelayService/${rpc}"} ${number}\n`;
  await until(async () => {
    const text = await read();
    expect(text).toContain(bytes("request", "Get", body.byteLength + Buffer.byteLength(sent)));
    expect(text).toContain(bytes("response", "Get", lengthOfZipped + received.byteLength));
    expect(text).toContain(bytes("request", "Count", 0));
    expect(text).toContain(bytes("response", "Count", Buffer.byteLength(stream.body)));
    expect(text).toContain(bytes("request", "Sum", 26));
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
