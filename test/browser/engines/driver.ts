/** Three browser engines behind one interface, each as its own protocol drives it. */
import { execFileSync, spawn } from "node:child_process";
import { globSync, mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type CDPSession, chromium } from "playwright-core";
import { patient } from "../../support/browser-context.ts";
import { freePort } from "../../support/free-port.ts";
import { scratch } from "../../support/service.ts";
import { until } from "../../support/until.ts";

export type Tab = {
  goto(url: string): Promise<void>;
  back(): Promise<void>;
  /** Runs an expression in the page, and returns its value; for a promise, the result of the promise. */
  evaluate<T>(expression: string): Promise<T>;
  close(): Promise<void>;
};

export type Engine = {
  open(url: string): Promise<Tab>;
  /** Removes the cookies and closes all tabs. */
  reset(): Promise<void>;
  close(): Promise<void>;
};

export type ChromiumTab = Tab & { readonly devtools: CDPSession };
export type ChromiumEngine = Engine & {
  open(url: string): Promise<ChromiumTab>;
  setOffline(offline: boolean): Promise<void>;
};

export const CHROMIUM_FLAGS = [
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-sync",
  "--disable-background-networking",
  "--disable-component-update",
];

/** Creates a directory with an NSS database that trusts the authority. */
export function trustStore(directory: string, authority: string): string {
  mkdirSync(directory, { recursive: true });
  const file = join(scratch(), "authority.pem");
  writeFileSync(file, authority);
  execFileSync("certutil", ["-d", `sql:${directory}`, "-N", "--empty-password"]);
  execFileSync("certutil", ["-d", `sql:${directory}`, "-A", "-n", "test", "-t", "C,,", "-i", file]);
  return directory;
}

/** Creates a profile that allows third-party cookies as Chrome does by default; Debian's build blocks them. */
function ordinaryProfile(): string {
  const directory = scratch();
  mkdirSync(join(directory, "Default"));
  const profile = { cookie_controls_mode: 0, block_third_party_cookies: false };
  writeFileSync(join(directory, "Default/Preferences"), JSON.stringify({ profile }));
  return directory;
}

/** @param profile `private`: tabs are in a private window, whose cookie rules are stricter */
export async function startChromium(
  authority: string,
  profile: "ordinary" | "private" = "private",
): Promise<ChromiumEngine> {
  const home = scratch();
  trustStore(join(home, ".pki/nssdb"), authority);
  const env = { PATH: process.env.PATH ?? "", HOME: home };
  // The back/forward cache as Chrome has it by default.
  const ignoreDefaultArgs = ["--disable-back-forward-cache"];
  const args = [...CHROMIUM_FLAGS, "--disable-features=DeviceBoundSessions"];
  const options = { executablePath: "/usr/bin/chromium", args, ignoreDefaultArgs, env };
  const browser = profile === "private" ? await chromium.launch(options) : undefined;
  const newContext = async () =>
    patient(await (browser?.newContext() ?? chromium.launchPersistentContext(ordinaryProfile(), options)));
  let context = await newContext();
  return {
    async open(url) {
      const page = await context.newPage();
      await page.goto(url);
      const devtools = await context.newCDPSession(page);
      return {
        devtools,
        goto: async (next) => void (await page.goto(next)),
        back: async () => void (await page.goBack({ waitUntil: "commit" })),
        evaluate: (expression) => page.evaluate(expression),
        close: () => page.close(),
      };
    },
    setOffline: (offline) => context.setOffline(offline),
    async reset() {
      await context.close();
      context = await newContext();
    },
    async close() {
      await context.close();
      await browser?.close();
    },
  };
}

/** Starts WebKitGTK, controlled by plain WebDriver (W3C). It has no own store for authorities, so the certificate is not checked. */
export async function startWebKit(): Promise<Engine> {
  const port = await freePort();
  const directory = scratch();
  const driver = spawn("xvfb-run", ["-a", "WebKitWebDriver", `--port=${port}`], {
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
  const root = `http://127.0.0.1:${port}`;
  const call = async (method: string, path: string, body?: unknown): Promise<unknown> => {
    const response = await fetch(root + path, { method, ...(body !== undefined && { body: JSON.stringify(body) }) });
    const { value } = (await response.json()) as { value: unknown };
    if (!response.ok) throw new Error(`${method} ${path}: ${JSON.stringify(value)}`);
    return value;
  };
  await until(() => call("GET", "/status"));
  const newSession = async () => {
    const [binary] = globSync("/usr/lib/*/webkit2gtk-4.1/MiniBrowser");
    const browserOptions = { binary, args: ["--automation"] };
    const alwaysMatch = { acceptInsecureCerts: true, "webkitgtk:browserOptions": browserOptions };
    const { sessionId } = (await call("POST", "/session", { capabilities: { alwaysMatch } })) as { sessionId: string };
    return `/session/${sessionId}`;
  };
  let session = await newSession();
  // Only one window can have the focus, so commands wait for each other.
  let queue: Promise<unknown> = Promise.resolve();
  const inTurn = <T>(step: () => Promise<T>): Promise<T> => {
    const result = queue.then(step);
    queue = result.catch(() => {});
    return result;
  };
  return {
    open: async (url) => {
      const handle = await inTurn(async () => {
        const { handle } = (await call("POST", `${session}/window/new`, { type: "tab" })) as { handle: string };
        return handle;
      });
      const command = <T>(method: string, path: string, body?: unknown) =>
        inTurn(async () => {
          await call("POST", `${session}/window`, { handle });
          return (await call(method, session + path, body)) as T;
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
    async reset() {
      await call("DELETE", session);
      session = await newSession();
    },
    async close() {
      await call("DELETE", session).catch(() => {});
      if (driver.pid !== undefined) process.kill(-driver.pid, "SIGTERM");
      await exited;
    },
  };
}
