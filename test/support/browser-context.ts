import type { Browser, BrowserContext, BrowserContextOptions } from "playwright-core";
import { PATIENCE_MS } from "./patience.ts";

/** Opens a context whose pages have a longer time limit: on a busy machine the default of 30 s is not enough. */
export async function openContext(browser: Browser, options?: BrowserContextOptions): Promise<BrowserContext> {
  return patient(await browser.newContext(options));
}

export function patient(context: BrowserContext): BrowserContext {
  context.setDefaultTimeout(PATIENCE_MS);
  return context;
}
