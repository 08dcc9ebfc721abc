/** What the kit reports when it cannot tell who is signed in, so that a wrong configuration does not look like an outage without a cause. */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { expect, onTestFinished, test, vi } from "vitest";
import type { ServerSessionsEvent } from "../../src/server/index.ts";
import { createVerifier } from "../../src/verifier/index.ts";
import { aService } from "../support/every-protocol.ts";
import { freePort } from "../support/free-port.ts";
import { aServer, aVerifier, COOKIES, type Jar, signIn } from "./world.ts";

const service = aService(COOKIES);
const kept = aVerifier(service);

/** Starts a server that responds in place of the service. */
async function startOther(status: number, type: string, body: string): Promise<string> {
  const server = createServer((_, response) => response.writeHead(status, { "content-type": type }).end(body));
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => void server.close());
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

async function renewable(): Promise<Jar> {
  const jar = await signIn(service);
  jar.cookies.delete("access_token");
  return jar;
}

const PORTAL = "<!doctype html><title>portal</title>";
test.each([
  ["nothing", async () => `http://127.0.0.1:${await freePort()}`, "ECONNREFUSED"],
  ["another server", () => startOther(404, "text/html", PORTAL), "404 SyntaxError"],
  ["the page of a proxy", () => startOther(200, "text/html", PORTAL), "200 SyntaxError"],
  [
    "a service in trouble",
    () => startOther(503, "application/json", '{"error":{"code":"E503_UNAVAILABLE"}}'),
    "503 E503_UNAVAILABLE",
  ],
  [
    "a server that would write a line of its own into the log",
    () => startOther(500, "application/json", JSON.stringify({ error: { code: "E500\nready\u001b[2J" } })),
    "500 E500?ready?[2J",
  ],
])("%s in place of the service is reported, at a page view and at a sign-out", async (_, start, cause) => {
  const events: ServerSessionsEvent[] = [];
  const { sessions } = aServer(service, kept.verifier, {
    service: await start(),
    report: (event) => events.push(event),
  });
  const request = (await renewable()).request();
  expect((await sessions.authenticate(request)).user.state).toBe("unavailable");
  expect((await sessions.signOut(request, undefined, "a-session")).user.state).toBe("unavailable");
  expect(events).toEqual([
    { event: "service_failed", path: "/v1/auth/refresh", cause },
    { event: "service_failed", path: "/v1/auth/logout", cause },
  ]);
});

test("a verifier with another issuer than the service is reported, once for requests that share a refresh", async () => {
  const { adminUrl, adminToken, publicUrl } = service;
  const verifier = createVerifier({ adminUrl, adminToken, issuer: "https://other.example", audience: publicUrl });
  onTestFinished(() => verifier.close());
  await verifier.ready;
  const events: ServerSessionsEvent[] = [];
  const { sessions } = aServer(service, verifier, { report: (event) => events.push(event) });
  const request = (await renewable()).request();
  const views = await Promise.all([sessions.authenticate(request), sessions.authenticate(request)]);
  expect(views.map(({ user }) => user.state)).toEqual(["unavailable", "unavailable"]);
  expect(events).toEqual([{ event: "token_refused", reason: "wrong_issuer" }]);
});

test("a session that has ended, and one that is renewed, are no failures", async () => {
  const events: ServerSessionsEvent[] = [];
  const { sessions } = aServer(service, kept.verifier, { report: (event) => events.push(event) });
  const jar = await renewable();
  const request = jar.request();
  expect((await sessions.authenticate(request)).user.state).toBe("active");
  expect((await sessions.signOut(request)).user.state).toBe("ended");
  expect((await sessions.authenticate((await renewable()).request())).user.state).toBe("active");
  expect((await sessions.signOut(request)).user.state).toBe("ended");
  expect(events).toEqual([]);
});

test("without a report, the first failure appears on the console", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  const { sessions } = aServer(service, kept.verifier, { service: `http://127.0.0.1:${await freePort()}` });
  const request = (await renewable()).request();
  for (let view = 0; view < 2; view++) await sessions.authenticate(request);
  const text = "@session-service/server: the session service has failed at /v1/auth/refresh: ECONNREFUSED";
  expect(warn.mock.calls).toEqual([[text]]);
});

test("a verifier that has not started does not hide on the console that it has another issuer", async () => {
  const warn = vi.spyOn(console, "warn").mockImplementation(() => {});
  onTestFinished(() => warn.mockRestore());
  let isStarted = false;
  const verify = async () => {
    const reason = isStarted ? "wrong_issuer" : "unavailable";
    isStarted = true;
    return { ok: false, reason } as const;
  };
  const { sessions } = aServer(service, { ...kept.verifier, verify });
  for (let view = 0; view < 3; view++) await sessions.authenticate((await renewable()).request());
  expect(warn.mock.calls.flat().map((text) => text.split(": ").at(-1))).toEqual(["unavailable", "wrong_issuer"]);
});
