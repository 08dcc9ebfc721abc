/** Runs examples/oidc-login with oidc-provider as the provider and the real service, from "Sign in" to a session. */

import { execFile } from "node:child_process";
import { readFileSync } from "node:fs";
import { cp, symlink } from "node:fs/promises";
import { createServer, type Server } from "node:http";
import { join } from "node:path";
import { promisify } from "node:util";
import { decodeJwt } from "jose";
import { Provider } from "oidc-provider";
import { afterAll, beforeAll, describe, expect, test, vi } from "vitest";
import { freePort } from "../support/free-port.ts";
import { type Program, startProgram, whileRunning } from "../support/processes.ts";
import { type Service, scratch, startService } from "../support/service.ts";
import { admin, bearer, message, openAdmin } from "../support/sessions.ts";

const ROOT = process.cwd();
const run = promisify(execFile);

/** The time limit for compiling the example, in ms, which is long enough for a busy machine. */
const SETUP_TIMEOUT_MS = 300_000;

let service: Service;
let program: Program;
let provider: Server;
let origin: string;
/** A second process of the application, behind a proxy with TLS. */
let secured: Program;
let securedUrl: string;
const SECURED = "https://app.example";

async function startProvider(): Promise<string> {
  // The provider warns that its test settings are not fit for production.
  for (const name of ["info", "warn"] as const) vi.spyOn(console, name).mockImplementation(() => {});
  const issuer = `http://127.0.0.1:${await freePort()}`;
  const app = new Provider(issuer, {
    clients: [
      {
        client_id: "app",
        client_secret: "a secret of the app",
        redirect_uris: [origin, SECURED].map((one) => `${one}/login/callback`),
      },
    ],
    cookies: { keys: ["a key of the provider"] },
  });
  provider = createServer(app.callback()).listen(Number(new URL(issuer).port), "127.0.0.1");
  return issuer;
}

beforeAll(async () => {
  const directory = scratch();
  await symlink(join(ROOT, "node_modules"), join(directory, "node_modules"));
  await cp("examples/oidc-login", join(directory, "app"), { recursive: true });
  const { scripts } = JSON.parse(readFileSync("examples/oidc-login/package.json", "utf8"));
  const generate = scripts.generate.replace("node_modules/session-service", ROOT).split(" ").slice(1);
  const env = { ...process.env, PATH: `${join(ROOT, "node_modules/.bin")}:${process.env.PATH}` };
  await run("buf", generate, { cwd: join(directory, "app"), env });
  const compiled = await run("tsc", ["-p", "app"], { cwd: directory, env }).catch((error: { stdout: string }) => error);
  expect(compiled.stdout).toBe("");

  const port = await freePort();
  origin = `http://127.0.0.1:${port}`;
  service = await startService({ SESSION_HINT_COOKIE: "__Host-signed_in" });
  const variables = {
    ORIGIN: origin,
    PORT: String(port),
    OIDC_ISSUER: await startProvider(),
    OIDC_CLIENT_ID: "app",
    OIDC_CLIENT_SECRET: "a secret of the app",
    SESSION_ADMIN_URL: service.adminUrl,
    SESSION_ADMIN_TOKEN_FILE: join(service.dataDir, "admin-token"),
  };
  program = startProgram(process.execPath, [join(directory, "app/out/server.js")], { env: variables });
  await whileRunning(program, () => fetch(origin));
  const securedPort = await freePort();
  securedUrl = `http://127.0.0.1:${securedPort}`;
  secured = startProgram(process.execPath, [join(directory, "app/out/server.js")], {
    env: {
      ...variables,
      ORIGIN: SECURED,
      PORT: String(securedPort),
      TRUST_PROXY: "1",
      HINT_COOKIE: "__Host-signed_in",
    },
  });
  await whileRunning(secured, () => fetch(securedUrl));
}, SETUP_TIMEOUT_MS);
afterAll(async () => {
  await program?.stop();
  await secured?.stop();
  provider?.close();
  provider?.closeAllConnections();
  await service?.stop();
});

/** Returns a minimal browser with cookies, redirects and forms. All servers are on one host, so they share its cookies. */
function openBrowser(planted = "") {
  const jar = new Map<string, string>();
  async function send(
    url: string,
    form?: Readonly<Record<string, string>>,
  ): Promise<{ url: string; status: number; text: string }> {
    const cookie = [...jar].map(([name, value]) => `${name}=${value}`).join("; ");
    // The header has an address that the client made up, followed by the one that a proxy in front of the application adds.
    const response = await fetch(url.replace(SECURED, securedUrl), {
      redirect: "manual",
      headers: { cookie: planted + cookie, "user-agent": "a browser", "x-forwarded-for": "6.6.6.6, 192.0.2.1" },
      ...(form !== undefined && { method: "POST", body: new URLSearchParams(form) }),
    });
    for (const one of response.headers.getSetCookie()) {
      const [, name = "", value = ""] = /^([^=]+)=([^;]*)/.exec(one) ?? [];
      if (value === "" || /max-age=0|expires=Thu, 01 Jan 1970/i.test(one)) jar.delete(name);
      else jar.set(name, value);
    }
    const location = response.headers.get("location");
    const text = await response.text();
    return location === null ? { url, status: response.status, text } : send(new URL(location, url).href);
  }
  return { jar, send };
}
type Browser = ReturnType<typeof openBrowser>;

/** Signs in up to the page on which the provider asks whether the application may know the user. Returns that page. */
async function signInAtProvider(browser: Browser, name: string, at = origin): Promise<{ url: string; text: string }> {
  const { text } = await browser.send(`${at}/login`);
  const [, action = ""] = /action="([^"]+)"/.exec(text) ?? [];
  return browser.send(action, { prompt: "login", login: name, password: "any" });
}

const sessionsOf = async (subject: string) => {
  const caller = openAdmin(service);
  const { sessions } = message(await caller.call(admin.listSessions, { subject }, bearer(service.adminToken)));
  caller.close();
  return sessions;
};

test("a login at the provider ends in a session of its subject", async () => {
  const browser = openBrowser();
  const beforeSeconds = Math.floor(Date.now() / 1000);
  const consent = await signInAtProvider(browser, "alice");
  const [, action = ""] = /action="([^"]+)"/.exec(consent.text) ?? [];
  const end = await browser.send(action, { prompt: "consent" });
  expect(end).toMatchObject({ url: `${origin}/`, status: 200 });
  expect(browser.jar.has("login")).toBe(false);
  const [session] = await sessionsOf("alice");
  expect(session?.client).toMatchObject({ userAgent: "a browser", ipAddress: "127.0.0.1" });

  const refreshed = await fetch(`${service.publicUrl}/v1/auth/refresh`, {
    method: "POST",
    headers: { cookie: `refresh_token=${browser.jar.get("refresh_token")}` },
  });
  const { data } = (await refreshed.json()) as { data: { accessToken: string } };
  const claims = decodeJwt(data.accessToken);
  expect(claims).toMatchObject({ sub: "alice", sid: session?.sessionId });
  expect(claims.auth_time).toBeGreaterThanOrEqual(beforeSeconds);
});

test("a user who refuses at the provider gets no session", async () => {
  const browser = openBrowser();
  const consent = await signInAtProvider(browser, "bob");
  const [, cancel = ""] = /href="([^"]+\/abort)"/.exec(consent.text) ?? [];
  expect(await browser.send(new URL(cancel, consent.url).href)).toMatchObject({ status: 403 });
  expect(await sessionsOf("bob")).toEqual([]);
});

test("a callback that this browser did not begin creates no session", async () => {
  const attacker = openBrowser();
  const consent = await signInAtProvider(attacker, "mallory");
  const [, action = ""] = /action="([^"]+)"/.exec(consent.text) ?? [];
  // The attacker keeps the URL that would complete their login, and makes a victim open it.
  attacker.jar.delete("login");
  const refused = await attacker.send(action, { prompt: "consent" });
  expect(refused).toMatchObject({ status: 400 });
  const victim = openBrowser();
  await victim.send(`${origin}/login`);
  expect(await victim.send(refused.url)).toMatchObject({ status: 403 });
  expect(victim.jar.has("refresh_token")).toBe(false);
  expect(await sessionsOf("mallory")).toEqual([]);
});

describe("behind a proxy with TLS", () => {
  async function signIn(browser: Browser, name: string) {
    const consent = await signInAtProvider(browser, name, SECURED);
    const [, action = ""] = /action="([^"]+)"/.exec(consent.text) ?? [];
    return browser.send(action, { prompt: "consent" });
  }

  test("a second login ends the session before it, and the address is the one that the proxy has seen", async () => {
    const browser = openBrowser();
    for (let time = 0; time < 2; time++) {
      expect(await signIn(browser, "carol")).toMatchObject({ url: `${SECURED}/`, status: 200 });
      // The provider forgets the browser when its cookie is deleted, so the user signs in again.
      browser.jar.delete("_session");
    }
    const sessions = await sessionsOf("carol");
    expect(sessions.map(({ client }) => client?.ipAddress)).toEqual(["192.0.2.1"]);
    expect(browser.jar.get("__Host-signed_in")).toBe(sessions[0]?.sessionId);
  });

  test("a login that a sibling domain has planted is not taken", async () => {
    const attacker = openBrowser();
    await attacker.send(`${SECURED}/login`);
    const pending = attacker.jar.get("__Host-login") ?? "";
    expect(pending).not.toBe("");
    for (const planted of [`login=${pending}; `, `\u00a0__Host-login=${pending}; `]) {
      const victim = openBrowser(planted);
      expect(await victim.send(`${SECURED}/login/callback?code=x&state=y`)).toMatchObject({ status: 400 });
      expect(await signIn(victim, "dave")).toMatchObject({ url: `${SECURED}/`, status: 200 });
    }
    // A sibling domain could set as many cookies of this name as a browser sends, if the name had no `__Host-` prefix.
    const victim = openBrowser(`__Host-login=${pending}; `);
    expect(await signIn(victim, "erin")).toMatchObject({ status: 400 });
    expect(await sessionsOf("erin")).toEqual([]);
  });
});
