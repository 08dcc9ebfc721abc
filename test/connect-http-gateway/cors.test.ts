/** What scripts of pages of other origins may read. */
import { expect, test } from "vitest";
import { runGateway, startRelay } from "./running.ts";

const APP = "https://app.example";
const { set, upstream } = startRelay();
const start = (...args: string[]) => runGateway(...upstream(), "--descriptors", set, ...args);

const namesOf = (value: string | null) => value?.split(", ") ?? [];

test("a page of an allowed origin may send what it asks for, and read responses and refusals", async () => {
  const { origin } = await start("--allow-origin", APP, "--cors", "--expose-header", "etag");
  const asked = {
    origin: APP,
    "access-control-request-method": "PATCH",
    "access-control-request-headers": "traceparent",
  };
  const preflight = await fetch(`${origin}/v1/items/a`, { method: "OPTIONS", headers: asked });
  expect(preflight.status).toBe(204);
  expect(preflight.headers.get("access-control-allow-origin")).toBe(APP);
  expect(preflight.headers.get("access-control-allow-credentials")).toBe("true");
  expect(namesOf(preflight.headers.get("access-control-allow-methods"))).toContain("PATCH");
  expect(namesOf(preflight.headers.get("access-control-allow-headers"))).toEqual(["traceparent"]);
  for (const path of ["/v1/items/a", "/v1/nowhere"]) {
    const { headers } = await fetch(`${origin}${path}`, { headers: { origin: APP } });
    expect([headers.get("access-control-allow-origin"), headers.get("vary")]).toEqual([
      APP,
      expect.stringContaining("Origin"),
    ]);
    expect(namesOf(headers.get("access-control-expose-headers"))).toEqual(
      expect.arrayContaining(["etag", "Retry-After"]),
    );
  }
});

test("nobody else may, and without --cors no page of another origin", async () => {
  const { origin } = await start("--allow-origin", APP, "--cors");
  const other = { origin: "https://other.example", "access-control-request-method": "POST" };
  for (const method of ["OPTIONS", "GET"]) {
    const { headers } = await fetch(`${origin}/v1/items/a`, { method, headers: other });
    expect([...headers.keys()].filter((name) => name.startsWith("access-control-"))).toEqual([]);
  }
  const without = await start("--allow-origin", APP);
  const { headers } = await fetch(`${without.origin}/v1/items/a`, { headers: { origin: APP } });
  expect(headers.get("access-control-allow-origin")).toBeNull();
});
