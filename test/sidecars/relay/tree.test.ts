/** Three levels of relays between the real service and a verifier. The middle one is a separate process, as an operator runs it. */
import { createHash } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";
import type { Relay } from "../../../src/sidecars/relay/serve.ts";
import { startRelay } from "../../../src/sidecars/relay/start.ts";
import { loadAdminAccess } from "../../../src/tokens/admin-access.ts";
import { createVerifier } from "../../../src/verifier/index.ts";
import { type HoldingProxy, startHoldingProxy } from "../../support/holding-proxy.ts";
import { type Program, startProgram, whileRunning } from "../../support/processes.ts";
import { PROGRAM } from "../../support/program.ts";
import { request } from "../../support/raw-http.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { bearer, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const ISSUER = "https://auth.example";
const WATCHER = "a-token-of-a-watcher-of-32-characters";
const READER = "a-token-of-a-reader-of-32-characters-";
const WATCH = "/auth.admin.v1.SessionAdminService/WatchRevocations";

let service: Service;
let proxy: HoldingProxy;
let first: Relay;
let middle: Program & { readonly url: string };
let last: Relay;
const bugs: unknown[] = [];

async function relayOf(adminUrl: string, adminToken: string, instance: string): Promise<Relay> {
  return startRelay({
    ...{ upstream: { adminUrl, adminToken }, host: "127.0.0.1", port: 0, instance },
    access: await loadAdminAccess([{ name: "test", token: WATCHER }], undefined),
    ...{ report() {}, audit() {}, onBug: (error) => void bugs.push(error), onRefused() {} },
  });
}

const watchers = join(scratch(), "watchers.json");

async function startMiddle(port: string): Promise<typeof middle> {
  const args = ["relay", "--url", first.url, "--watchers", watchers, "--port", port];
  const program = startProgram(process.execPath, [PROGRAM, ...args], { env: { ADMIN_TOKEN: WATCHER } });
  const url = await whileRunning(program, async () => {
    const [, ready] = /"event":"ready","url":"([^"]+)"/.exec(program.output()) ?? [];
    if (ready === undefined) throw new Error("not yet");
    return ready;
  });
  return { ...program, url };
}

const hash = (token: string) => createHash("sha256").update(token).digest("hex");

beforeAll(async () => {
  const admins = [
    { name: "watcher", hash: hash(WATCHER), scopes: ["watch"] },
    { name: "reader", hash: hash(READER), scopes: ["sessions:read"] },
  ];
  writeFileSync(watchers, JSON.stringify({ admins }), { mode: 0o600 });
  service = await startService({ ISSUER });
  proxy = await startHoldingProxy(Number(new URL(service.adminUrl).port));
  first = await relayOf(`http://127.0.0.1:${proxy.port}`, service.adminToken, "first");
  middle = await startMiddle("0");
  last = await relayOf(middle.url, WATCHER, "last");
});
afterAll(async () => {
  await last?.close();
  await middle?.stop();
  await first?.close();
  await proxy?.stop();
  await service?.stop();
});

function follow() {
  const verifier = createVerifier({
    ...{ adminUrl: last.url, adminToken: WATCHER, jwksUrl: `${service.publicUrl}/.well-known/jwks.json` },
    ...{ issuer: ISSUER, audience: ISSUER, policy: "refuse" },
  });
  onTestFinished(() => verifier.close());
  const verdictOf = async (token: string) => {
    const verdict = await verifier.verify(token);
    return verdict.ok ? "ok" : verdict.reason;
  };
  return { verifier, verdictOf };
}

const logOut = (accessToken: string) =>
  request(service.publicUrl, { method: "DELETE", path: "/v1/auth/logout", headers: bearer(accessToken) });

test("a logout is refused behind three levels, and other sessions stay", async () => {
  const { verifier, verdictOf } = follow();
  await verifier.ready;
  const [gone, other] = [await logIn(service), await logIn(service)];
  expect(await verdictOf(gone.accessToken)).toBe("ok");
  await logOut(gone.accessToken);
  await until(async () => expect(await verdictOf(gone.accessToken)).toBe("revoked"));
  expect(await verdictOf(other.accessToken)).toBe("ok");
  const metrics = await fetch(`${middle.url}/metrics`).then((response) => response.text());
  expect(metrics).toMatch(/^relay_watchers 1$/m);
  const rebound = await request(middle.url, { path: "/metrics", headers: { host: "attacker.example.com" } });
  expect([rebound.status, rebound.body]).toEqual([421, "--metrics-host must name this host\n"]);
  expect(metrics).toMatch(/^relay_staleness_seconds [\d.e-]+$/m);
});

describe("no dead token is accepted on knowledge that is older than the bound", () => {
  test("when a relay in the middle is killed; it goes on when the relay is back", async () => {
    const { verifier, verdictOf } = follow();
    await verifier.ready;
    const { accessToken } = await logIn(service);
    middle.kill("SIGKILL");
    await middle.exited;
    await logOut(accessToken);
    await until(async () => expect(await verdictOf(accessToken)).toBe("unavailable"));
    expect(verifier.stalenessMs()).toBeLessThan(Number.POSITIVE_INFINITY);
    middle = await startMiddle(new URL(middle.url).port);
    await until(async () => expect(await verdictOf(accessToken)).toBe("revoked"));
  });

  test("when the service falls silent; new watchers are not taken in by the relays either", async () => {
    const { verifier, verdictOf } = follow();
    await verifier.ready;
    const { accessToken } = await logIn(service);
    proxy.loseReplies();
    await logOut(accessToken);
    await until(async () => expect(await verdictOf(accessToken)).toBe("unavailable"));
    const late = follow();
    expect(await late.verdictOf(accessToken)).toBe("unavailable");
    for (const { url } of [first, middle, last]) expect((await fetch(`${url}/readyz`)).status).toBe(503);
    expect((await fetch(`${middle.url}/livez`)).status).toBe(200);
    proxy.recover();
    await until(async () => expect(await verdictOf(accessToken)).toBe("revoked"));
    await until(async () => expect(await late.verdictOf(accessToken)).toBe("revoked"));
    await until(async () => expect((await fetch(`${last.url}/readyz`)).status).toBe(200));
  });
});

test("a relay lets in watchers with the scope, and has no other RPC", async () => {
  const call = async (path: string, headers: Readonly<Record<string, string>>, url = middle.url) => {
    const response = await request(url, {
      ...{ method: "POST", path, body: path === WATCH ? "\0\0\0\0\u0003{}x" : "{}" },
      headers: { "content-type": path === WATCH ? "application/connect+json" : "application/json", ...headers },
    });
    return [response.status, /"code":"(\w+)"/.exec(response.body)?.[1]];
  };
  const refused = await Promise.all([call(WATCH, {}), call(WATCH, bearer("x")), call(WATCH, bearer(READER))]);
  expect(refused.map(([, code]) => code)).toEqual(["unauthenticated", "unauthenticated", "permission_denied"]);
  const [status] = await call("/auth.admin.v1.SessionAdminService/RevokeSession", bearer(WATCHER), last.url);
  expect(status).toBe(404);
  expect(bugs).toEqual([]);
});
