/** The proxies of examples/, installed from Debian, in front of an application and the service: TLS, the origin, the client's address. */
import { readFileSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DEFAULT_LIMITS } from "../../src/platform/listener/limits.ts";
import { headersForService } from "../../src/server/request-headers.ts";
import { serverAuthority } from "../support/certificate.ts";
import { freePort } from "../support/free-port.ts";
import { type Program, startProgram, whileRunning } from "../support/processes.ts";
import { request } from "../support/raw-http.ts";
import { type Service, scratch, startService, waitFor } from "../support/service.ts";
import { bearer, cookie, logIn, successor } from "../support/sessions.ts";

const { authority, server: certificate } = serverAuthority(["localhost"]);
const ca = Buffer.from(authority);

/** An address of this machine that is not the one of the proxies. */
const CLIENT = "127.0.0.9";

let service: Service;
let application: Server;
beforeAll(async () => {
  application = createServer(async (request, response) => {
    const { headers, url, socket } = request;
    if (url === "/page") {
      // A server that renders pages refreshes the session of the browser, as the server kit does.
      const passed = headersForService(
        { method: "GET", headers: new Headers(headers as Record<string, string>) },
        socket.remoteAddress,
      );
      const refreshed = await fetch(`${service.publicUrl}/v1/auth/refresh`, { method: "POST", headers: passed });
      return response.writeHead(refreshed.status).end();
    }
    response.end(JSON.stringify({ url, host: headers.host, from: headers["x-forwarded-for"] }));
  });
  await new Promise<void>((resolve) => application.listen(0, "127.0.0.1", resolve));
});
afterAll(() => void application?.close());

type Place = { readonly directory: string; readonly https: number; readonly http: number };
type Started = Place & { readonly program: Program };

/** Returns an example's configuration with other addresses and files. Each text to replace must exist. */
function recipe(path: string, replacements: Readonly<Record<string, string>>): string {
  const upstreams = {
    "127.0.0.1:8080": new URL(service.publicUrl).host,
    "127.0.0.1:3000": `127.0.0.1:${(application.address() as AddressInfo).port}`,
  };
  let text = readFileSync(join("examples", path), "utf8");
  for (const [from, to] of Object.entries({ ...upstreams, ...replacements })) {
    expect(text).toContain(from);
    text = text.replaceAll(from, to);
  }
  return text;
}

async function place(): Promise<Place> {
  const directory = scratch();
  writeFileSync(join(directory, "cert.pem"), certificate.cert);
  writeFileSync(join(directory, "key.pem"), certificate.key);
  writeFileSync(join(directory, "both.pem"), `${certificate.cert}${certificate.key}`);
  return { directory, https: await freePort(), http: await freePort() };
}

const PROXIES: Readonly<Record<string, (place: Place) => Program>> = {
  nginx({ directory, https, http }) {
    const conf = recipe("nginx/session-service.conf", {
      "listen 443": `listen 127.0.0.1:${https}`,
      "listen 80": `listen 127.0.0.1:${http}`,
      "app.example.com;": "localhost;",
      "/etc/ssl/app.example.com.pem": `${directory}/cert.pem`,
      "/etc/ssl/private/app.example.com.key": `${directory}/key.pem`,
    });
    const temporary = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map(
      (name) => `${name}_temp_path ${directory};`,
    );
    writeFileSync(
      join(directory, "nginx.conf"),
      `daemon off; pid ${directory}/pid; error_log stderr; worker_processes 1;
events {}
http { access_log off; ${temporary.join(" ")}
${conf} }
`,
    );
    return startProgram("/usr/sbin/nginx", ["-p", directory, "-c", join(directory, "nginx.conf"), "-e", "stderr"]);
  },
  haproxy({ directory, https, http }) {
    const path = join(directory, "haproxy.cfg");
    const conf = recipe("haproxy/haproxy.cfg", {
      "bind :443": `bind 127.0.0.1:${https}`,
      "bind :80": `bind 127.0.0.1:${http}`,
      "/etc/ssl/private/app.example.com.pem": `${directory}/both.pem`,
    });
    writeFileSync(path, conf);
    return startProgram("/usr/sbin/haproxy", ["-db", "-f", path]);
  },
  caddy({ directory, https, http }) {
    const path = join(directory, "Caddyfile");
    const conf = recipe("caddy/Caddyfile", {
      "app.example.com {": "localhost {",
      "/etc/ssl/app.example.com.pem": `${directory}/cert.pem`,
      "/etc/ssl/private/app.example.com.key": `${directory}/key.pem`,
    });
    const options = `{\n\tadmin off\n\tdefault_bind 127.0.0.1\n\thttp_port ${http}\n\thttps_port ${https}\n}\n`;
    writeFileSync(path, options + conf);
    return startProgram("caddy", ["run", "--config", path], { env: { HOME: directory, XDG_DATA_HOME: directory } });
  },
};

test.each([
  ["nginx/session-service.conf", /keepalive_timeout (\d+)s;/],
  ["caddy/Caddyfile", /keepalive (\d+)s/],
  ["forward-auth/Caddyfile", /keepalive (\d+)s/],
])("%s closes idle connections before the service does", (path, setting) => {
  const [, seconds] = setting.exec(readFileSync(join("examples", path), "utf8")) ?? [];
  expect(Number(seconds) * 1000).toBeLessThan(DEFAULT_LIMITS.keepAliveTimeoutMs);
});

describe.each(Object.keys(PROXIES))("%s", (name) => {
  let proxy: Started;
  let origin: string;
  beforeAll(async () => {
    // Each proxy has a service of its own: the tests read its log, which writes at most ten lines of a kind in a second.
    service = await startService({ TRUST_PROXY: "127.0.0.1", LOG_LEVEL: "debug" });
    const where = await place();
    proxy = { ...where, program: (PROXIES[name] as (place: Place) => Program)(where) };
    origin = `https://localhost:${proxy.https}`;
    // HAProxy sends requests to an instance only after a successful health check.
    await whileRunning(proxy.program, async () => {
      expect((await send("GET", "/.well-known/jwks.json")).status).toBe(200);
    });
  });
  afterAll(async () => {
    await proxy?.program.stop();
    await service?.stop();
  });

  const send = (method: string, path: string, headers: Readonly<Record<string, string>> = {}) =>
    request(origin, { method, path, headers: { host: new URL(origin).host, ...headers }, ca });

  test("a page refreshes and logs out on its own origin, with a secure cookie", async () => {
    const session = await logIn(service);
    const refreshed = await send("POST", "/v1/auth/refresh", { ...cookie(session.refreshToken), origin });
    expect(refreshed.status).toBe(200);
    expect(refreshed.cookies[0]).toContain("; Secure");
    expect(refreshed.headers.get("strict-transport-security")).toContain("max-age=");
    const { data } = JSON.parse(refreshed.body) as { data: { accessToken: string } };
    const next = cookie(successor(refreshed) as string);
    expect((await send("DELETE", "/v1/auth/logout", { ...bearer(data.accessToken), origin })).status).toBe(200);
    expect((await send("POST", "/v1/auth/refresh", { ...next, origin })).status).toBe(401);
  });

  test("the public API is reached by RPC", async () => {
    const { accessToken, sid } = await logIn(service);
    const path = "/auth.v1.SessionService/ListSessions";
    const response = await request(origin, {
      method: "POST",
      path,
      headers: { ...bearer(accessToken), "content-type": "application/json" },
      body: "{}",
      ca,
    });
    expect(response.body).toContain(sid);
  });

  test("OAuth clients and gateways find the endpoints, and use them", async () => {
    for (const name of ["oauth-authorization-server", "openid-configuration"]) {
      const metadata = await send("GET", `/.well-known/${name}`);
      expect(JSON.parse(metadata.body)).toMatchObject({ token_endpoint: expect.stringMatching(/\/v1\/oauth\/token$/) });
    }
    const { refreshToken } = await logIn(service, { clientId: "cli" });
    const form = new URLSearchParams({ grant_type: "refresh_token", client_id: "cli", refresh_token: refreshToken });
    const headers = { "content-type": "application/x-www-form-urlencoded" };
    const path = "/v1/oauth/token";
    expect((await request(origin, { method: "POST", path, headers, body: `${form}`, ca })).status).toBe(200);
  });

  test("another site gets 403", async () => {
    const session = await logIn(service);
    const headers = { ...cookie(session.refreshToken), origin: "https://evil.example" };
    expect((await send("POST", "/v1/auth/refresh", headers)).status).toBe(403);
  });

  test.each([
    ["", "POST", "/v1/auth/refresh"],
    [", also through a server that renders pages", "GET", "/page"],
  ])("what a client claims about its address and scheme is not believed%s", async (way, method, path) => {
    const subject = `forger-${name}${way}`;
    const { refreshToken } = await logIn(service, { subject });
    const claims = {
      "x-forwarded-for": "203.0.113.9",
      "x-forwarded-proto": "http",
      host: new URL(origin).host,
      origin,
    };
    const headers = { ...cookie(refreshToken), ...claims };
    const response = await request(`https://127.0.0.1:${proxy.https}`, {
      method,
      path,
      headers,
      ca,
      localAddress: CLIENT,
    });
    expect(response.status).toBe(200);
    const line = await waitFor(service, () =>
      service
        .stderr()
        .split("\n")
        .find((one) => one.includes('"session_renewed"') && one.includes(`"${subject}"`)),
    );
    expect(JSON.parse(line)).toMatchObject({ address: CLIENT });
    expect(service.stderr()).not.toContain("203.0.113.9");
  });

  test("everything else is the application's: it sees host and client, and the admin API is not behind it", async () => {
    for (const path of [
      "/",
      "/v1/authors",
      "/auth.admin.v1.SessionAdminService/CreateSession",
      "/metrics",
      "/readyz",
    ]) {
      const seen = JSON.parse((await send("GET", path)).body) as Record<string, string>;
      expect(seen).toEqual({ url: path, host: new URL(origin).host, from: "127.0.0.1" });
    }
  });

  test("http is redirected to https", async () => {
    const { status, headers } = await request(`http://127.0.0.1:${proxy.http}`, {
      path: "/page?a=b",
      headers: { host: "localhost" },
    });
    expect(status).toBe(308);
    expect(headers.get("location")).toMatch(/^https:\/\/localhost(:\d+)?\/page\?a=b$/);
  });
});
