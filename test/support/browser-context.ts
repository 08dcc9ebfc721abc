import type { Browser, BrowserContext, BrowserContextOptions } from "playwright-core";
import { slowness } from "./slowness.ts";
import { EVENT_MS } from "./until.ts";

/** Opens a context whose pages wait as long as other waits of tests: on a busy machine the default of 30 s is not enough. */
export async function openContext(browser: Browser, options?: BrowserContextOptions): Promise<BrowserContext> {
  return patient(await browser.newContext(options));
}

export function patient(context: BrowserContext): BrowserContext {
  context.setDefaultTimeout(EVENT_MS * slowness());
  return context;
}
