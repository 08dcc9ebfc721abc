/** The Cache-Control header of the status lists, at each time of the wall clock. */
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test } from "vitest";
import { wallMs } from "../../../../src/service/session/time.ts";
import { statusListRoute } from "../../../../src/service/signals/status-list/route.ts";

const NEXT_AT = 1_700_000_010_000;

test.each([
  ["half of its time is over", NEXT_AT - 5_000, 5],
  ["the next version is due already", NEXT_AT + 3_000, 1],
  ["the clock was set back by an hour after the list was signed", NEXT_AT - 3_600_000, 10],
])("caches keep a list for at most its time to live: %s", async (_, now, seconds) => {
  const list = { token: "a.b.c", etag: 'W/"1"', nextAt: NEXT_AT, ttlMs: 10_000 };
  const lists = { get: () => list };
  const refuse = () => expect.unreachable();
  const route = statusListRoute({ lists, wallClock: () => wallMs(now), notFound: refuse, unavailable: refuse });
  const server = createServer((request, response) => route(request)?.(request, response));
  onTestFinished(() => void server.close());
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${port}/v1/status-lists/abcdefgh`);
  expect(response.headers.get("cache-control")).toBe(`public, max-age=${seconds}`);
});
