/** The cookies of a browser do not follow a redirect: another origin receives nothing. */
import { expect, test } from "vitest";
import { call, createRefresher } from "../../src/server/refresh.ts";
import { PATIENCE_MS } from "../support/patience.ts";
import { startRedirecting } from "../support/redirecting.ts";

test("a refresh and a logout", async () => {
  const { origin, received } = await startRedirecting();
  const deps = { service: origin, fetch, clock: Date.now, timeoutMs: PATIENCE_MS, shareMs: 0, report() {} };
  const headers = new Headers({ cookie: "__Host-session=token", authorization: "Bearer token" });
  expect(await createRefresher(deps)("token", headers)).toMatchObject({ refreshed: { state: "unavailable" } });
  // The body of the redirect is no response of the service.
  expect(await call(deps, "/v1/auth/logout", headers)).toBeUndefined();
  expect(received).toEqual({ first: ["POST /v1/auth/refresh", "POST /v1/auth/logout"], other: [] });
});
