/** The configurations of examples/forward-auth run in the gateways that Debian packages, between a client and an application. */
import { readFileSync } from "node:fs";
import { createServer, type Server } from "node:http";
import { type AddressInfo, createServer as createNetServer } from "node:net";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { clientKey, dpop } from "../../support/dpop.ts";
import { freePort } from "../../support/free-port.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, startService } from "../../support/service.ts";
import { bearer, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { type ForwardAuth, startForwardAuth } from "./command.ts";
import { type Changes, GATEWAY_NAMES, type Gateway, startGateway } from "./gateways.ts";

const ISSUER = "https://app.example.com";

let service: Service;
let application: Server;
beforeAll(async () => {
  service = await startService({ ISSUER });
  application = createServer(({ headers, url }, response) => {
    if (url === "/fails") response.writeHead(500);
    response.end(JSON.stringify(headers));
  });
  await new Promise<void>((resolve) => application.listen(0, "127.0.0.1", resolve));
});
afterAll(async () => {
  application?.close();
  await service?.stop();
});

/** Returns the change that docs/tasks/forward-auth.md describes for pages of other origins: a line, and the lines that replace it. */
function preflightChanges(name: string): Changes {
  const title = { nginx: "nginx", caddy: "Caddy", haproxy: "HAProxy" }[name];
  const section = readFileSync("docs/tasks/forward-auth.md", "utf8").split("## Pages of other origins")[1] ?? "";
  const row = section.split("\n").find((line) => line.startsWith(`| ${title} |`)) ?? "";
  const [from = "", ...to] = [...row.matchAll(/`([^`]+)`/g)].map(([, code = ""]) => code);
  expect(to).not.toEqual([]);
  return { [from]: to.join("\n") };
}

describe.each(GATEWAY_NAMES)("%s", (name) => {
  let gateway: Gateway;
  let forwardAuth: ForwardAuth;
  let origin: string;
  const start = async (check: string, port: number, changes?: Changes): Promise<Gateway> => {
    origin = `https://localhost:${port}`;
    const app = `127.0.0.1:${(application.address() as AddressInfo).port}`;
    return startGateway(name, { port, app, check, api: new URL(service.publicUrl).host, changes });
  };
  const send: Gateway["send"] = (...given) => gateway.send(...given);

  describe("with a check that responds", () => {
    beforeAll(async () => {
      const port = await freePort();
      forwardAuth = await startForwardAuth(service, ISSUER, "--origin", `https://localhost:${port}`);
      gateway = await start(new URL(forwardAuth.url).host, port);
    });
    afterAll(async () => {
      await gateway?.stop();
      await forwardAuth?.stop();
    });

    test("a signed-in caller reaches the application, which learns who it is", async () => {
      const { accessToken, sid } = await logIn(service, { subject: "Zoë", clientId: "web" });
      for (const method of ["GET", "POST", "DELETE"]) {
        const response = await send("/page", bearer(accessToken), method);
        expect(response.status).toBe(200);
        const seen = JSON.parse(response.body) as Record<string, string>;
        expect(seen).toMatchObject({ "x-auth-subject": "Zo%C3%AB", "x-auth-session": sid, "x-auth-client": "web" });
        const claims = JSON.parse(Buffer.from(seen["x-auth-claims"] ?? "", "base64url").toString());
        expect(claims).toMatchObject({ sub: "Zoë", sid });
      }
    });

    test("what a client says about itself does not get through", async () => {
      const { accessToken } = await logIn(service, { subject: "mallory@example.com", clientId: "50 % app" });
      const claimed = {
        "x-auth-subject": "admin",
        "x-auth-session": "s",
        "x-auth-client": "root",
        "x-auth-claims": "e30",
      };
      const seen = JSON.parse((await send("/", { ...bearer(accessToken), ...claimed })).body) as Record<string, string>;
      expect(seen["x-auth-subject"]).toBe("mallory@example.com");
      expect(seen["x-auth-client"]).toBe("50%20%25%20app");
      expect([seen["x-auth-session"], seen["x-auth-claims"]]).not.toEqual(["s", "e30"]);
    });

    test("nor in a spelling that CGI, WSGI and PHP take for the same name", async () => {
      const { accessToken } = await logIn(service, { subject: "mallory" });
      const spellings = ["x_auth_subject", "X_Auth-Subject", "x-auth_subject", "x_auth_claims"];
      const claimed = Object.fromEntries(spellings.map((spelling) => [spelling, "admin"]));
      const response = await send("/", { ...bearer(accessToken), ...claimed });
      expect(response.body).not.toContain("admin");
    });

    test("nor about the way of its request", async () => {
      const { accessToken } = await logIn(service);
      const claimed = { "x-forwarded-for": "203.0.113.9", "x-forwarded-proto": "http" };
      const response = await send("/", { ...bearer(accessToken), ...claimed });
      expect(JSON.parse(response.body)).toMatchObject({ "x-forwarded-for": "127.0.0.1", "x-forwarded-proto": "https" });
    });

    test("nor can a client have the gateway drop what it says", async () => {
      const { accessToken, sid } = await logIn(service, { subject: "mallory" });
      const names = ["x-auth-subject", "x-auth-session", "x-auth-client", "x-auth-claims", "x-forwarded-uri"];
      const response = await send("/", { ...bearer(accessToken), connection: `close, ${names.join(", ")}` });
      if (response.status === 200)
        expect(JSON.parse(response.body)).toMatchObject({ "x-auth-subject": "mallory", "x-auth-session": sid });
    });

    test.each([
      ["no token", {}, "Bearer"],
      ["a token of somebody else's making", bearer("eyJhbGciOiJub25lIn0.e30."), 'Bearer error="invalid_token"'],
    ])("%s: 401 with a challenge", async (_, headers, challenge) => {
      const response = await send("/", headers);
      expect(response.status).toBe(401);
      expect(response.headers.get("www-authenticate")).toBe(challenge);
    });

    test("a token that is bound to a key passes with a proof for this request, and with no other", async () => {
      const key = clientKey();
      const { accessToken, sid } = await logIn(service, { dpopJkt: key.thumbprint });
      const prove = (url: string, htm: string) => dpop(key, url, { accessToken, claims: { htm } });
      const present = async (
        proof: string | undefined,
        method = "POST",
        headers: Readonly<Record<string, string>> = {},
      ) => {
        const own = { authorization: `DPoP ${accessToken}`, ...(proof && { dpop: proof }), ...headers };
        const response = await send("/page%2D1?of=alice", own, method);
        if (response.status !== 200) return [response.status, response.headers.get("www-authenticate")];
        return (JSON.parse(response.body) as Record<string, string>)["x-auth-session"];
      };
      const proof = prove(`${origin}/page-1`, "POST");
      expect(await present(proof)).toBe(sid);
      expect(await present(prove(`${origin}/page-1`, "GET"), "GET")).toBe(sid);
      const refused = [401, 'DPoP error="invalid_dpop_proof", algs="ES256 RS256 EdDSA Ed25519"'];
      for (const other of [
        proof,
        undefined,
        prove(`${origin}/page-2`, "POST"),
        prove(`${origin}/page-1`, "GET"),
        prove(`${origin}/check`, "GET"),
        prove("https://app.example.com/page-1", "POST"),
        dpop(clientKey(), `${origin}/page-1`, { accessToken }),
      ]) {
        expect(await present(other)).toEqual(refused);
      }
      // A client cannot choose by headers for which request its proof is checked.
      const claimed = {
        "x-forwarded-uri": "/page-2",
        "x-forwarded-method": "GET",
        "x-forwarded-host": "app.example.com",
      };
      expect(await present(prove(`${origin}/page-2`, "GET"), "POST", claimed)).toEqual(refused);
      expect(await present(prove(`${origin}/page-1`, "POST"), "POST", claimed)).toBe(sid);
      // A proof for a host that is not configured for the gateway is refused, too, even if the request names that host.
      const elsewhere = { host: "127.0.0.1:1", authorization: `DPoP ${accessToken}` };
      const named = { ...elsewhere, dpop: prove("https://127.0.0.1:1/page-1", "POST") };
      expect((await send("/page-1", named, "POST")).body).not.toContain(sid);
      expect(await present(undefined, "GET", bearer(accessToken))).toEqual([401, 'Bearer error="invalid_token"']);
    });

    test("after its logout a caller is turned away", async () => {
      const { accessToken } = await logIn(service);
      expect((await send("/", bearer(accessToken))).status).toBe(200);
      const ended = { method: "DELETE", path: "/v1/auth/logout", headers: bearer(accessToken) };
      expect((await request(service.publicUrl, ended)).status).toBe(200);
      await until(async () => expect((await send("/", bearer(accessToken))).status).toBe(401));
    });

    test("the largest claims that a session may have reach the application", async () => {
      const { accessToken } = await logIn(service, { claims: { roles: "r".repeat(4_000) } });
      const response = await send("/", bearer(accessToken));
      expect(response.status).toBe(200);
      const seen = JSON.parse(response.body) as Record<string, string>;
      const claims = JSON.parse(Buffer.from(seen["x-auth-claims"] ?? "", "base64url").toString()) as { roles: string };
      expect(claims.roles).toHaveLength(4_000);
    });

    test("an error of the application is the application's", async () => {
      const { accessToken } = await logIn(service);
      expect((await send("/fails", bearer(accessToken))).status).toBe(500);
    });
  });

  test("as documented for pages of other origins, a preflight reaches the application, as nobody's", async () => {
    forwardAuth = await startForwardAuth(service, ISSUER);
    gateway = await start(new URL(forwardAuth.url).host, await freePort(), preflightChanges(name));
    const asks = { origin: "https://other.example", "access-control-request-method": "DELETE" };
    const claimed = { "x-auth-subject": "admin", "x-auth-claims": "e30", x_auth_subject: "admin" };
    const response = await send("/page", { ...asks, ...claimed }, "OPTIONS");
    expect(response.status).toBe(200);
    expect(JSON.parse(response.body)).toMatchObject(asks);
    expect(response.body).not.toMatch(/admin|e30/);
    expect((await send("/page", asks, "GET")).status).toBe(401);
    const { accessToken, sid } = await logIn(service);
    expect(JSON.parse((await send("/page", bearer(accessToken))).body)).toMatchObject({ "x-auth-session": sid });
    await gateway.stop();
    await forwardAuth.stop();
  });

  test("a page of another site opens no WebSocket with the user's cookie, in any version of HTTP", async () => {
    forwardAuth = await startForwardAuth(service, ISSUER, "--cookie", "access_token");
    gateway = await start(new URL(forwardAuth.url).host, await freePort());
    const { accessToken } = await logIn(service);
    const from = (site: string, page: string) => ({
      ...{ cookie: `access_token=${accessToken}`, origin: page, "sec-fetch-site": site, "sec-websocket-version": "13" },
    });
    const key = { connection: "Upgrade", upgrade: "websocket", "sec-websocket-key": "dGhlIHNhbXBsZSBub25jZQ==" };
    const foreign = from("same-site", "https://blog.example.com");
    expect((await send("/socket", { ...foreign, ...key })).status).toBe(403);
    expect((await send("/socket", { ...from("same-origin", origin), ...key })).status).toBe(200);
    expect([403, undefined]).toContain(await gateway.beginWebSocket(foreign));
    await gateway.stop();
    await forwardAuth.stop();
  });

  test("a check that takes the question and is silent holds nobody up: 503", async () => {
    const silent = createNetServer((socket) => socket.on("error", () => {}));
    await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
    gateway = await start(`127.0.0.1:${(silent.address() as AddressInfo).port}`, await freePort());
    expect((await send("/")).status).toBe(503);
    await gateway.stop();
    silent.close();
  });

  test("without a check that responds it is neither yes nor no: 503", async () => {
    gateway = await start(`127.0.0.1:${await freePort()}`, await freePort());
    const { accessToken } = await logIn(service);
    expect((await send("/", bearer(accessToken))).status).toBe(503);
    expect((await send("/")).status).toBe(503);
    await gateway.stop();
  });
});
