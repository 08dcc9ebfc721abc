/**
 * Cookies that a sibling domain plants in the browser of somebody else, in three engines: nobody is signed in as the attacker, and nobody's
 * sign-in ends in the attacker's session. WebKitGTK lets a sibling domain set cookies with the prefix `__Host-` (libsoup), so there this
 * protection is missing, and only the other names are planted.
 */
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { type Engine, startChromium, type Tab } from "../../browser/engines/driver.ts";
import { startFirefox } from "../../browser/engines/firefox.ts";
import { startWebKit } from "../../browser/engines/webkit.ts";
import { type Nginx, startNginx } from "../../browser/nginx.ts";
import { freePort } from "../../support/free-port.ts";
import { openBrowser, startProvider } from "../../support/oidc-provider.ts";
import { type Service, startService } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const [HOST, SIBLING, DOMAIN] = ["app.site.localhost", "evil.site.localhost", "site.localhost"];

let provider: Awaited<ReturnType<typeof startProvider>>;
let service: Service;
let pages: Server;
let nginx: Nginx;
let origin: string;

beforeAll(async () => {
  // A page sets the cookies that its query names, and shows the names of those that it received.
  pages = createServer(({ url = "", headers }, response) => {
    const planted = new URL(url, "http://localhost").searchParams.getAll("plant");
    const names = (headers.cookie ?? "").split("; ").map((pair) => pair.split("=")[0]);
    response.setHeader("set-cookie", planted);
    response.setHeader("content-type", "text/html").end(`<!doctype html><p>page with ${names.join(" ")}`);
  });
  await new Promise<void>((resolve) => pages.listen(0, "127.0.0.1", resolve));
  const application = `http://127.0.0.1:${(pages.address() as AddressInfo).port}`;
  const [port, servicePort] = [await freePort(), await freePort()];
  origin = `https://${HOST}:${port}`;
  const api = `http://127.0.0.1:${servicePort}`;
  nginx = await startNginx({ [HOST]: api, [SIBLING]: api }, application, port);
  const client = { client_id: "app", token_endpoint_auth_method: "none" } as const;
  provider = await startProvider({ clients: [{ ...client, redirect_uris: [`${origin}/v1/auth/callback`] }] });
  service = await startService({
    ...{ PORT: String(servicePort), ISSUER: origin, SIGN_IN_ORIGIN: origin, TRUST_PROXY: "1" },
    ...{ OIDC_ISSUER: provider.issuer, OIDC_CLIENT_ID: "app" },
    ...{ COOKIE_NAME: "__Host-refresh_token", COOKIE_PATH: "/" },
  });
});
afterAll(async () => {
  await nginx?.stop();
  await service?.stop();
  provider?.stop();
  pages?.close();
});

/** Signs the attacker in at the provider. Returns the callback that has not been opened yet, and the cookie of this login. */
async function attackersLogin() {
  const browser = openBrowser();
  const end = await browser.signIn(`${service.publicUrl}/v1/auth/login?return_to=/inbox`, "mallory");
  const [cookie] = [...browser.jar].filter(([name]) => name.startsWith("__Host-login-"));
  if (cookie === undefined || !end.url.startsWith(`${origin}/v1/auth/callback?`)) throw new Error(end.text);
  return { callback: end.url, name: cookie[0], value: cookie[1] };
}

/** Returns the attacker's own refresh token. */
async function attackersSession(): Promise<string> {
  const { callback, name, value } = await attackersLogin();
  const { pathname, search } = new URL(callback);
  const headers = { cookie: `${name}=${value}` };
  const response = await fetch(service.publicUrl + pathname + search, { headers, redirect: "manual" });
  const set = response.headers.getSetCookie().find((line) => line.startsWith("__Host-refresh_token="));
  return /=([^;]+)/.exec(set ?? "")?.[1] ?? "";
}

const textOf = (tab: Tab) => tab.evaluate<string>("document.body?.innerText ?? ''");
const shows = (tab: Tab, text: string) => until(async () => expect(await textOf(tab)).toContain(text));
/** Leads the tab elsewhere, as a script or a click does. */
const lead = (tab: Tab, url: string) => tab.evaluate(`void setTimeout(() => location.assign(${JSON.stringify(url)}))`);
const subject = (tab: Tab) =>
  tab.evaluate<string | number>(`fetch("/v1/auth/refresh", { method: "POST" }).then(async (response) =>
    response.ok ? JSON.parse(atob((await response.json()).data.accessToken.split(".")[1].replaceAll("-", "+").replaceAll("_", "/"))).sub : response.status)`);

function planting(cookies: readonly string[]): string {
  const query = new URLSearchParams(cookies.map((cookie) => ["plant", cookie]));
  return `https://${SIBLING}:${nginx.port}/page?${query}`;
}

describe.each([
  ["Chromium", true, () => startChromium(nginx.authority, "ordinary")],
  ["Firefox", true, () => startFirefox(nginx.authority)],
  ["WebKitGTK", false, () => startWebKit()],
] as const)("%s", (_, knowsPrefixes, start) => {
  const prefixed = (...cookies: readonly string[]) => (knowsPrefixes ? cookies : []);
  let engine: Engine;
  beforeAll(async () => {
    engine = await start();
  });
  afterEach(() => engine.reset());
  afterAll(() => engine?.close());

  test("a planted login in progress does not sign anybody in as the attacker", async () => {
    const { callback, name, value } = await attackersLogin();
    const plain = name.replace("__Host-", "");
    const tab = await engine.open(
      planting([
        ...prefixed(`${name}=${value}; Domain=${DOMAIN}; Path=/; Secure`),
        `${name}=${value}; Path=/; Secure; Domain=${HOST}`,
        `${plain}=${value}; Domain=${DOMAIN}; Path=/; Secure`,
      ]),
    );
    await lead(tab, `${origin}/page`);
    // What has no prefix was planted.
    await shows(tab, plain);
    expect(await textOf(tab)).not.toContain("__Host-");
    await lead(tab, callback);
    await shows(tab, "This sign-in is over");
    await tab.goto(`${origin}/page`);
    expect(await subject(tab)).toBe(401);
  });

  test("planted cookies of the attacker's session do not count, and whoever signs in has a session of their own", async () => {
    const token = await attackersSession();
    expect(token).not.toBe("");
    const tab = await engine.open(
      planting([
        ...prefixed(`__Host-refresh_token=${token}; Domain=${DOMAIN}; Path=/; Secure`),
        `refresh_token=${token}; Domain=${DOMAIN}; Path=/; Secure`,
      ]),
    );
    await lead(tab, `${origin}/page`);
    await shows(tab, "refresh_token");
    expect(await subject(tab)).toBe(401);
    await lead(tab, `${origin}/v1/auth/login?return_to=/page`);
    await until(async () => expect(await tab.evaluate("document.querySelector('[name=login]') !== null")).toBe(true));
    await tab.evaluate(
      `void (document.querySelector("[name=login]").value = "alice", document.querySelector("[name=password]").value = "any", setTimeout(() => document.querySelector("[type=submit]").click()))`,
    );
    await shows(tab, "Authorize");
    await tab.evaluate(`void setTimeout(() => document.querySelector("[type=submit]").click())`);
    await shows(tab, "page with");
    expect(await subject(tab)).toBe("alice");
  });
});
