/** Malformed requests never make the service fail: there is no 500, no internal detail in a response, and nothing is logged as a bug. */
import { once } from "node:events";
import { connect } from "node:net";
import fc from "fast-check";
import { afterAll, beforeAll, expect, test } from "vitest";
import { request } from "../support/raw-http.ts";
import { type Service, startService } from "../support/service.ts";
import { bearer, cookie, logIn } from "../support/sessions.ts";
import { faultOf, type Malformed, malformedRequests } from "./malformed.ts";
import { LONG } from "./victim.ts";

const REQUESTS = LONG ? 10_000 : 1_000;

let service: Service;
let requests: fc.Arbitrary<Malformed>;
beforeAll(async () => {
  service = await startService({ LOG_LEVEL: "debug", RATE_LIMIT_FAILURES: "off", RATE_LIMIT_REFRESH: "off" });
  const { accessToken, refreshToken } = await logIn(service);
  requests = malformedRequests({
    public: { ...bearer(accessToken), ...cookie(refreshToken) },
    admin: bearer(service.adminToken),
  });
});
afterAll(() => service.stop());

/** Sends the head and a part of the body, and resets the connection once the service has started to process the request. */
async function sendCut(url: string, { method, path, headers = {}, body = "", cutAfter }: Malformed): Promise<void> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname).on("error", () => {});
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  if (!("transfer-encoding" in headers)) lines.push(`content-length: ${Buffer.byteLength(body)}\r\n`);
  socket.write(`${method} ${path} HTTP/1.1\r\nhost: x\r\nexpect: 100-continue\r\n${lines.join("")}\r\n`, "latin1");
  await once(socket, "data");
  socket.write(Buffer.from(body as Buffer).subarray(0, cutAfter), () => socket.resetAndDestroy());
  await once(socket, "close");
}

test(`none of ${REQUESTS} malformed requests is a failure of ours`, { timeout: 900_000 }, async () => {
  const seed = Number(process.env.FUZZ_SEED ?? 20_261_122);
  const statuses = new Map<number, number>();
  await fc.assert(
    fc.asyncProperty(requests, async (malformed) => {
      const url = malformed.api === "public" ? service.publicUrl : service.adminUrl;
      if (malformed.cutAfter !== undefined) return sendCut(url, malformed);
      const response = await request(url, malformed);
      statuses.set(response.status, (statuses.get(response.status) ?? 0) + 1);
      expect(faultOf(response)).toBeUndefined();
    }),
    { numRuns: REQUESTS, seed },
  );
  await service.stop();
  const lines = service.stderr().split("\n").slice(0, -1);
  expect(lines.filter((line) => !line.startsWith("{") || /"bug"|"level":"(error|fatal)"/.test(line))).toEqual([]);
  // Many requests must be refused for their message (400), which shows that their credentials were accepted.
  expect(statuses.get(400)).toBeGreaterThan(REQUESTS / 10);
  if (LONG) process.stdout.write(`${JSON.stringify(Object.fromEntries(statuses))}\n`);
});
