/** Signals that stop the service: repeated, and through a parent process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch, startService } from "../support/service.ts";

const ROOT = join(import.meta.dirname, "../..");

test("a second signal does not cut what is in flight", async () => {
  const service = await startService();
  const { hostname, port } = new URL(service.publicUrl);
  const socket = connect(Number(port), hostname);
  // The response waits for the rest of the body, which is sent after the signals.
  socket.write("POST /v1/auth/refresh HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n{");
  await once(socket, "data"); // 100 Continue: the request has been taken up
  service.kill("SIGTERM");
  await expect.poll(() => service.stderr()).toContain("stopping");
  service.kill("SIGTERM");
  service.kill("SIGINT");
  socket.write("}");
  const [response] = await once(socket, "data");
  expect(String(response)).toMatch(/^HTTP\/1.1 401 /);
  socket.destroy();
  expect(await service.exited).toEqual({ code: 0, signal: null });
});

test("a connection that has sent nothing does not delay the end", async () => {
  const service = await startService({ SHUTDOWN_TIMEOUT: "60s" });
  const { hostname, port } = new URL(service.publicUrl);
  const socket = connect(Number(port), hostname);
  socket.on("error", () => {});
  await once(socket, "connect");
  expect(await service.stop()).toEqual({ code: 0, signal: null });
});

test("a signal to `npm start` reaches the service", async () => {
  const npm = spawn("npm", ["start"], {
    cwd: ROOT,
    env: { PATH: process.env.PATH, HOME: process.env.HOME, PORT: "0", ADMIN_PORT: "0", DATA_DIR: join(scratch(), "d") },
    stdio: ["ignore", "pipe", "ignore"],
  });
  let out = "";
  npm.stdout.setEncoding("utf8").on("data", (chunk: string) => {
    out += chunk;
  });
  await expect.poll(() => out).toContain('"event":"ready"');
  const { public: url } = JSON.parse(/^\{.*\}$/m.exec(out)?.[0] ?? "{}");
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  npm.kill("SIGTERM");
  await once(npm, "close"); // its standard output, which the service shares, is closed: the service is gone too
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});
