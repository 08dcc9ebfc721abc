/** The metrics of calls to the real service through every protocol. */
import { expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { LINES_PER_SECOND } from "../../../src/platform/log/line-limit.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { aService } from "../../support/every-protocol.ts";
import { request } from "../../support/raw-http.ts";
import { startService } from "../../support/service.ts";
import { admin, bearer, openPublic } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const service = aService();
type Target = { readonly adminUrl: string };

async function metric({ adminUrl }: Target, series: string): Promise<number> {
  const { body } = await request(adminUrl, { path: "/metrics" });
  const line = body.split("\n").find((one) => one.startsWith(`${series} `));
  return line === undefined ? 0 : Number(line.slice(series.length + 1));
}

/** Resolves when a series has the value. */
const reaches = (target: Target, series: string, value: number) =>
  until(async () => {
    if ((await metric(target, series)) !== value) throw new Error("not yet");
  });

const OPEN = 'session_open_streams{method="WatchRevocations"}';
const ended = (code: string) => `session_rpc_duration_seconds_count{method="WatchRevocations",code="${code}"}`;

test.each(RPC_PROTOCOLS)(
  "over $name a watch is open until its client leaves, and measured then as canceled",
  async (kind) => {
    const before = await metric(service, ended("canceled"));
    const caller = kind.open(service.adminUrl);
    const leaving = new AbortController();
    const watch = caller.stream(admin.watchRevocations, {}, bearer(service.adminToken), leaving.signal);
    const batches = watch[Symbol.asyncIterator]();
    await batches.next();
    expect(await metric(service, OPEN)).toBe(1);
    expect(await metric(service, ended("ok"))).toBe(0);
    leaving.abort();
    await batches.next().catch(() => {});
    await reaches(service, OPEN, 0);
    expect(await metric(service, ended("canceled"))).toBe(before + 1);
    expect(await metric(service, ended("ok"))).toBe(0);
    caller.close();
  },
);

test("a watch that fails is measured with its code", async () => {
  const caller = (RPC_PROTOCOLS[0] as (typeof RPC_PROTOCOLS)[number]).open(service.adminUrl);
  const watch = caller.stream(admin.watchRevocations, { cursor: "not a cursor" }, bearer(service.adminToken));
  await expect(watch[Symbol.asyncIterator]().next()).rejects.toThrow();
  await reaches(service, ended("invalid_argument"), 1);
  expect(await metric(service, OPEN)).toBe(0);
  caller.close();
});

test("a unary call is measured with its code", async () => {
  await openPublic(service).call(SessionService.method.refresh, {});
  await reaches(service, 'session_rpc_duration_seconds_count{method="Refresh",code="unauthenticated"}', 1);
});

test("a cross-site refusal is counted by the header that revealed it", async () => {
  for (const headers of [{ origin: "https://evil.example" }, { "sec-fetch-site": "cross-site" }]) {
    await request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers });
  }
  expect(await metric(service, 'session_cross_site_refused_total{header="origin"}')).toBe(1);
  expect(await metric(service, 'session_cross_site_refused_total{header="sec-fetch-site"}')).toBe(1);
});

test("a flood from a foreign origin costs bounded log, and the metrics count all of it", async () => {
  const flooded = await startService();
  const origin = `https://evil.example/${"x".repeat(13_000)}`;
  const send = () => request(flooded.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers: { origin } });
  const begun = performance.now();
  // Returns how many lines may have been written, including those of the incomplete first and last seconds.
  const mayWrite = () => LINES_PER_SECOND * (Math.ceil((performance.now() - begun) / 1000) + 1);
  let sent = 0;
  // On a slow machine it takes more requests until most of their log lines exceed the limit.
  while (sent < 300 || (sent < 3 * mayWrite() && sent < 1_500)) {
    // Only refusals for the origin (403) are counted. An instance that gets no processor time refuses calls as overload (503) instead.
    const replies = await Promise.all(Array.from({ length: 50 }, send));
    sent += replies.filter(({ status }) => status === 403).length;
  }
  expect(await metric(flooded, 'session_cross_site_refused_total{header="origin"}')).toBe(sent);
  expect(await metric(flooded, 'session_log_lines_total{event="cross_site_refused",level="info"}')).toBe(sent);
  const most = mayWrite();
  flooded.kill("SIGTERM");
  await flooded.exited;
  const lines = flooded
    .stderr()
    .split("\n")
    .filter((line) => line.includes("cross_site_refused"));
  const seen = lines.map((line) => JSON.parse(line) as Record<string, unknown>);
  const written = seen.filter(({ event }) => event === "cross_site_refused");
  const suppressed = seen.reduce((sum, { suppressed: some, lines: more }) => sum + Number(some ?? more ?? 0), 0);
  expect(written.length + suppressed).toBe(sent);
  expect(written.length).toBeLessThanOrEqual(most);
  for (const line of lines) expect(line.length).toBeLessThan(1000);
});
