/**
 * Navigations in many tabs of one browser with short tokens, behind a proxy that delays responses up to half of the reuse interval,
 * reorders and loses them; then the store is down, and at last the user signs out. `npm run proof:pages` makes a thousand navigations in
 * twenty tabs, and an outage of a minute.
 */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import type { Browser, BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openContext } from "../support/browser-context.ts";
import { type Dice, dice, SEED } from "../support/dice.ts";
import { startRedis } from "../support/redis.ts";
import { type Service, scratch, startService, withKeys } from "../support/service.ts";
import { until } from "../support/until.ts";
import { type Built, startApplication } from "./application.ts";
import { startRelay } from "./relay.ts";
import { COOKIES } from "./world.ts";

const IS_LONG = process.env.PROOF === "long";
const [TABS, NAVIGATIONS, OUTAGE_MS] = IS_LONG ? [20, 1_000, 60_000] : [5, 60, 0];
/** The life of access tokens. The kit renews them 10 s before their expiry, so the short form rotates every two seconds. */
const TOKEN_TTL = IS_LONG ? "15s" : "12s";
/** How many tokens must expire while the tabs navigate, however fast the machine is. */
const ROTATIONS = 3;
const REUSE_INTERVAL_MS = 10_000;
const SETUP_TIMEOUT_MS = 300_000;
const TEST_TIMEOUT_MS = 1_200_000;

/** Most responses are prompt, some are late, few are very late or lost. */
function trouble(random: Dice): number | undefined {
  const kind = random.next();
  if (kind < 0.05) return undefined;
  if (kind < 0.1) return random.next() * (REUSE_INTERVAL_MS / 2);
  return kind < 0.3 ? random.next() * 500 : 0;
}

/** How many navigations had each result. */
type Seen = { active: number; unavailable: number; lost: number; other: string[]; hydration: string[] };

const nothingSeen = (): Seen => ({ active: 0, unavailable: 0, lost: 0, other: [], hydration: [] });

/** A production build of React reports errors by these numbers instead of texts. */
const isOfHydration = (text: string) => /hydrat|react\.dev\/errors\/4(18|19|2\d)/i.test(text);

async function openTab(context: BrowserContext, seen: Seen): Promise<Page> {
  const tab = await context.newPage();
  const note = (text: string) => isOfHydration(text) && seen.hydration.push(text);
  tab.on("pageerror", (error) => note(String(error)));
  tab.on("console", (entry) => note(entry.text()));
  return tab;
}

/** @param waitUntil `load` also waits until the scripts of the page have run */
async function navigate(tab: Page, url: string, seen: Seen, waitUntil: "commit" | "load"): Promise<void> {
  const response = await tab.goto(url, { waitUntil }).catch(() => null);
  const html = await response?.text().catch(() => undefined);
  if (html === undefined) seen.lost++;
  else if (html.includes("Account of")) seen.active++;
  else if (html.includes('id="state">unavailable<')) seen.unavailable++;
  else seen.other.push(`${response?.status()} ${tab.url()}`);
}

/** Signs in, in a new tab. */
async function signIn(context: BrowserContext, url: string): Promise<Page> {
  const tab = await context.newPage();
  await tab.goto(url);
  await tab.getByLabel("Email").fill("alice@example.com");
  await tab.getByLabel("Password").fill("correct horse");
  await tab.getByRole("button", { name: "Sign in" }).click();
  await tab.getByRole("heading", { name: "Account of alice" }).waitFor();
  return tab;
}

/** @param parts the built application, and a browser */
export function navigations(parts: () => { readonly built: Built; readonly browser: Browser }): void {
  describe("navigations in many tabs", () => {
    let redis: Awaited<ReturnType<typeof startRedis>>;
    let service: Service;
    let behind: Awaited<ReturnType<typeof startRelay>>;
    let front: Awaited<ReturnType<typeof startRelay>>;
    let application: Awaited<ReturnType<typeof startApplication>>;

    beforeAll(async () => {
      redis = await startRedis();
      service = await startService({
        ...COOKIES,
        DATA_DIR: withKeys(),
        REDIS_URL: redis.url,
        ADMIN_TOKENS: "a".repeat(40),
        COOKIE_SECURE: "false",
        ACCESS_TOKEN_TTL: TOKEN_TTL,
        ISSUER: "https://auth.example",
      });
      behind = await startRelay(service.publicUrl);
      const tokenFile = join(scratch(), "admin-token");
      writeFileSync(tokenFile, service.adminToken);
      application = await startApplication(parts().built, {
        SESSION_SERVICE_URL: behind.url,
        SESSION_ADMIN_URL: service.adminUrl,
        SESSION_ADMIN_TOKEN_FILE: tokenFile,
        ISSUER: "https://auth.example",
      });
      front = await startRelay(application.url);
    }, SETUP_TIMEOUT_MS);
    afterAll(async () => {
      redis?.resume();
      await application?.program.stop();
      front?.close();
      behind?.close();
      await service?.stop();
      await redis?.stop();
    });

    /** Navigates in all tabs until `goesOn`, which receives the number of navigations, returns false. */
    async function browse(tabs: readonly Page[], seen: Seen, goesOn: (done: number) => boolean): Promise<void> {
      let navigations = 0;
      const inTab = async (tab: Page) => {
        while (seen.other.length === 0 && goesOn(navigations++)) {
          await navigate(tab, `${front.url}/account`, seen, navigations % 10 === 0 ? "load" : "commit");
        }
      };
      await Promise.all(tabs.map(inTab));
    }

    test(
      `no navigation ends at the login, the session rotates once in a token's life, and an outage sends nobody away (SEED=${SEED})`,
      async () => {
        const context = await openContext(parts().browser);
        try {
          const account = `${front.url}/account`;
          const first = await signIn(context, account);
          const seen = nothingSeen();
          const tabs = await Promise.all(Array.from({ length: TABS }, () => openTab(context, seen)));

          const startedAt = performance.now();
          behind.tokens.clear();
          const random = dice(SEED);
          front.delayMs = () => trouble(random);
          await browse(tabs, seen, (done) => done < NAVIGATIONS || behind.tokens.size < ROTATIONS);
          const tookMs = performance.now() - startedAt;
          const [rotations, early] = [behind.tokens.size, [...behind.early]];
          front.delayMs = () => 0;

          const down = nothingSeen();
          redis.pause();
          await context.clearCookies({ name: "access_token" });
          const downAt = performance.now();
          // A response from before the outage may have set an access token, which stays valid for some seconds.
          await browse(tabs, down, () => down.unavailable < TABS || performance.now() - downAt < OUTAGE_MS);
          redis.resume();
          await until(async () => {
            await first.goto(account);
            expect(await first.textContent("h1", { timeout: 1_000 })).toBe("Account of alice");
          });

          const after = nothingSeen();
          await first.getByRole("button", { name: "Sign out" }).click();
          await first.waitForURL(`${front.url}/`);
          for (const tab of tabs) await navigate(tab, account, after, "load");
          const atLogin = after.other.filter((page) => page === `200 ${front.url}/login?next=%2Faccount`);

          if (IS_LONG) console.log({ seen, tookMs, rotations, early, down, atLogin: atLogin.length });
          expect([seen.other, seen.unavailable, seen.hydration]).toEqual([[], 0, []]);
          expect(seen.active).toBeGreaterThan(NAVIGATIONS / 2);
          expect(seen.active + seen.lost).toBeGreaterThanOrEqual(NAVIGATIONS);
          // The kit renewed no access token earlier than 10 s before its expiry (`minValidityMs`), so there was at most one rotation in the
          // time that a token was used.
          expect(early).toEqual([]);
          expect([down.other, down.hydration, down.lost]).toEqual([[], [], 0]);
          expect(atLogin).toHaveLength(TABS);
        } finally {
          await context.close();
        }
      },
      TEST_TIMEOUT_MS,
    );
  });
}
