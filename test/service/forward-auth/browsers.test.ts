/** An application that knows nothing of sessions, behind each gateway: its pages stay signed in, and lead to the sign-in. */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../../support/free-port.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, startService } from "../../support/service.ts";
import { bearer, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { type ForwardAuth, startForwardAuth } from "./command.ts";
import { GATEWAY_NAMES, type Gateway, startGateway } from "./gateways.ts";

const NAVIGATION = { "sec-fetch-mode": "navigate", "sec-fetch-dest": "document", "sec-fetch-site": "none" };
const FETCH = { "sec-fetch-mode": "cors", "sec-fetch-dest": "empty", "sec-fetch-site": "same-origin" };

let application: Server;
beforeAll(async () => {
  application = createServer(({ headers, url }, response) => {
    if (url === "/sets") response.setHeader("set-cookie", "own=1");
    response.setHeader("cache-control", "public, max-age=60");
    response.end(JSON.stringify(headers));
  });
  await new Promise<void>((resolve) => application.listen(0, "127.0.0.1", resolve));
});
afterAll(() => void application?.close());

/** Returns the `Cookie` header of a browser that has received a response. */
const cookiesOf = ({ headers }: { readonly headers: Headers }) =>
  headers
    .getSetCookie()
    .map((line) => line.split(";")[0])
    .join("; ");

describe.each(GATEWAY_NAMES)("%s", (name) => {
  let service: Service;
  let forwardAuth: ForwardAuth;
  let gateway: Gateway;
  let origin: string;
  const send: Gateway["send"] = (...given) => gateway.send(...given);

  beforeAll(async () => {
    const port = await freePort();
    origin = `https://localhost:${port}`;
    service = await startService({ ISSUER: origin, ACCESS_COOKIE: "access_token", COOKIE_PATH: "/" });
    const browsers = ["--refresh", service.publicUrl, "--sign-in", `${origin}/v1/auth/login`];
    forwardAuth = await startForwardAuth(service, origin, ...browsers);
    const app = `127.0.0.1:${(application.address() as AddressInfo).port}`;
    const [check, api] = [new URL(forwardAuth.url).host, new URL(service.publicUrl).host];
    gateway = await startGateway(name, { port, app, check, api });
  });
  afterAll(async () => {
    await gateway?.stop();
    await forwardAuth?.stop();
    await service?.stop();
  });

  const refreshes = async () => {
    const { body } = await request(service.adminUrl, { path: "/metrics", headers: bearer(service.adminToken) });
    const counts = [...body.matchAll(/^session_renewed_total\{outcome="\w+"\} (\d+)/gm)];
    return counts.reduce((sum, [, count]) => sum + Number(count), 0);
  };

  test("a page whose access token is gone is renewed on the way, once for all that come together", async () => {
    const { subject, sid, refreshToken } = await logIn(service);
    const before = await refreshes();
    const headers = { ...NAVIGATION, cookie: `refresh_token=${refreshToken}` };
    const pages = await Promise.all(Array.from({ length: 20 }, () => send("/page", headers)));
    for (const { status, body } of pages) {
      expect(status).toBe(200);
      expect(JSON.parse(body)).toMatchObject({ "x-auth-subject": subject, "x-auth-session": sid });
    }
    expect((await refreshes()) - before).toBe(1);
    const renewed = pages.filter((page) => page.headers.getSetCookie().length > 0);
    expect(renewed).toHaveLength(1);
    const [page] = renewed as [(typeof pages)[number]];
    expect(page.headers.getSetCookie()).toEqual([
      expect.stringMatching(/^refresh_token=A[^;]+; .*HttpOnly/),
      expect.stringMatching(/^access_token=ey[^;]+; .*HttpOnly/),
    ]);
    expect(page.headers.get("cache-control")).toMatch(/public, max-age=60, no-store|no-store, public, max-age=60/);
    // No script can read the new cookies, neither there nor in another header.
    expect([...page.headers.keys()].filter((header) => header.startsWith("x-auth-"))).toEqual([]);
    const next = await send("/sets", { ...FETCH, cookie: cookiesOf(page) }, "POST");
    expect([next.status, next.headers.getSetCookie()]).toEqual([200, ["own=1"]]);
    expect(next.headers.get("cache-control")).toBe("public, max-age=60");
    expect(JSON.parse(next.body)).toMatchObject({ "x-auth-session": sid });
  });

  test("a response that was lost is repeated, and the application's own cookies stay", async () => {
    const { sid, refreshToken } = await logIn(service);
    const headers = { ...NAVIGATION, cookie: `refresh_token=${refreshToken}; own=2` };
    for (const path of ["/", "/sets"]) expect((await send(path, headers)).status).toBe(200);
    const later = await send("/sets", { ...NAVIGATION, cookie: `refresh_token=${refreshToken}` });
    expect(JSON.parse(later.body)).toMatchObject({ "x-auth-session": sid });
    expect(later.headers.getSetCookie()).toContain("own=1");
  });

  test("a page without a session leads to the sign-in and back, a fetch gets 401", async () => {
    const page = await send("/orders?of=a%20b&x=1", NAVIGATION);
    expect(page.status).toBe(302);
    const location = new URL(page.headers.get("location") ?? "");
    expect([location.origin, location.pathname]).toEqual([origin, "/v1/auth/login"]);
    expect(location.searchParams.get("return_to")).toBe("/orders?of=a%20b&x=1");
    const plain = await send("/", { accept: "text/html,application/xhtml+xml" });
    expect(plain.status).toBe(302);
    for (const [headers, method] of [[FETCH], [{ accept: "application/json" }], [NAVIGATION, "POST"]] as const) {
      const { status, headers: got } = await send("/orders", { ...headers, origin }, method);
      expect([status, got.get("location"), got.get("www-authenticate")]).toEqual([401, null, "Bearer"]);
    }
    const { accessToken } = await logIn(service);
    expect((await send("/", bearer(accessToken))).status).toBe(200);
    const refused = await send("/", { ...NAVIGATION, ...bearer("x") });
    expect([refused.status, refused.headers.get("location")]).toEqual([401, null]);
  });

  test("a page that comes back without a session again and again is not led any further", async () => {
    const path = "/loop";
    let cookie = "a=b";
    const statuses: number[] = [];
    for (let i = 0; i < 5; i++) {
      const page = await send(path, { ...NAVIGATION, cookie });
      statuses.push(page.status);
      cookie = cookiesOf(page) || cookie;
    }
    expect(statuses).toEqual([302, 302, 302, 401, 401]);
    expect((await send("/other", { ...NAVIGATION, cookie })).status).toBe(302);
  });

  test("two pages that come back in turn stop each for itself", async () => {
    const jar = new Map([["a", "b"]]);
    const statuses: number[] = [];
    for (const path of ["/one", "/two", "/one", "/two", "/one", "/two", "/one", "/two"]) {
      const cookie = [...jar].map((pair) => pair.join("=")).join("; ");
      const page = await send(path, { ...NAVIGATION, cookie });
      statuses.push(page.status);
      for (const line of page.headers.getSetCookie()) {
        const [name = "", value = ""] = line.slice(0, line.indexOf(";")).split("=");
        jar.set(name, value);
      }
    }
    expect(statuses).toEqual([302, 302, 302, 302, 302, 302, 401, 401]);
  });

  test("after a logout in another tab a page leads to the sign-in", async () => {
    const { accessToken, refreshToken } = await logIn(service);
    const cookie = `refresh_token=${refreshToken}; access_token=${accessToken}`;
    expect((await send("/", { ...NAVIGATION, cookie })).status).toBe(200);
    const ended = await send("/v1/auth/logout", bearer(accessToken), "DELETE");
    expect(ended.status).toBe(200);
    await until(async () => expect((await send("/", { ...NAVIGATION, cookie })).status).toBe(302));
    const { status, headers } = await send("/", { ...FETCH, cookie });
    expect([status, headers.getSetCookie().some((line) => /^access_token=;.*Max-Age=0/.test(line))]).toEqual([
      401,
      true,
    ]);
  });

  test("a page of another site cannot send anything in the name of the user", async () => {
    const { accessToken, refreshToken } = await logIn(service);
    const cookie = `refresh_token=${refreshToken}; access_token=${accessToken}`;
    const foreign = { "sec-fetch-site": "cross-site", origin: "https://evil.example" };
    expect((await send("/orders", { ...foreign, cookie }, "POST")).status).toBe(403);
    expect((await send("/orders", { origin: "https://evil.example", cookie }, "POST")).status).toBe(403);
    expect((await send("/orders", { origin, cookie }, "POST")).status).toBe(200);
    const link = { ...NAVIGATION, "sec-fetch-site": "cross-site", cookie: `refresh_token=${refreshToken}` };
    expect((await send("/orders", link)).status).toBe(200);
  });

  test("while the service is away it is neither yes nor no, and whoever has a token goes on", async () => {
    const { accessToken, refreshToken, sid } = await logIn(service);
    const away = await startForwardAuth(service, origin, "--refresh", `http://127.0.0.1:${await freePort()}`);
    const check = async (cookie: string) => {
      const { status, headers } = await request(away.url, {
        path: "/auth-request",
        headers: { ...NAVIGATION, cookie },
      });
      return [status, headers.get("x-auth-session") ?? headers.get("x-auth-reason"), headers.getSetCookie()];
    };
    expect(await check(`refresh_token=${refreshToken}`)).toEqual([503, "unavailable", []]);
    expect(await check(`refresh_token=${refreshToken}; access_token=${accessToken}`)).toEqual([200, sid, []]);
    await away.stop();
  });
});
