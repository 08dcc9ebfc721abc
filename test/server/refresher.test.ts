/** Which requests share one call to the service, and what a response of the service means. */
import { expect, test } from "vitest";
import { createRefresher } from "../../src/server/refresh.ts";

const SHARE_MS = 1_000;

function world(respond: () => Response = () => Response.json({ data: { accessToken: "token" } })) {
  const state = { nowMs: 50_000, respond };
  const calls: Headers[] = [];
  const refresh = createRefresher({
    service: "https://service.test",
    fetch: async (url, init) => {
      expect(String(url)).toBe("https://service.test/v1/auth/refresh");
      expect(init).toMatchObject({ method: "POST", redirect: "manual" });
      calls.push(init?.headers as Headers);
      return state.respond();
    },
    clock: () => state.nowMs,
    timeoutMs: 60_000,
    shareMs: SHARE_MS,
    report: () => {},
  });
  return {
    ...{ state, calls },
    refresh: async (presented = "a", stale?: string) => refresh(presented, new Headers({ cookie: presented }), stale),
  };
}

const active = { refreshed: { state: "active", accessToken: "token" } };

test.each<[string, number, boolean]>([
  ["at once", 0, true],
  ["in the last millisecond", SHARE_MS - 1, true],
  ["when the time is over", SHARE_MS, false],
  ["after the clock was set back", -1, false],
])("a second request %s shares the call, or not", async (_, laterMs, isShared) => {
  const { state, calls, refresh } = world();
  expect(await refresh()).toMatchObject({ ...active, isFirst: true });
  state.nowMs += laterMs;
  expect(await refresh()).toMatchObject({ ...active, isFirst: !isShared });
  expect(calls).toHaveLength(isShared ? 1 : 2);
});

test("requests with other credentials have a call of their own, whichever expires first", async () => {
  const { state, calls, refresh } = world();
  await refresh("a");
  state.nowMs += SHARE_MS / 2;
  expect(await refresh("b")).toMatchObject({ isFirst: true });
  expect(calls.map((headers) => headers.get("cookie"))).toEqual(["a", "b"]);
  state.nowMs += SHARE_MS / 2;
  expect(await refresh("b")).toMatchObject({ isFirst: false });
  expect(await refresh("a")).toMatchObject({ isFirst: true });
});

const E001 = { error: { code: "E001_AUTH_FAILURE" } };

test.each<[string, () => Response, string]>([
  ["E001", () => Response.json(E001, { status: 401 }), "ended"],
  ["401 with another body", () => Response.json({ error: { code: "E002" } }, { status: 401 }), "unavailable"],
  ["a token that is no text", () => Response.json({ data: { accessToken: 7 } }), "unavailable"],
  ["a page of a proxy", () => new Response("<html>", { status: 502 }), "unavailable"],
  ["data of an error", () => Response.json({ data: { accessToken: "token" } }, { status: 502 }), "unavailable"],
  ["null, which is JSON too", () => Response.json(null, { status: 502 }), "unavailable"],
  ["null in place of an error", () => Response.json({ data: null, error: null }), "unavailable"],
  [
    "no response",
    () => {
      throw new TypeError("fetch failed");
    },
    "unavailable",
  ],
])("%s is read as what it is; only an outage is not shared", async (_, respond, expected) => {
  const { state, refresh } = world(respond);
  expect(await refresh()).toMatchObject({ refreshed: { state: expected }, isFirst: true });
  state.respond = () => Response.json({ data: { accessToken: "token" } });
  const after = await refresh();
  expect([after.refreshed.state, after.isFirst]).toEqual(
    expected === "unavailable" ? ["active", true] : [expected, false],
  );
});

test("an outage that ends late does not remove the call that has followed it", async () => {
  const { promise, resolve } = Promise.withResolvers<Response>();
  const { state, refresh } = world();
  state.respond = () => promise as unknown as Response;
  const first = refresh();
  state.nowMs += SHARE_MS;
  state.respond = () => Response.json({ data: { accessToken: "token" } });
  expect(await refresh()).toMatchObject({ ...active, isFirst: true });
  resolve(new Response("<html>", { status: 502 }));
  expect(await first).toMatchObject({ refreshed: { state: "unavailable" } });
  expect(await refresh()).toMatchObject({ ...active, isFirst: false });
});

test("a call that has brought a stale token is made again, once for all that have got it", async () => {
  const { state, calls, refresh } = world(() => Response.json({ data: { accessToken: `token ${calls.length}` } }));
  expect(await refresh()).toMatchObject({ refreshed: { accessToken: "token 1" }, isFirst: true });
  state.nowMs += SHARE_MS / 2;
  const all = await Promise.all(Array.from({ length: 5 }, () => refresh("a", "token 1")));
  expect(all.map(({ isFirst }) => isFirst)).toEqual([true, false, false, false, false]);
  for (const { refreshed } of all) expect(refreshed).toMatchObject({ accessToken: "token 2" });
  expect(await refresh("a", "token 1")).toMatchObject({ refreshed: { accessToken: "token 2" }, isFirst: false });
  expect(calls).toHaveLength(2);
  state.nowMs += SHARE_MS;
  expect(await refresh("b", "token 2")).toMatchObject({ refreshed: { accessToken: "token 3" }, isFirst: true });
});
