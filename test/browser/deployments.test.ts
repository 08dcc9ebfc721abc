/** What browsers do with the cookie if the page and the service are on different origins: the table of docs/tasks/browser.md. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { freePort } from "../support/free-port.ts";
import { type Service, startService } from "../support/service.ts";
import { admin, bearer, message, openAdmin } from "../support/sessions.ts";
import { type Engine, startChromium, type Tab } from "./engines/driver.ts";
import { startFirefox } from "./engines/firefox.ts";
import { bundleKit } from "./engines/origin.ts";
import { becomes, eventually, isToken, tokenOf } from "./engines/pages.ts";
import { startWebKit } from "./engines/webkit.ts";
import { type Nginx, startNginx } from "./nginx.ts";

// Browsers resolve every name below `localhost` themselves. They treat `site.localhost` and `other.localhost` as two sites, like
// `example.com` and `example.org`.
const SAME = "page.same.localhost";
const [APP, AUTH] = ["app.site.localhost", "auth.site.localhost"];
const PREFIXED = "page.prefix.localhost";
const [ELSEWHERE, NONE] = ["app.other.localhost", "auth.none.localhost"];

let services: Record<"same" | "prefixed" | "sibling" | "development" | "crossSite", Service>;
let application: Server;
let applicationPort: number;
let nginx: Nginx;
let kit: string;

beforeAll(async () => {
  kit = await bundleKit();
  application = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => application.listen(0, "localhost", resolve));
  applicationPort = (application.address() as AddressInfo).port;
  // Origins contain the port, so the port must be known before the services are configured with their allowed origins.
  const port = await freePort();
  const [same, prefixed, sibling, development, crossSite] = await Promise.all([
    startService({ TRUST_PROXY: "1" }),
    startService({
      TRUST_PROXY: "127.0.0.1",
      COOKIE_PATH: "/session/v1/auth",
      ISSUER: `https://${PREFIXED}:${port}/session`,
    }),
    startService({ TRUST_PROXY: "1", ALLOWED_ORIGINS: `https://${APP}:${port}`, COOKIE_DOMAIN: "site.localhost" }),
    startService({
      HOST: "localhost",
      ALLOWED_ORIGINS: `http://localhost:${applicationPort}`,
      COOKIE_SECURE: "false",
    }),
    startService({
      TRUST_PROXY: "1",
      ALLOWED_ORIGINS: `https://${ELSEWHERE}:${port}`,
      COOKIE_SAMESITE: "None",
    }),
  ]);
  services = { same, prefixed, sibling, development, crossSite };
  const upstreams = {
    [SAME]: same.publicUrl,
    [`${PREFIXED}/session/`]: prefixed.publicUrl,
    [APP]: sibling.publicUrl,
    [AUTH]: sibling.publicUrl,
    [ELSEWHERE]: crossSite.publicUrl,
    [NONE]: crossSite.publicUrl,
  };
  nginx = await startNginx(upstreams, `http://localhost:${applicationPort}`, port);
});
afterAll(async () => {
  await nginx?.stop();
  application?.close();
  for (const service of Object.values(services ?? {})) await service.stop();
});

/** Serves a page with the kit (`/?base=`), and a login (`/login?at=`) that other origins may call with credentials. */
async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const { pathname, searchParams } = new URL(request.url ?? "/", "http://localhost");
  if (pathname === "/kit.js") {
    response.writeHead(200, { "content-type": "text/javascript" }).end(kit);
    return;
  }
  if (pathname === "/login") {
    const service = services[searchParams.get("at") as keyof typeof services];
    const created = await openAdmin(service).call(
      admin.createSession,
      { subject: "alice" },
      bearer(service.adminToken),
    );
    response.writeHead(200, {
      "set-cookie": message(created).setCookies as string[],
      "access-control-allow-origin": request.headers.origin ?? "*",
      "access-control-allow-credentials": "true",
    });
    response.end("signed in");
    return;
  }
  response.writeHead(200, { "content-type": "text/html" }).end(`<!doctype html><script type="module">
import { createSession } from "/kit.js";
globalThis.states = [];
globalThis.session = createSession({ baseUrl: ${JSON.stringify(searchParams.get("base") ?? "")} || location.origin });
session.subscribe(() => states.push(session.snapshot.state));
globalThis.ready = true;
</script>`);
}

async function openPage(engine: Engine, page: string, base: string): Promise<Tab> {
  const tab = await engine.open(`${page}/?base=${encodeURIComponent(base)}`);
  await eventually(
    () => tab.evaluate<boolean>("!!globalThis.ready"),
    (ready) => ready,
  );
  return tab;
}

/** Signs in from the page, as its own login does. Returns what the browser does with the cookie. */
async function signInFrom(tab: Tab, loginUrl: string): Promise<string> {
  await becomes(tab, "ended");
  await tab.evaluate(`fetch(${JSON.stringify(loginUrl)}, { credentials: "include" }).then((r) => r.text())`);
  return tab.evaluate("session.begin().then(() => session.accessToken()).catch((error) => error.reason)");
}

async function expectToWork(engine: Engine, page: string, base: string, loginUrl: string): Promise<void> {
  const tab = await openPage(engine, page, base);
  expect(await signInFrom(tab, loginUrl)).toSatisfy(isToken);
  await tab.goto(`${page}/?base=${encodeURIComponent(base)}`);
  await eventually(() => tokenOf(tab), isToken);
  expect(await tab.evaluate("session.end().then(() => 'out', String)")).toBe("out");
  expect(await tokenOf(await openPage(engine, page, base))).toBe("ended");
}

async function expectNoSession(engine: Engine): Promise<void> {
  const { page, base, loginUrl } = acrossSites();
  expect(await signInFrom(await openPage(engine, page, base), loginUrl)).toBe("ended");
}

function acrossSites() {
  const base = `https://${NONE}:${nginx.port}`;
  return { page: `https://${ELSEWHERE}:${nginx.port}`, base, loginUrl: `${base}/login?at=crossSite` };
}

describe.each([
  ["Chromium", () => startChromium(nginx.authority, "ordinary"), "works"],
  ["Firefox", () => startFirefox(nginx.authority), "works"],
  ["WebKitGTK", () => startWebKit(), "ended"],
] as const)("%s", (name, start, crossSite) => {
  let engine: Engine;
  beforeAll(async () => {
    engine = await start();
  });
  afterAll(() => engine?.close());
  afterEach(() => engine.reset());

  test("a sibling subdomain", async () => {
    const page = `https://${APP}:${nginx.port}`;
    await expectToWork(engine, page, `https://${AUTH}:${nginx.port}`, `${page}/login?at=sibling`);
  });

  test(`another site with SameSite=None: ${crossSite}`, async () => {
    if (crossSite === "ended") return expectNoSession(engine);
    const { page, base, loginUrl } = acrossSites();
    await expectToWork(engine, page, base, loginUrl);
  });

  // Only Chromium runs the following tests, except in the long form (`npm run test:browser`), in which all engines do.
  if (process.env.BROWSERS !== "long" && name !== "Chromium") return;

  test("same origin behind nginx with TLS", async () => {
    const page = `https://${SAME}:${nginx.port}`;
    await expectToWork(engine, page, page, `${page}/login?at=same`);
  });

  test("same origin behind a path prefix, which nginx takes off", async () => {
    const page = `https://${PREFIXED}:${nginx.port}`;
    await expectToWork(engine, page, `${page}/session`, `${page}/login?at=prefixed`);
  });

  test("another port in development", async () => {
    const page = `http://localhost:${applicationPort}`;
    const { port } = new URL(services.development.publicUrl);
    await expectToWork(engine, page, `http://localhost:${port}`, `${page}/login?at=development`);
  });
});

test("another site with SameSite=None, in a private window of Chromium: ended", async () => {
  const engine = await startChromium(nginx.authority, "private");
  await expectNoSession(engine);
  await engine.close();
});
