/** Signals that stop the service, sent repeatedly and through a parent process. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { connect } from "node:net";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { createStop } from "../../../src/service/composition/stop.ts";
import { scratch, startService } from "../../support/service.ts";
import { cookie, logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";

const ROOT = join(import.meta.dirname, "../../..");

test("a second signal does not cut what is in flight", async () => {
  const service = await startService();
  const user = await logIn(service);
  const { hostname, port } = new URL(service.publicUrl);
  const socket = connect(Number(port), hostname);
  // The request is incomplete, so the service waits for its last byte, which is sent after the signals.
  const head = `POST /v1/auth/refresh HTTP/1.1\r\nHost: a\r\nCookie: ${cookie(user.refreshToken).cookie}\r\n`;
  socket.write(`${head}Expect: 100-continue\r\nContent-Length: 2\r\n\r\n{`);
  await once(socket, "data"); // The response `100 Continue` shows that the service is handling the request.
  service.kill("SIGTERM");
  await until(async () => expect(service.stderr()).toContain("stopping"));
  service.kill("SIGTERM");
  service.kill("SIGINT");
  socket.write("}");
  const [response] = await once(socket, "data");
  expect(String(response)).toMatch(/^HTTP\/1.1 200 /);
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
  await until(async () => expect(out).toContain('"event":"ready"'));
  const { public: url } = JSON.parse(/^\{.*\}$/m.exec(out)?.[0] ?? "{}");
  expect((await fetch(`${url}/healthz`)).status).toBe(200);
  npm.kill("SIGTERM");
  await once(npm, "close"); // npm and the service share the standard output, so its end shows that both have ended.
  await expect(fetch(`${url}/healthz`)).rejects.toThrow();
});

describe("the order of a stop", () => {
  /** Returns a simulated service with two listeners, which records the calls of its steps. Each step lasts until the test calls `end`. */
  function service(drainDelayMs: number) {
    const steps: string[] = [];
    const open: (() => void)[] = [];
    const step = (name: string) => {
      steps.push(name);
      return new Promise<void>((resolve) => open.push(resolve));
    };
    const listener = (name: string) => ({
      close: (timeoutMs: number, lingerMs = 0) => step(`close ${name} ${timeoutMs} ${lingerMs}`),
    });
    const stop = createStop(
      { drainDelayMs, shutdownTimeoutMs: 5_000 },
      {
        listeners: [listener("public"), listener("admin")],
        onDrain: () => void steps.push("drain"),
        onDrained: () => step("drained"),
        onClosed: () => step("closed"),
      },
    );
    /** Ends `count` steps, the oldest first. Returns the names of the steps that have begun since the last call. */
    const end = async (count: number) => {
      await until(async () => expect(open.length).toBeGreaterThanOrEqual(count));
      for (const resolve of open.splice(0, count)) resolve();
      await new Promise((resolve) => setImmediate(resolve));
      return steps.splice(0);
    };
    return { stop, steps, end };
  }

  test("each step waits for the one before, and the connections are given the delay once more", async () => {
    const { stop, end } = service(1);
    const stopped = stop("drain");
    expect(stop("drain")).toBe(stopped);
    expect(await end(1)).toEqual(["drain", "drained", "close public 5000 1", "close admin 5000 1"]);
    expect(await end(1)).toEqual([]);
    expect(await end(1)).toEqual(["closed"]);
    await end(1);
    await stopped;
  });

  test("at once there is no delay", async () => {
    const { stop, end } = service(2 ** 30);
    const stopped = stop("now");
    expect(await end(1)).toEqual(["drain", "drained", "close public 5000 0", "close admin 5000 0"]);
    expect(await end(2)).toEqual(["closed"]);
    await end(1);
    await stopped;
  });

  test("a second order ends the delay, and does not drain again", async () => {
    const { stop, steps, end } = service(2 ** 30);
    const stopped = stop("drain");
    await new Promise((resolve) => setImmediate(resolve));
    expect(steps).toEqual(["drain"]);
    expect(stop("now")).toBe(stopped);
    expect(await end(1)).toEqual(["drain", "drained", "close public 5000 0", "close admin 5000 0"]);
    await end(2);
    await end(1);
    await stopped;
  });

  test("a second order closes the connections that are given time", async () => {
    const { stop, end } = service(1);
    const stopped = stop("drain");
    await end(1);
    void stop("now");
    expect(await end(2)).toEqual(["close public 5000 0", "close admin 5000 0", "closed"]);
    await end(2);
    await end(1);
    await stopped;
  });
});
