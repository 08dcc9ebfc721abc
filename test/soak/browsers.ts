/**
 * Honest browsers: one cookie jar each, up to four requests in flight, none for longer than half of the reuse interval (R/2) by the store's
 * clock. Requests and responses are delayed, reordered and lost, scripts run twice, Redis crashes and instances restart. A third of the
 * browsers are bound to a device. No refresh of a browser may ever be refused.
 */

import type { DevicePresentation } from "../../src/service/session/devices/binding.ts";
import type { DeviceKey } from "../../src/service/session/devices/key.ts";
import type { SessionId } from "../../src/service/session/model.ts";
import type { SessionStore } from "../../src/service/session/ports.ts";
import { StoreUnavailable } from "../../src/service/session/ports.ts";
import type { TokenFields } from "../../src/service/session/rotation/rotation.ts";
import { storeMs } from "../../src/service/session/time.ts";
import type { Dice } from "../support/dice.ts";
import { someKey, WITHOUT, withCookie } from "../support/store/device.ts";
import { newSession, nonce, outcomeOf, REUSE_INTERVAL, subject } from "../support/store/sessions.ts";
import type { World } from "./world.ts";

/** The lengths of the clock's steps. They divide the reuse interval, so that events often happen exactly at the limits of the rules. */
const TICKS = [4, 4, 6, 20].map((parts) => REUSE_INTERVAL / parts);
const TABS = 4;

type Flight = {
  readonly token: TokenFields;
  readonly device: DevicePresentation;
  readonly arrives: number;
  readonly returns: number;
  response?: TokenFields;
};

export type Browser = {
  readonly sid: SessionId;
  jar: TokenFields;
  /** Whether the browser stores the cookies of responses at all. */
  readonly adopts: boolean;
  /** The key of the browser's device; undefined if it has none. */
  readonly key: DeviceKey | undefined;
  flights: Flight[];
  /** What the browser sent and received, to explain a wrong logout. */
  readonly history: string[];
};

/**
 * The parameters of one burst: how likely a tab refreshes, how likely a response is lost, and the longest time of a request, in ticks. That
 * time is half of the reuse interval (R/2).
 */
type Weather = { readonly eagerness: number; readonly loss: number; readonly flight: number };

export type BrowsersReport = {
  refreshes: number;
  unanswered: number;
  crashes: number;
  outcomes: Record<string, number>;
};

export class WrongLogout extends Error {
  override readonly name = "WrongLogout";
}

/** Returns the device data of the browser's requests. A bound browser renews its device cookie without being asked. */
function deviceOf({ key }: Browser, world: World): DevicePresentation {
  return key === undefined ? WITHOUT : withCookie(key, world.now());
}

export async function openBrowsers(world: World, count: number): Promise<Browser[]> {
  return Promise.all(
    Array.from({ length: count }, async (_, at) => {
      const session = newSession(subject());
      const first = nonce();
      await world.instances[at % world.instances.length]?.create(session, first, { cap: 10 });
      const jar = { generation: 1, nonce: first, issuedAt: storeMs(0) };
      const key = at % 3 === 0 ? someKey() : undefined;
      if (key !== undefined) await world.instances[0]?.registerKey(session.sid, jar, key);
      return { sid: session.sid, jar, adopts: at % 20 !== 0, key, flights: [], history: [] };
    }),
  );
}

/** Runs browsers until they have made this many refreshes. @throws WrongLogout */
export async function browse(
  world: World,
  browsers: readonly Browser[],
  refreshes: number,
  dice: Dice,
  trouble: { readonly crashes: number; readonly losses: boolean },
): Promise<BrowsersReport> {
  const report: BrowsersReport = { refreshes: 0, unanswered: 0, crashes: 0, outcomes: {} };
  let tick = 0;
  let remembered = false;
  while (report.refreshes < refreshes) {
    // Each round is a burst in which tabs refresh concurrently, and then a pause of seconds, or one longer than every period in the
    // rules.
    const burst = 5 + dice.below(30);
    const ms = Math.floor(dice.pick(TICKS));
    const weather = {
      eagerness: dice.pick([0.05, 0.2, 0.6]),
      loss: dice.pick([0.05, 0.3, 0.6]),
      flight: Math.floor(REUSE_INTERVAL / 2 / ms),
    };
    const until = tick + burst + weather.flight + 1;
    for (; tick < until; tick++) {
      if (tick < until - weather.flight - 1) for (const browser of browsers) depart(browser, weather);
      const due = browsers.flatMap((browser) =>
        browser.flights.filter(({ arrives }) => arrives === tick).map((flight) => ({ browser, flight })),
      );
      const arrive = () => Promise.all(dice.shuffle(due).map(({ browser, flight }) => send(browser, flight)));
      if (due.length > 10 && report.crashes < (trouble.crashes * report.refreshes) / refreshes) {
        report.crashes++;
        await world.crash(arrive);
        await world.restartInstance(dice.below(world.instances.length));
      } else {
        await arrive();
      }
      for (const browser of browsers) deliver(browser);
      await world.advance(ms);
    }
    const silence = dice.pick([0, 1, REUSE_INTERVAL, 2 * REUSE_INTERVAL, 10 * REUSE_INTERVAL]);
    await world.advance(silence);
    if (trouble.losses && report.refreshes > 0) {
      if (remembered) await world.forget();
      else await world.remember();
      remembered = !remembered;
      report.crashes++;
    }
  }
  return report;

  function depart(browser: Browser, { eagerness, loss, flight }: Weather): void {
    while (browser.flights.length < TABS && dice.chance(eagerness)) {
      const arrives = tick + dice.below(flight + 1);
      const returns = dice.chance(loss) ? Number.POSITIVE_INFINITY : arrives + dice.below(tick + flight + 1 - arrives);
      browser.flights.push({ token: browser.jar, device: deviceOf(browser, world), arrives, returns });
    }
  }

  async function send(browser: Browser, flight: Flight): Promise<void> {
    const fresh = nonce();
    const again = dice.chance(0.05);
    const store = dice.pick(world.instances);
    report.refreshes++;
    const responses = await Promise.all([refresh(store), ...(again ? [refresh(dice.pick(world.instances))] : [])]);
    for (const response of responses) if (response !== undefined) flight.response = response;
    if (flight.response === undefined) report.unanswered++;

    async function refresh(store: SessionStore): Promise<TokenFields | undefined> {
      try {
        const response = await store.rotate(browser.sid, flight.token, fresh, flight.device);
        const outcome = outcomeOf(response);
        report.outcomes[outcome] = (report.outcomes[outcome] ?? 0) + 1;
        browser.history.push(`${tick}: ${brief(flight.token)} ${outcome} ${response.ok ? brief(response.child) : ""}`);
        if (!response.ok) throw new WrongLogout(`${outcome}\n${browser.history.join("\n")}`);
        return response.child;
      } catch (error) {
        if (!(error instanceof StoreUnavailable)) throw error;
        browser.history.push(`${tick}: ${brief(flight.token)} unavailable`);
        return undefined;
      }
    }
  }

  function deliver(browser: Browser): void {
    const home = dice.shuffle(browser.flights.filter(({ returns }) => returns === tick));
    for (const { response } of home) if (response !== undefined && browser.adopts) browser.jar = response;
    browser.flights = browser.flights.filter(
      ({ arrives, returns }) => returns > tick && !(returns === Number.POSITIVE_INFINITY && arrives <= tick),
    );
  }
}

function brief({ generation, nonce, issuedAt }: TokenFields): string {
  return `${generation}/${nonce.slice(0, 4)}@${issuedAt}`;
}

/**
 * Checks that each session has only one chain of tokens: the token in the jar is accepted, and so are the next two. An earlier token then
 * ends the session.
 */
export async function expectOneChain(world: World, browsers: readonly Browser[]): Promise<void> {
  const [store] = world.instances;
  if (store === undefined) throw new Error("no instance");
  const old = browsers.map(({ jar }) => jar);
  for (let round = 0; round < 3; round++) {
    await world.advance(2 * REUSE_INTERVAL);
    await Promise.all(
      browsers.map(async (browser) => {
        const response = await store.rotate(browser.sid, browser.jar, nonce(), deviceOf(browser, world));
        if (!response.ok) throw new WrongLogout(`at the end: ${response.reason}\n${browser.history.join("\n")}`);
        browser.jar = response.child;
      }),
    );
  }
  await world.advance(2 * REUSE_INTERVAL);
  await Promise.all(
    browsers.map(async (browser, at) => {
      const { sid, jar } = browser;
      const reused = await store.rotate(sid, old[at] ?? jar, nonce(), deviceOf(browser, world));
      const after = await store.rotate(sid, jar, nonce(), deviceOf(browser, world));
      if (outcomeOf(reused) !== "reuse" || outcomeOf(after) !== "revoked") {
        throw new Error(`two chains: an old token was responded ${outcomeOf(reused)}, the newest ${outcomeOf(after)}`);
      }
    }),
  );
}
