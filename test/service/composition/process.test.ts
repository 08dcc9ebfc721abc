/** The service as a process: how it starts, refuses to start and stops, and which files it leaves. */

import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, statSync, writeFileSync } from "node:fs";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import { join } from "node:path";
import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { configVariables } from "../../../src/service/config/config.ts";
import { RPC_PROTOCOLS } from "../../support/clients.ts";
import { compiled, PROGRAM } from "../../support/program.ts";
import { request } from "../../support/raw-http.ts";
import { runToExit, scratch, spawnService, startService, waitFor, withKeys } from "../../support/service.ts";
import { admin, bearer, cookie, logIn, message, openAdmin, openPublic, successor } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const { refresh, logout, listSessions } = SessionService.method;

/** Opens a raw connection and sends `text`. Returns the socket, and a function that resolves with the responses. */
async function connected(url: string, text: string): Promise<{ socket: Socket; received: () => Promise<string> }> {
  const { hostname, port } = new URL(url);
  const socket = connect(Number(port), hostname);
  let heard = "";
  socket.setEncoding("utf8").on("data", (chunk: string) => {
    heard += chunk;
  });
  const closed = once(socket, "close");
  await once(socket, "connect");
  await new Promise<void>((resolve) => void socket.write(text, () => resolve()));
  return { socket, received: () => closed.then(() => heard) };
}

describe("start", () => {
  test("the first line of standard output has the URLs of the listeners, and the quickstart follows", async () => {
    const service = await startService();
    expect(service.ready).toEqual({
      event: "ready",
      public: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      admin: expect.stringMatching(/^http:\/\/127\.0\.0\.1:\d+$/),
      store: "embedded",
    });
    for (const url of [service.publicUrl, service.adminUrl]) {
      expect((await request(url, { path: "/readyz" })).status).toBe(200);
    }
    expect((await service.stop()).code).toBe(0);
    expect(service.stdout()).toContain(`${service.publicUrl}/docs`);
    expect(service.stdout()).not.toContain(service.adminToken);
  });

  test("what it keeps is for its own eyes", async () => {
    const service = await startService();
    await logIn(service);
    const modes = readdirSync(service.dataDir).map((name) => [
      name,
      statSync(join(service.dataDir, name)).mode & 0o777,
    ]);
    await service.stop();
    expect(statSync(service.dataDir).mode & 0o777).toBe(0o700);
    expect(Object.fromEntries(modes)).toMatchObject({ "admin-token": 0o600, "keys.json": 0o600, "sessions.db": 0o600 });
    for (const [name, mode] of modes) expect(mode, String(name)).toBe(0o600);
  });

  test("every fault of a configuration is a line on standard error, and the exit code is 1", async () => {
    const exit = await runToExit({
      PORT: "x",
      LOG_LEVEL: "loud",
      ADMIN_TOKENS: "hunter2",
      COOKIE_SAMESITE: "sometimes",
    });
    expect(exit.code).toBe(1);
    expect(exit.stdout).toBe("");
    const lines = exit.stderr.trimEnd().split("\n");
    expect(lines.map((line) => line.split(" ")[0]).sort()).toEqual([
      "ADMIN_TOKENS",
      "COOKIE_SAMESITE",
      "LOG_LEVEL",
      "PORT",
    ]);
    expect(exit.stderr).not.toContain("hunter2");
  });

  test("every variable can have a fault, and all of them are reported at once", async () => {
    const names = [...configVariables().keys()];
    expect(names.length).toBeGreaterThan(30);
    const nonsense = `!${"nonsense".repeat(700)}`;
    const exit = await runToExit(Object.fromEntries(names.map((name) => [name, nonsense])));
    expect([exit.code, exit.stdout]).toEqual([1, ""]);
    const lines = exit.stderr.trimEnd().split("\n");
    expect(lines.map((line) => line.split(" ")[0]).sort()).toEqual(names.sort());
    expect(exit.stderr).not.toContain("nonsense");
  });

  test.each([
    ["public", "PORT"],
    ["admin", "ADMIN_PORT"],
  ])("a taken port of the %s listener is named", async (listener, variable) => {
    const holder = createServer().listen(0, "127.0.0.1");
    await once(holder, "listening");
    const address = holder.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    const exit = await runToExit({ [variable]: String(port) });
    holder.close();
    expect(exit.code).toBe(1);
    expect(exit.stderr).toBe(
      `${variable}: cannot open the ${listener} listener on 127.0.0.1:${port}: the port is taken\n`,
    );
  });

  test.each(["HOST", "ADMIN_HOST"])("a %s that is no address of this machine is named", async (variable) => {
    const exit = await runToExit({ [variable]: "192.0.2.1" });
    expect([exit.code, exit.stderr]).toEqual([1, expect.stringMatching(new RegExp(`^${variable}: cannot open the `))]);
  });

  test.each([
    ["", "REDIS_URL", "redis://127.0.0.1:1"],
    [" whose URL is in a file", "REDIS_URL_FILE", join(scratch(), "url")],
  ])(
    "with Redis%s a missing key ring is a fault, and the message names the command that creates one",
    async (_, variable, value) => {
      if (variable.endsWith("_FILE")) writeFileSync(value, "redis://127.0.0.1:1\n");
      const exit = await runToExit({ [variable]: value });
      expect(exit.code).toBe(1);
      expect(exit.stderr).toContain("session-service keys create");
      expect(exit.stderr.trimEnd().split("\n")).toHaveLength(1);
    },
  );

  test.each([
    ["a directory that cannot be made", { DATA_DIR: "/dev/null/data" }],
    ["a certificate that is none", { TLS_CERT_FILE: import.meta.filename, TLS_KEY_FILE: import.meta.filename }],
  ])("%s is a fault in one line, without a stack", async (_, env) => {
    const exit = await runToExit(env);
    expect(exit.code).toBe(1);
    expect(exit.stderr.trimEnd().split("\n")).toHaveLength(1);
  });
});

test("a prefixed cookie name is set, and the plain one read until the date that a deployment names", async () => {
  const COOKIE_MIGRATE_UNTIL = new Date(Date.now() + 86_400_000).toISOString().slice(0, 10);
  const service = await startService({ COOKIE_NAME: "__Host-refresh_token", COOKIE_MIGRATE_UNTIL });
  const user = await logIn(service);
  const response = await openPublic(service).call(refresh, {}, cookie(user.refreshToken));
  message(response);
  const [set] = response.headers.getSetCookie();
  expect(set).toMatch(/^__Host-refresh_token=[^;]+; Path=\/; HttpOnly; Secure; SameSite=Lax; Max-Age=\d+$/);
  const left = await openPublic(service).call(logout, {}, bearer(user.accessToken));
  // The cookies are removed with the attributes with which they were set, because browsers remove a cookie only from the scope in which it
  // was set.
  const attributes = "HttpOnly; Secure; SameSite=Lax; Max-Age=0";
  expect(left.headers.getSetCookie()).toEqual([
    `__Host-refresh_token=; Path=/; ${attributes}`,
    `refresh_token=; Path=/v1/auth; ${attributes}`,
  ]);
  await service.stop();
});

describe("stop", () => {
  test.each(["SIGTERM", "SIGHUP", "SIGINT"] as const)("%s ends an idle service with exit code 0", async (signal) => {
    const service = await startService();
    // A connection that was used and is kept alive must not delay the stop.
    const caller = openPublic(service);
    await caller.call(listSessions);
    service.kill(signal);
    expect(await service.exited).toEqual({ code: 0, signal: null });
  });

  test("a service that waits for its Redis stops as well", async () => {
    const env = { DATA_DIR: withKeys(), REDIS_URL: "redis://127.0.0.1:1", PORT: "0", ADMIN_PORT: "0" };
    const waiting = spawnService(env);
    await waitFor(waiting, () => waiting.stderr().includes("waiting for the store") || undefined);
    waiting.kill("SIGTERM");
    expect(await waiting.exited).toEqual({ code: 0, signal: null });
    expect(waiting.stdout()).toBe("");
  });

  test("a request in flight is completed, with watchers open on every protocol", async () => {
    const service = await startService();
    const user = await logIn(service);
    const watches = RPC_PROTOCOLS.map((kind) => {
      const caller = kind.open(service.adminUrl);
      const stream = caller.stream(admin.watchRevocations, {}, bearer(service.adminToken));
      return { caller, batches: stream[Symbol.asyncIterator]() };
    });
    await Promise.all(watches.map(({ batches }) => batches.next()));
    const head = `POST /v1/auth/refresh HTTP/1.1\r\nHost: x\r\nCookie: refresh_token=${user.refreshToken}\r\n`;
    const { socket, received } = await connected(service.publicUrl, `${head}Content-Length: 2\r\n\r\n{`);
    // The service has responded to a later request, so it has received the head of the incomplete one.
    await request(service.publicUrl, { path: "/healthz" });
    service.kill("SIGTERM");
    for (const { batches } of watches) {
      const ended = await (async () => {
        while (!(await batches.next()).done);
      })().catch((error: unknown) => ConnectError.from(error).code);
      expect(ended).toBe(Code.Unavailable);
    }
    socket.write("}");
    expect(await received()).toMatch(/^HTTP\/1\.1 200 OK\r\n/);
    expect(await service.exited).toEqual({ code: 0, signal: null });
    for (const { caller } of watches) caller.close();
  });

  test("what does not finish in time is cut", async () => {
    const service = await startService({ SHUTDOWN_TIMEOUT: "50ms" });
    const { received } = await connected(
      service.publicUrl,
      "POST /v1/auth/refresh HTTP/1.1\r\nHost: x\r\nContent-Length: 2\r\n\r\n{",
    );
    await request(service.publicUrl, { path: "/healthz" });
    expect(await service.stop()).toEqual({ code: 0, signal: null });
    expect(await received()).not.toMatch(/200 OK/);
  });
});

describe("what outlives the process", () => {
  test.each(["SIGTERM", "SIGKILL"] as const)("sessions, logouts and keys outlive a %s", async (signal) => {
    const before = await startService();
    const [user, gone] = [await logIn(before), await logIn(before)];
    const refreshed = await openPublic(before).call(refresh, {}, cookie(user.refreshToken));
    const { accessToken } = message(refreshed).data ?? { accessToken: "" };
    message(await openPublic(before).call(logout, {}, bearer(gone.accessToken)));
    await (signal === "SIGTERM" ? before.stop() : before.kill9());

    const after = await before.restart();
    expect(after.adminToken).toBe(before.adminToken);
    const listener = openPublic(after);
    const again = await listener.call(refresh, {}, cookie(successor(refreshed) ?? ""));
    message(again);
    // The issuer contains the port of the service, which has changed. Access tokens from before the restart are therefore invalid, and are
    // not tested.
    const live = message(
      await openAdmin(after).call(admin.getSession, { sessionId: user.sid }, bearer(after.adminToken)),
    );
    expect(live.session?.subject).toBe(user.subject);
    expect(accessToken).not.toBe("");
    expect(await listener.call(refresh, {}, cookie(gone.refreshToken))).toMatchObject({ code: "E001_AUTH_FAILURE" });
    await after.stop();
  });

  test("an access token outlives a restart under a fixed issuer, and so does its logout", async () => {
    const before = await startService({
      ISSUER: "https://auth.example.com",
      DATA_DIR: join(scratch(), "deep", "data"),
    });
    const [user, gone] = [await logIn(before), await logIn(before)];
    message(await openPublic(before).call(logout, {}, bearer(gone.accessToken)));
    await before.kill9();
    const after = await before.restart();
    const listener = openPublic(after);
    message(await listener.call(listSessions, {}, bearer(user.accessToken)));
    expect(await listener.call(listSessions, {}, bearer(gone.accessToken))).toMatchObject({
      code: "E001_AUTH_FAILURE",
    });
    await after.stop();
  });
});

test("the service survives the end of the process that reads its standard output", async () => {
  const { child, ready } = await startUnread();
  expect((await request(ready.public, { path: "/readyz" })).status).toBe(200);
  child.kill("SIGINT");
  expect(await once(child, "exit")).toEqual([0, null]);
});

/** Starts the service with its output to a pipe whose reader exits before it has read anything, as in `npm start | true`. */
async function startUnread() {
  const holder = createServer().listen(0, "127.0.0.1");
  await once(holder, "listening");
  const { port } = holder.address() as AddressInfo;
  holder.close();
  const ready = { public: `http://127.0.0.1:${port}` };
  const child = spawn(process.execPath, [PROGRAM], {
    cwd: join(import.meta.dirname, "../../.."),
    env: {
      ...{ PATH: process.env.PATH, ...compiled(), DATA_DIR: join(scratch(), "data") },
      ...{ PORT: String(port), ADMIN_PORT: "0" },
    },
    stdio: ["ignore", "pipe", "ignore"],
  });
  child.stdout.destroy();
  await until(async () =>
    expect(
      await request(ready.public, { path: "/readyz" }).then(
        (response) => response.status,
        () => 0,
      ),
    ).toBe(200),
  );
  // From now on nobody reads the output.
  return { child, ready };
}
