/** Browser engines behind one interface, each driven by its own protocol. Firefox and WebKitGTK have separate files. */
import { execFileSync } from "node:child_process";
import { mkdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { type BrowserContext, type CDPSession, chromium } from "playwright-core";
import { patient } from "../../support/browser-context.ts";
import { scratch } from "../../support/service.ts";

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

/** Closes all tabs and removes what sites have stored. It does that without a new start of the browser, which takes seconds of CPU time. */
async function empty(context: BrowserContext): Promise<void> {
  // The browser ends with its last tab.
  const blank = await context.newPage();
  for (const page of context.pages()) if (page !== blank) await page.close();
  const devtools = await context.newCDPSession(blank);
  await devtools.send("Storage.clearDataForOrigin", { origin: "*", storageTypes: "all" });
  await context.clearCookies();
}

/** @param profile `private`: tabs are in a private window, whose cookie rules are stricter */
export async function startChromium(
  authority: string,
  profile: "ordinary" | "private" = "private",
): Promise<ChromiumEngine> {
  const home = scratch();
  trustStore(join(home, ".pki/nssdb"), authority);
  const env = { PATH: process.env.PATH ?? "", HOME: home };
  // Without this argument, which Playwright would add, Chromium uses its back/forward cache as Chrome does.
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
      if (browser === undefined) return empty(context);
      await context.close();
      context = await newContext();
    },
    async close() {
      await context.close();
      await browser?.close();
    },
  };
}
