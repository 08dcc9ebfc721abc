/**
 * Compares the browser kit with auth0-spa-js and @supabase/auth-js in Chromium: wrong logouts, hangs, requests, size.
 *
 *     npm run bench:browser [-- --minutes 15 --no-scenarios]
 *
 * It takes 25 minutes by default. The libraries refresh a fixed time of up to 90 s before expiry, so only tokens of the usual 5 minutes,
 * in real time, give realistic counts.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Browser, type BrowserContext, chromium, type Page } from "playwright-core";
import { until } from "../../support/until.ts";
import { machine } from "../machine.ts";

if (!existsSync(join(import.meta.dirname, "node_modules"))) {
  const options = { cwd: import.meta.dirname, stdio: "inherit" } as const;
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], options);
}
const { LIBRARIES, startStandIn } = await import("./stand-in.ts");
type Library = (typeof LIBRARIES)[number];
type StandIn = Awaited<ReturnType<typeof startStandIn>>;

const { values } = parseArgs({
  options: { minutes: { type: "string", default: "15" }, "no-scenarios": { type: "boolean", default: false } },
});
const MINUTES = Number(values.minutes);
const TABS = 20;
/** The interval at which each tab calls its API, as many applications do. */
const ASK_EVERY_MS = 10_000;
const TOKEN_LIFE_S = 300;
/** The life of a token in the scenarios is so short that each call finds it expired, or nearly so. */
const SHORT_LIFE_S = 3;
/** How long a simulated fault of the network or the service lasts, in ms. */
const FAULT_MS = 8_000;
/** A page that has no token this long after the fault, or a call that takes this long, counts as "no token". */
const HANG_MS = 60_000;
const YEAR_MS = 365 * 86_400_000;

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms));

async function openPage(context: BrowserContext, standIn: StandIn, library: Library): Promise<Page> {
  const page = await context.newPage();
  await page.goto(`${standIn.url}/${library}`);
  await page.waitForFunction("globalThis.ready");
  return page;
}

async function signIn(browser: Browser, standIn: StandIn, library: Library) {
  const context = await browser.newContext();
  const page = await openPage(context, standIn, library);
  // In some libraries signing in navigates to another page, which ends the script, so its result is not awaited.
  await page.evaluate("void signIn()");
  await until(async () => {
    if ((await page.evaluate("ask()")) !== "token") throw new Error("not yet");
  });
  return { context, page };
}

type Result = "token" | "signed out" | "unavailable" | "no token";

const ask = (page: Page): Promise<Result> =>
  Promise.race([
    page.evaluate<Result>("ask()").catch(() => "unavailable" as const),
    sleep(HANG_MS).then(() => "no token" as const),
  ]);

/** Asks for a token repeatedly until there is one, or the user is logged out. */
async function settle(page: Page): Promise<Result> {
  const endMs = performance.now() + HANG_MS;
  while (performance.now() < endMs) {
    const result = await ask(page);
    if (result !== "unavailable") return result;
    await sleep(500);
  }
  return "no token";
}

type Scenario = (standIn: StandIn, context: BrowserContext, page: Page, library: Library) => Promise<Result>;

const network =
  (fault: StandIn["fault"]): Scenario =>
  async (standIn, _, page) => {
    standIn.fault = fault;
    const endMs = performance.now() + FAULT_MS;
    let result: Result = "token";
    while (performance.now() < endMs && result !== "signed out") {
      result = await ask(page);
      await sleep(500);
    }
    standIn.fault = "up";
    return result === "signed out" ? result : await settle(page);
  };

const stepClock = (page: Page, ms: number) =>
  page.evaluate(`void (Date.now = ((now) => () => now() + ${ms})(Date.now))`);

const clock =
  (stepMs: number): Scenario =>
  async (_, __, page) => {
    await stepClock(page, stepMs);
    return settle(page);
  };

/**
 * Returns a scenario in which a tab begins a refresh whose request is held back. The function `happens` then disturbs that tab. After that
 * the request continues, and the result is what another tab gets that opens now.
 */
const holder =
  (happens: (context: BrowserContext, page: Page) => Promise<unknown>): Scenario =>
  async (standIn, context, page, library) => {
    const before = standIn.refreshes[library];
    standIn.fault = "held";
    await sleep(SHORT_LIFE_S * 1000);
    void page.evaluate("ask()").catch(() => {});
    await until(async () => {
      if (standIn.refreshes[library] === before) throw new Error("not yet");
    });
    await happens(context, page);
    standIn.fault = "up";
    return settle(await openPage(context, standIn, library));
  };

const SCENARIOS: Record<string, Scenario> = {
  "connections cut": network("cut"),
  "responses lost": network("lost"),
  "captive portal (HTML)": network("html"),
  "500 from the service": network("error"),
  "clock a year ahead": clock(YEAR_MS),
  "clock a year behind": clock(-YEAR_MS),
  "tab killed in mid-refresh": holder((_, page) => page.close()),
  "tab frozen in mid-refresh": holder(async (context, page) =>
    (await context.newCDPSession(page)).send("Page.setWebLifecycleState", { state: "frozen" }),
  ),
};

async function runScenarios(browser: Browser): Promise<Record<string, Record<Library, Result>>> {
  const standIn = await startStandIn(SHORT_LIFE_S);
  const rows: Record<string, Record<Library, Result>> = {};
  for (const [name, scenario] of Object.entries(SCENARIOS)) {
    rows[name] = {} as Record<Library, Result>;
    for (const library of LIBRARIES) {
      const { context, page } = await signIn(browser, standIn, library);
      rows[name][library] = await scenario(standIn, context, page, library);
      standIn.fault = "up";
      await context.close();
    }
  }
  await standIn.stop();
  return rows;
}

/** Counts the refresh requests of 20 calls in one tab whose clock is a year ahead. */
async function countWithWrongClock(browser: Browser): Promise<Record<Library, number>> {
  const standIn = await startStandIn(TOKEN_LIFE_S);
  for (const library of LIBRARIES) {
    const { context, page } = await signIn(browser, standIn, library);
    standIn.refreshes[library] = 0;
    await stepClock(page, YEAR_MS);
    for (let call = 0; call < 20; call++) await ask(page);
    await context.close();
  }
  await standIn.stop();
  return standIn.refreshes;
}

/** Counts the refresh requests of 20 tabs, as a number and per hour. Requests while tabs open do not count. */
async function countRequests(browser: Browser): Promise<Record<Library, string>> {
  const standIn = await startStandIn(TOKEN_LIFE_S);
  const contexts = await Promise.all(
    LIBRARIES.map(async (library) => {
      const { context, page } = await signIn(browser, standIn, library);
      const pages = [page];
      while (pages.length < TABS) pages.push(await openPage(context, standIn, library));
      const asking = `void setInterval(() => ask(), ${ASK_EVERY_MS})`;
      for (const one of pages) await one.evaluate(asking);
      return context;
    }),
  );
  const before = { ...standIn.refreshes };
  await sleep(MINUTES * 60_000);
  const counted = (library: Library) => standIn.refreshes[library] - before[library];
  const cell = (library: Library) => `${counted(library)} (${Math.round((counted(library) * 60) / MINUTES)})`;
  const cells = { kit: cell("kit"), auth0: cell("auth0"), supabase: cell("supabase") };
  for (const context of contexts) await context.close();
  await standIn.stop();
  return cells;
}

function print(heading: string, cells: Readonly<Record<Library, unknown>>): void {
  console.log(`| ${heading} | ${LIBRARIES.map((library) => cells[library]).join(" | ")} |`);
}

const browser = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox", "--disable-gpu"] });
const sizes = await startStandIn(TOKEN_LIFE_S);
console.log("| | this kit | auth0-spa-js 2.27.0 | @supabase/auth-js 2.119.1 |\n|---|---|---|---|");
const kB = (library: Library) => (sizes.bytes[library] / 1000).toFixed(1);
print(
  "kB, minified and gzipped",
  Object.fromEntries(LIBRARIES.map((one) => [one, kB(one)])) as Record<Library, string>,
);
await sizes.stop();
if (!values["no-scenarios"]) {
  const results = await runScenarios(browser);
  for (const [name, row] of Object.entries(results)) print(name, row);
  for (const outcome of ["signed out", "no token"] as const) {
    const count = (library: Library) => Object.values(results).filter((row) => row[library] === outcome).length;
    const counts = { kit: count("kit"), auth0: count("auth0"), supabase: count("supabase") };
    print(`${outcome}, of ${Object.keys(results).length}`, counts);
  }
  print("refreshes of 20 calls, clock a year ahead", await countWithWrongClock(browser));
}
if (MINUTES > 0) print(`refreshes of ${TABS} tabs in ${MINUTES} min (per hour)`, await countRequests(browser));
await browser.close();
console.log(`\n${machine()}`);
process.exit(0);
