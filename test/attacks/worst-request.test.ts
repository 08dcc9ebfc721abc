/**
 * The request that costs the service most CPU time per byte, found by a search over routes, credentials, content types, encodings, sizes
 * and protocols; and how it affects honest clients while an attacker sends 100 KiB of it per second.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Service, startService } from "../support/service.ts";
import { bearer, cookie, logIn } from "../support/sessions.ts";
import { type Candidate, candidates, NUMBER } from "./requests.ts";
import { LONG } from "./victim.ts";
import { type Cost, costOf, overHttp1, overHttp2, type Sender, startFlood } from "./worst-request.ts";

/**
 * An address of the machine itself. The service does not limit HTTP/2 requests from it, because a proxy on the machine may send those of
 * many clients.
 */
const ITSELF = "127.0.0.1";
const STRANGER = "127.0.0.8";
const HONEST = "127.0.0.9";
const BYTES_PER_SECOND = 100 * 1024;
/** The duration of each measurement, in ms. Measurements with and without the attack alternate. */
const RUN_MS = 15_000;
const ROUNDS = 3;
const HONEST_PAUSE_MS = 10;

let service: Service;
let all: readonly Candidate[];
let honest: readonly string[];
beforeAll(async () => {
  // With the long reuse interval, honest clients may present each token any number of times.
  service = await startService({ REUSE_INTERVAL: "300s" });
  const { refreshToken, accessToken } = await logIn(service);
  const [header, payload = "", signature = ""] = accessToken.split(".");
  const forged = `${header}.${payload.slice(0, -NUMBER.length)}${NUMBER}.${signature}`;
  const spoilt = Array.from({ length: 30 }, (_, at) => refreshToken.slice(0, -2) + String.fromCharCode(65 + at, 65));
  all = candidates([
    {},
    { ...cookie(`${refreshToken.slice(0, -1)}x`), ...bearer(forged) },
    { ...bearer(`${header}.${payload.repeat(20)}${NUMBER}.${signature}`), ...cookie(refreshToken) },
    { cookie: spoilt.map((each) => `refresh_token=${each.replace(/[^\w-]/g, "_")}`).join("; ") },
    { ...cookie(refreshToken), ...bearer(accessToken) },
  ]);
  honest = (await Promise.all(Array.from({ length: 60 }, () => logIn(service)))).map((each) => each.refreshToken);
});
afterAll(() => service.stop());

const protocols = [
  ["HTTP/1.1", overHttp1],
  ["HTTP/2", overHttp2],
] as const;

/** Measures what each candidate request costs the service over HTTP/1.1 and over HTTP/2. Returns the costs, the highest per byte first. */
async function search(which: readonly Candidate[], times: number): Promise<readonly Cost[]> {
  const costs: Cost[] = [];
  for (const [protocol, open] of protocols) {
    const sender = open(service.publicUrl, ITSELF);
    for (const candidate of which) costs.push(await costOf(service.pid, protocol, sender, candidate, times));
    sender.close();
  }
  return costs.sort((a, b) => b.usPerByte - a.usPerByte);
}

test("no request of the search is a failure of the service", async () => {
  const some = all.filter((_, at) => at % 79 === 0);
  for (const { candidate, protocol, status } of await search(some, 1)) {
    const { method, path, headers, body } = candidate;
    if (status === 0 || status >= 500)
      expect.soft([protocol, method, path, headers, body.length, status]).toBe("refused");
  }
});

/** Refreshes sessions at a steady pace, as honest clients do. */
async function honestRun(sender: Sender): Promise<{ readonly times: readonly number[]; readonly failed: number }> {
  const times: number[] = [];
  let failed = 0;
  for (const end = performance.now() + RUN_MS; performance.now() < end; ) {
    const headers = cookie(honest[times.length % honest.length] as string);
    const started = performance.now();
    const status = await sender.send({ method: "POST", path: "/v1/auth/refresh", headers, body: Buffer.alloc(0) });
    times.push(performance.now() - started);
    if (status !== 200) failed++;
    await new Promise((resolve) => setTimeout(resolve, HONEST_PAUSE_MS));
  }
  return { times, failed };
}

const p99 = (times: readonly number[]) => [...times].sort((a, b) => a - b)[Math.floor(times.length * 0.99)] ?? 0;

/** The measuring test runs in the long form only, because it takes minutes. */
const long: typeof test | (() => void) = LONG ? test : () => {};

long("100 KiB of the worst request in each second", { timeout: 3_600_000 }, async () => {
  const first = await search(all, 3);
  const dearest = [...new Set(first.slice(0, 40).map(({ candidate }) => candidate))];
  const costs = await search(dearest, 200);
  for (const { protocol, candidate, status, bytes, us, usPerByte } of costs.slice(0, 10)) {
    const { method, path, headers, body } = candidate;
    const type = `${headers["content-type"] ?? ""} ${headers["content-encoding"] ?? headers["grpc-encoding"] ?? ""}`;
    const row = [protocol, method, path.slice(0, 50), type, Object.keys(headers).join(" "), body.length, status];
    process.stdout.write(
      `| ${[...row, bytes, us, usPerByte].map((cell) => cell.toString().slice(0, 70)).join(" | ")} |\n`,
    );
  }
  const worst = costs[0] as Cost;
  const honestSender = overHttp1(service.publicUrl, HONEST);
  await honestRun(honestSender);
  const quiet: number[] = [];
  const attacked: number[] = [];
  let failures = 0;
  for (let round = 0; round < ROUNDS; round++) {
    const before = await honestRun(honestSender);
    quiet.push(...before.times);
    const stop = startFlood({
      url: service.publicUrl,
      address: STRANGER,
      protocol: worst.protocol,
      candidate: worst.candidate,
      bytesPerSecond: BYTES_PER_SECOND,
    });
    const during = await honestRun(honestSender);
    attacked.push(...during.times);
    failures += before.failed + during.failed;
    const flood = await stop();
    process.stdout.write(`${JSON.stringify({ round, ...flood })}\n`);
    // If the machine is too slow to send at the intended rate, the measurement is void.
    expect(flood.bytesPerSecond).toBeGreaterThan(0.9 * BYTES_PER_SECOND);
  }
  process.stdout.write(`${JSON.stringify({ quietP99Ms: p99(quiet), attackedP99Ms: p99(attacked), failures })}\n`);
  expect(failures).toBe(0);
  expect(p99(attacked)).toBeLessThanOrEqual(3 * p99(quiet));
});
