/** WebKitGTK, controlled by plain WebDriver (W3C). */
import { spawn } from "node:child_process";
import { globSync } from "node:fs";
import { freePort } from "../../support/free-port.ts";
import { scratch } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import type { Engine, Tab } from "./driver.ts";

/**
 * How long to wait for a new session, in ms. WebKitWebDriver sometimes never replies; otherwise even a busy machine needs a third of
 * this.
 */
const SESSION_LIMIT_MS = 90_000;

type Driver = {
  call(method: string, path: string, body?: unknown, signal?: AbortSignal): Promise<unknown>;
  stop(): Promise<void>;
};

async function startDriver(): Promise<Driver> {
  const port = await freePort();
  const directory = scratch();
  const driver = spawn("xvfb-run", ["-a", "WebKitWebDriver", "--host=127.0.0.1", `--port=${port}`], {
    env: {
      PATH: process.env.PATH,
      HOME: directory,
      TMPDIR: directory,
      XDG_RUNTIME_DIR: directory,
      LIBGL_ALWAYS_SOFTWARE: "1",
    },
    stdio: "ignore",
    // The browser gets a separate process group, because xvfb-run leaves the X server behind if only xvfb-run is killed.
    detached: true,
  });
  const exited = new Promise((resolve) => driver.once("exit", resolve));
  const call: Driver["call"] = async (method, path, body, signal) => {
    const response = await fetch(`http://127.0.0.1:${port}${path}`, {
      method,
      ...(body !== undefined && { body: JSON.stringify(body) }),
      ...(signal !== undefined && { signal }),
    });
    const { value } = (await response.json()) as { value: unknown };
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(value)}`);
    return value;
  };
  await until(() => call("GET", "/status"));
  return {
    call,
    async stop() {
      if (driver.pid !== undefined) process.kill(-driver.pid, "SIGTERM");
      await exited;
    },
  };
}

/** WebKitGTK has no own store for authorities, so the certificate is not checked. */
async function openSession({ call }: Driver): Promise<string> {
  const [binary] = globSync("/usr/lib/*/webkit2gtk-4.1/MiniBrowser");
  const browserOptions = { binary, args: ["--automation"] };
  const alwaysMatch = { acceptInsecureCerts: true, "webkitgtk:browserOptions": browserOptions };
  const limit = AbortSignal.timeout(SESSION_LIMIT_MS);
  const { sessionId } = (await call("POST", "/session", { capabilities: { alwaysMatch } }, limit)) as {
    sessionId: string;
  };
  return `/session/${sessionId}`;
}

/** Starts WebKitGTK. If the driver creates no session, it is replaced once. */
export async function startWebKit(): Promise<Engine> {
  let driver = await startDriver();
  const start = async () => {
    try {
      return await openSession(driver);
    } catch {
      await driver.stop();
      driver = await startDriver();
      return await openSession(driver);
    }
  };
  // Each session is a browser, so the next one is only started when it is needed.
  let session: Promise<string> | undefined = start();
  await session;
  // Only one window can have the focus, so the commands to all windows wait for each other.
  let queue: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(step: () => Promise<T>): Promise<T> => {
    const result = queue.then(step);
    queue = result.catch(() => {});
    return result;
  };
  async function endSession(): Promise<void> {
    const ended = await session;
    session = undefined;
    if (ended === undefined) return;
    await driver.call("DELETE", ended, undefined, AbortSignal.timeout(SESSION_LIMIT_MS)).catch(() => {});
  }
  return {
    open: async (url) => {
      session ??= start();
      const own = await session;
      const handle = await inTurn(async () => {
        const { handle } = (await driver.call("POST", `${own}/window/new`, { type: "tab" })) as { handle: string };
        return handle;
      });
      const command = <T>(method: string, path: string, body?: unknown) =>
        inTurn(async () => {
          await driver.call("POST", `${own}/window`, { handle });
          return (await driver.call(method, own + path, body)) as T;
        });
      const tab: Tab = {
        goto: (next) => command("POST", "/url", { url: next }),
        back: () => command("POST", "/back", {}),
        evaluate: (expression) => command("POST", "/execute/sync", { script: `return (${expression})`, args: [] }),
        close: () => command("DELETE", "/window"),
      };
      await tab.goto(url);
      return tab;
    },
    reset: endSession,
    async close() {
      await endSession();
      await driver.stop();
    },
  };
}
