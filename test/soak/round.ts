import { dice } from "../support/dice.ts";
import { type BrowsersReport, browse, expectOneChain, openBrowsers } from "./browsers.ts";
import { steal } from "./thieves.ts";
import { createWorld } from "./world.ts";

type Size = { readonly seed: number; readonly sessions: number; readonly refreshes: number; readonly crashes: number };

/** Runs browsers and thieves on one Redis. With an odd seed, crashes of Redis lose its last writes. @throws WrongLogout, UnseenTheft */
export async function round({
  seed,
  sessions,
  refreshes,
  crashes,
}: Size): Promise<BrowsersReport & { thefts: number }> {
  const losses = seed % 2 === 1;
  const world = await createWorld(losses);
  try {
    const random = dice(seed);
    const browsers = await openBrowsers(world, sessions);
    const report = await browse(world, browsers, refreshes, random, { crashes: losses ? 0 : crashes, losses });
    await expectOneChain(world, browsers);
    return { ...report, thefts: await steal(world, random) };
  } finally {
    await world.stop();
  }
}
