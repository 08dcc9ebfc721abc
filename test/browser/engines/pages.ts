/** Steps of the scenarios with pages that contain the kit. */
import { EVENT_MS, until } from "../../support/until.ts";
import type { Engine, Tab } from "./driver.ts";
import type { Origin } from "./origin.ts";

/**
 * Reads repeatedly, and resolves when `wanted` accepts the value.
 *
 * @param notBeforeMs how long the event takes even on an idle machine, because of a time in the scenario, such as the life of a token
 * @throws an error with the last value and the condition
 */
export const eventually = <T>(read: () => T | Promise<T>, wanted: (value: T) => boolean, notBeforeMs = 0): Promise<T> =>
  until(async () => {
    const value = await read();
    if (!wanted(value)) throw new Error(`${JSON.stringify(value)} is not what this wants: ${wanted}`);
    return value;
  }, notBeforeMs + EVENT_MS);

/** Signs in, in a new tab. */
export async function signIn(engine: Engine, origin: Origin, subject = "alice"): Promise<Tab> {
  return engine.open(`${origin.url}/login?subject=${subject}`);
}

export const openPages = <T extends Tab>(engine: { open(url: string): Promise<T> }, origin: Origin, count: number) =>
  Promise.all(Array.from({ length: count }, () => openPage(engine, origin)));

export async function openPage<T extends Tab>(
  engine: { open(url: string): Promise<T> },
  origin: Origin,
  path = "",
): Promise<T> {
  const tab = await engine.open(origin.url + path);
  await eventually(
    () => tab.evaluate<boolean>("!!globalThis.ready"),
    (ready) => ready,
  );
  return tab;
}

/** Returns the token, or the reason why there is none. */
export const tokenOf = (tab: Tab) =>
  tab.evaluate<string>("session.accessToken().catch((error) => error.reason ?? String(error))");

export const stateOf = (tab: Tab) => tab.evaluate<string>("session.snapshot.state");

export const becomes = (tab: Tab, state: string) =>
  eventually(
    () => stateOf(tab),
    (now) => now === state,
  );

/** Returns all states that the tab went through. */
export const statesOf = (tab: Tab) => tab.evaluate<string[]>("states");

/** Sends a request of the application to its API. Returns the status, or the reason why there is none. */
export const callApi = (tab: Tab) =>
  tab.evaluate<number | string>("session.fetch('/api').then((response) => response.status, (error) => error.reason)");

/** Steps the wall clock of the page. */
export const stepClock = (tab: Tab, ms: number) =>
  tab.evaluate<number>(`(Date.now = ((now) => () => now() + ${ms})(Date.now))()`);

export const isToken = (text: string) => text.split(".").length === 3;

/**
 * Returns the greatest number of refreshes that become due within a time. The service shortens the life of each token by up to 20 %, in
 * whole seconds.
 */
export const refreshesDue = (ms: number, tokenTtlS: number): number =>
  Math.floor(ms / (Math.floor(tokenTtlS * 0.8) * 880));
