/**
 * Compares the server kit with @supabase/ssr and next-auth: wrong logouts, needless logins in an outage, ended sessions that a late
 * response brings back.
 *
 *     npm run bench:pages [-- --seconds 150 --outage 60]
 *
 * The browser is a jar of cookies whose tabs navigate in real time. Its responses are late, lost and out of order, as in
 * test/server/navigations.ts. All libraries run at the same time, each with its own servers.
 */
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { parseArgs } from "node:util";
import { machine } from "../machine.ts";
import type { Jar } from "./jar.ts";
import type { Library, Rendered } from "./libraries.ts";

if (!existsSync(join(import.meta.dirname, "node_modules"))) {
  const options = { cwd: import.meta.dirname, stdio: "inherit" } as const;
  execFileSync("npm", ["ci", "--ignore-scripts", "--no-audit", "--no-fund"], options);
}
const { openKit, openNextAuth, openSupabase, REUSE_INTERVAL_MS, USE_S } = await import("./libraries.ts");

const { values } = parseArgs({
  options: { seconds: { type: "string", default: "150" }, outage: { type: "string", default: "60" } },
});
const [BROWSE_MS, OUTAGE_MS] = [Number(values.seconds) * 1000, Number(values.outage) * 1000];
const TABS = 20;
const USERS = 20;
/** How much later than the response to the logout a late response arrives, in ms. */
const LATE_MS = 1_000;

type Count = Record<Rendered["state"], number> & { times: number[] };
const nothing = (): Count => ({ active: 0, ended: 0, unavailable: 0, times: [] });

/** Returns a random delay for a response, in ms, or undefined for a lost response. Most responses are prompt, few are very late or lost. */
function trouble(): number | undefined {
  const kind = Math.random();
  if (kind < 0.05) return undefined;
  if (kind < 0.1) return Math.random() * (REUSE_INTERVAL_MS / 2);
  return kind < 0.3 ? Math.random() * 500 : 0;
}

async function navigate(library: Library, jar: Jar, count: Count, delayMs: number | undefined): Promise<Rendered> {
  const startedAt = performance.now();
  const page = await library.render(jar.request());
  count.times.push(performance.now() - startedAt);
  count[page.state]++;
  if (delayMs) await sleep(delayMs);
  if (delayMs !== undefined) jar.take(page.setCookies);
  return page;
}

/**
 * Navigates in all tabs until the time is over. If a page leads to the login, all tabs stop, and one more navigation shows whether the user
 * has really been logged out.
 */
async function browse(library: Library) {
  const count = nothing();
  const before = library.rotations();
  const endMs = performance.now() + BROWSE_MS;
  let [logouts, navigations] = [0, 0];
  while (performance.now() < endMs) {
    const jar = await library.signIn();
    let isSuspect = false;
    const inTab = async () => {
      while (!isSuspect && performance.now() < endMs) {
        await sleep(Math.random() * 1_000);
        navigations++;
        if ((await navigate(library, jar, count, trouble())).state === "ended") isSuspect = true;
      }
    };
    while (performance.now() < endMs) {
      isSuspect = false;
      await Promise.all(Array.from({ length: TABS }, inTab));
      if (isSuspect && (await navigate(library, jar, nothing(), 0)).state === "ended") {
        logouts++;
        break;
      }
    }
  }
  return { navigations, atLogin: count.ended, logouts, rotations: library.rotations() - before };
}

/** Counts the results of navigations while the library's store is down and the access token has expired. */
async function outage(library: Library) {
  const jar = await library.signIn();
  await sleep((library.lifeS + 1) * 1000);
  library.setDown(true);
  const count = nothing();
  const endMs = performance.now() + OUTAGE_MS;
  const inTab = async () => {
    while (performance.now() < endMs) {
      await navigate(library, jar, count, 0);
      await sleep(1_000);
    }
  };
  await Promise.all(Array.from({ length: TABS }, inTab));
  library.setDown(false);
  const after = await navigate(library, jar, nothing(), 0);
  const sorted = count.times.toSorted((one, other) => one - other);
  return { ...count, times: undefined, p50Ms: sorted[Math.floor(sorted.length / 2)], after: after.state };
}

/**
 * Tests whether a late response brings an ended session back: a page begins a renewal, another tab signs out, and only then does the
 * response to the renewal arrive.
 */
async function lateAfterLogout(library: Library) {
  const rounds = await Promise.all(
    Array.from({ length: USERS }, async () => {
      const jar = await library.signIn();
      await sleep(USE_S * 1000);
      const late = await library.render(jar.request());
      jar.take(await library.signOut(jar.request()));
      const next = await navigate(library, jar, nothing(), 0);
      await sleep(LATE_MS);
      jar.take(late.setCookies);
      const back = await navigate(library, jar, nothing(), 0);
      await sleep(2 * USE_S * 1000);
      return [next.state, back.state, (await navigate(library, jar, nothing(), 0)).state];
    }),
  );
  const activeAt = (index: number) => rounds.filter((states) => states[index] === "active").length;
  return { afterLogout: activeAt(0), afterLateResponse: activeAt(1), halfAMinuteLater: activeAt(2) };
}

async function compare(open: () => Promise<Library>): Promise<string> {
  const library = await open();
  const { navigations, atLogin, logouts, rotations } = await browse(library);
  const down = await outage(library);
  const late = await lateAfterLogout(library);
  await library.stop();
  const downAll = down.active + down.ended + down.unavailable;
  const cells = [
    library.name,
    navigations,
    logouts,
    atLogin,
    `${rotations} in ${BROWSE_MS / 1000} s`,
    `${down.ended} of ${downAll}`,
    `${down.unavailable} of ${downAll}`,
    `${Math.round(down.p50Ms ?? 0)} ms`,
    down.after,
    `${late.afterLogout}, ${late.afterLateResponse}, ${late.halfAMinuteLater} of ${USERS}`,
  ];
  return `| ${cells.join(" | ")} |`;
}

const HEADINGS = [
  "",
  "navigations",
  "wrong logouts",
  "pages that lead to the login",
  "rotations",
  "outage: to the login",
  "as unavailable",
  "p50 of a page",
  "after it",
  "signed in after a logout: at once, after a late response, 30 s later",
];
console.log(`| ${HEADINGS.join(" | ")} |\n|${"---|".repeat(HEADINGS.length)}`);
const libraries = [openKit, openSupabase, () => openNextAuth(REUSE_INTERVAL_MS), () => openNextAuth(0)];
for (const row of await Promise.all(libraries.map(compare))) console.log(row);
console.log(`\n${machine()}`);
process.exit(0);
