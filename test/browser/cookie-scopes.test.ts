/** A deployment that changes `COOKIE_DOMAIN` or `COOKIE_PATH` while users are signed in: what real browsers keep and send. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, message, openAdmin } from "../support/sessions.ts";
import { type Engine, startChromium, type Tab } from "./engines/driver.ts";
import { startFirefox } from "./engines/firefox.ts";
import { startWebKit } from "./engines/webkit.ts";
import { type Nginx, startNginx } from "./nginx.ts";

const HOST = "auth.site.localhost";
const DOMAIN = "site.localhost";

/** The changes of a deployment: the name of each, and the settings before and after it. */
const CHANGES: readonly (readonly [string, Record<string, string>, Record<string, string>])[] = [
  ["a domain is set", {}, { COOKIE_DOMAIN: DOMAIN }],
  ["the domain is removed", { COOKIE_DOMAIN: DOMAIN }, { COOKIE_DOMAIN: "" }],
  ["the path gets wider", {}, { COOKIE_PATH: "/" }],
  ["the path gets narrower", { COOKIE_PATH: "/" }, { COOKIE_PATH: "" }],
];

let service: Service;
let application: Server;
let nginx: Nginx;
let publicPort: number;

beforeAll(async () => {
  application = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => application.listen(0, "127.0.0.1", resolve));
  const [port, own] = [await freePort(), await freePort()];
  publicPort = own;
  const url = `http://127.0.0.1:${(application.address() as AddressInfo).port}`;
  nginx = await startNginx({ [HOST]: `http://127.0.0.1:${own}` }, url, port);
});
afterAll(async () => {
  await nginx?.stop();
  application?.close();
  await service?.stop();
});

/** `/login?as=` signs in, as a login page does; anything else is an empty page. */
async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  response.setHeader("content-type", "text/html");
  if (pathname === "/login") {
    const subject = searchParams.get("as") ?? "";
    const created = await openAdmin(service).call(admin.createSession, { subject }, bearer(service.adminToken));
    response.setHeader("set-cookie", message(created).setCookies);
  }
  response.end("<!doctype html>");
}

/**
 * Whether every browser engine goes through every change of the settings, as in `npm run test:browser`. Otherwise Chromium goes through all
 * changes, Firefox only through the first one, and WebKitGTK, which starts anew for each test, through none.
 */
const LONG = process.env.BROWSERS === "long";

const ENGINES: readonly (readonly [string, () => Promise<Engine>])[] = [
  ["Chromium", () => startChromium(nginx.authority, "ordinary")],
  ["Firefox", () => startFirefox(nginx.authority)],
  ...(LONG ? [["WebKitGTK", () => startWebKit()] as const] : []),
];

describe.each(ENGINES)("%s", (name, start) => {
  let engine: Engine;
  let tab: Tab;
  beforeAll(async () => {
    engine = await start();
  });
  afterAll(() => engine?.close());
  beforeEach(async () => {
    await service?.stop();
    await engine.reset();
  });

  const open = async (path: string) => engine.open(`https://${HOST}:${nginx.port}${path}`);
  const logIn = (as: string) => tab.evaluate<number>(`fetch("/login?as=${as}").then((response) => response.status)`);
  /** Refreshes in the page. Returns the subject of the session, or the status of the refusal. */
  const refresh = () =>
    tab.evaluate<string | number>(`fetch("/v1/auth/refresh", { method: "POST" }).then(async (response) =>
      response.ok ? JSON.parse(atob((await response.json()).data.accessToken.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).sub : response.status)`);
  const logOut = () =>
    tab.evaluate<number>(`fetch("/v1/auth/logout", { method: "POST" }).then((response) => response.status)`);

  const changes = LONG || name === "Chromium" ? CHANGES : CHANGES.slice(0, 1);

  describe.each(changes)("%s", (_, before, after) => {
    beforeEach(async () => {
      service = await startService({ TRUST_PROXY: "1", PORT: String(publicPort), REUSE_INTERVAL: "0", ...before });
      tab = await open("/");
      await logIn("alice");
      expect(await refresh()).toBe("alice");
      await service.stop();
      service = await service.restart(after);
    });

    test("who was signed in stays so, can log out, and sign in again", async () => {
      for (let time = 0; time < 3; time++) expect(await refresh()).toBe("alice");
      expect(await logOut()).toBe(200);
      expect(await refresh()).toBe(401);
      await logIn("alice");
      for (let time = 0; time < 2; time++) expect(await refresh()).toBe("alice");
    });

    test("a login after it replaces the one before, and a logout ends both", async () => {
      await logIn("alice");
      for (let time = 0; time < 3; time++) expect(await refresh()).toBe("alice");
      expect(await logOut()).toBe(200);
      expect(await refresh()).toBe(401);
      const { sessions } = message(
        await openAdmin(service).call(admin.listSessions, { subject: "alice" }, bearer(service.adminToken)),
      );
      expect(sessions).toEqual([]);
    });

    test("another user who signs in after it is refused once at the most, and served from then on", async () => {
      await logIn("bob");
      expect(["bob", 401]).toContain(await refresh());
      for (let time = 0; time < 2; time++) expect(await refresh()).toBe("bob");
      expect(await logOut()).toBe(200);
      expect(await refresh()).toBe(401);
    });
  });
});
