/** The gateway against pages of other sites, which make browsers send requests together with their cookies. */
import { expect, test } from "vitest";
import { request } from "../support/raw-http.ts";
import { runGateway, startRelay } from "./running.ts";

const APP = "https://app.example";
const { set, upstream } = startRelay();

const start = (...args: string[]) => runGateway(...upstream(), "--descriptors", set, ...args);
/** A form of another site needs no content type: `sendBeacon` with a blob without a type sends none either. */
const post = async (origin: string, headers: Record<string, string>) => {
  const own = { cookie: "session=1", ...headers };
  return (await request(origin, { method: "POST", path: "/v1/items", headers: own })).status;
};

test("a request that may change something is forwarded for own and allowed pages alone", async () => {
  const gateway = await start("--allow-origin", APP);
  const host = new URL(gateway.origin).host;
  const refused = [
    { "sec-fetch-site": "cross-site" },
    { "sec-fetch-site": "cross-site", origin: "https://evil.example" },
    { "sec-fetch-site": "same-site" },
    { "sec-fetch-site": "nonsense", origin: APP },
    { origin: "https://evil.example" },
    { origin: "null" },
  ];
  for (const headers of refused) expect([headers, await post(gateway.origin, headers)]).toEqual([headers, 403]);
  const passed = [
    {},
    { "sec-fetch-site": "same-origin", origin: "null" },
    { "sec-fetch-site": "none" },
    { "sec-fetch-site": "cross-site", origin: APP },
    { origin: `https://${host}` },
  ];
  for (const headers of passed) expect([headers, await post(gateway.origin, headers)]).toEqual([headers, 200]);
  const line = await gateway.line(({ event }) => event === "cross-site request refused");
  expect(line).toMatchObject({ header: "sec-fetch-site", site: "cross-site", allowedBy: "--allow-origin" });
  const link = await fetch(`${gateway.origin}/v1/items/a`, { headers: { "sec-fetch-site": "cross-site" } });
  expect(link.status).toBe(200);
});

test("behind a trusted proxy the own host is the one that the browser called", async () => {
  const forwarded = { origin: "https://public.example", "x-forwarded-host": "public.example" };
  const trusting = await start("--trust-forwarded");
  expect(await post(trusting.origin, forwarded)).toBe(200);
  const bySeveral = { ...forwarded, "x-forwarded-host": "public.example, inner.example" };
  expect(await post(trusting.origin, bySeveral)).toBe(200);
  expect(await post(trusting.origin, { ...bySeveral, origin: "https://inner.example" })).toBe(403);
  expect(await post((await start()).origin, forwarded)).toBe(403);
  expect(await post((await start("--trust-proxy", "10.0.0.0/8,127.0.0.1")).origin, forwarded)).toBe(200);
  expect(await post((await start("--trust-proxy", "10.0.0.0/8")).origin, forwarded)).toBe(403);
});

test("a server that takes nothing from browsers may switch the check off", async () => {
  const { origin } = await start("--allow-cross-site");
  expect(await post(origin, { "sec-fetch-site": "cross-site", origin: "https://evil.example" })).toBe(200);
});
