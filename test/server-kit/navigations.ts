/**
 * Navigations in many tabs of one browser with short tokens, behind a proxy that delays responses up to half of the reuse interval,
 * reorders and loses them. `PROOF=long`: a thousand in twenty tabs.
 */
import { join } from "node:path";
import type { Browser } from "playwright-core";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { openContext } from "../support/browser-context.ts";
import { type Service, startService } from "../support/service.ts";
import { type Built, startApplication } from "./application.ts";
import { startRelay } from "./relay.ts";
import { COOKIES } from "./world.ts";

const IS_LONG = process.env.PROOF === "long";
const [TABS, NAVIGATIONS] = IS_LONG ? [20, 1_000] : [5, 60];
/** However fast the machine is, tokens expire while the tabs navigate. */
const ROTATIONS = 3;
const REUSE_INTERVAL_MS = 10_000;
/** Tokens live 12 to 15 s and are renewed when 10 s are left. */
const SHORTEST_USE_MS = 2_000;
const SETUP_TIMEOUT_MS = 300_000;
const TEST_TIMEOUT_MS = 1_200_000;

/** Most responses are prompt, some are late, few are very late or lost. */
function trouble(random: () => number): number | undefined {
  const kind = random();
  if (kind < 0.05) return undefined;
  if (kind < 0.1) return random() * (REUSE_INTERVAL_MS / 2);
  return kind < 0.3 ? random() * 500 : 0;
}

/** @param parts the application, built, and a browser */
export function navigations(parts: () => { readonly built: Built; readonly browser: Browser }): void {
  describe("navigations in many tabs", () => {
    let service: Service;
    let behind: Awaited<ReturnType<typeof startRelay>>;
    let front: Awaited<ReturnType<typeof startRelay>>;
    let application: Awaited<ReturnType<typeof startApplication>>;

    beforeAll(async () => {
      service = await startService({
        ...COOKIES,
        COOKIE_SECURE: "false",
        ACCESS_TOKEN_TTL: "15s",
        ISSUER: "https://auth.example",
      });
      behind = await startRelay(service.publicUrl);
      application = await startApplication(parts().built, {
        SESSION_SERVICE_URL: behind.url,
        SESSION_ADMIN_URL: service.adminUrl,
        SESSION_ADMIN_TOKEN_FILE: join(service.dataDir, "admin-token"),
        ISSUER: "https://auth.example",
      });
      front = await startRelay(application.url);
    }, SETUP_TIMEOUT_MS);
    afterAll(async () => {
      await application?.program.stop();
      front?.close();
      behind?.close();
      await service?.stop();
    });

    test(
      "no navigation ends at the login, and the session rotates once in a token's life",
      async () => {
        const context = await openContext(parts().browser);
        try {
          const first = await context.newPage();
          await first.goto(`${front.url}/account`);
          expect(new URL(first.url()).origin).toBe(front.url);
          await first.getByLabel("Email").fill("alice@example.com");
          await first.getByLabel("Password").fill("correct horse");
          await first.getByRole("button", { name: "Sign in" }).click();
          await first.getByRole("heading", { name: "Account of alice" }).waitFor();

          const startedAt = performance.now();
          behind.tokens.clear();
          front.delayMs = () => trouble(Math.random);
          const seen = { active: 0, lost: 0, other: [] as string[], problems: [] as string[] };
          let left = NAVIGATIONS;
          const browse = async () => {
            const tab = await context.newPage();
            tab.on("pageerror", (error) => seen.problems.push(String(error)));
            while (seen.other.length === 0 && (left-- > 0 || behind.tokens.size < ROTATIONS)) {
              const response = await tab.goto(`${front.url}/account`, { waitUntil: "commit" }).catch(() => null);
              const html = await response?.text().catch(() => undefined);
              if (html === undefined) seen.lost++;
              else if (html.includes("Account of")) seen.active++;
              else seen.other.push(`${response?.status()} ${tab.url()}`);
            }
          };
          await Promise.all(Array.from({ length: TABS }, browse));
          const tookMs = performance.now() - startedAt;

          expect([seen.other, seen.problems]).toEqual([[], []]);
          expect(seen.active).toBeGreaterThan(NAVIGATIONS / 2);
          expect(seen.active + seen.lost).toBeGreaterThanOrEqual(NAVIGATIONS);
          expect(behind.tokens.size).toBeLessThanOrEqual(1 + Math.ceil(tookMs / SHORTEST_USE_MS));
          front.delayMs = () => 0;
          await first.goto(`${front.url}/account`);
          await first.getByRole("heading", { name: "Account of alice" }).waitFor();
        } finally {
          await context.close();
        }
      },
      TEST_TIMEOUT_MS,
    );
  });
}
