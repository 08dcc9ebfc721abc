/**
 * Starts Chromium for tests of pages. They run in Debian's `chromium-headless-shell`, which is the same engine without the windows of a
 * browser: drawing those takes most of the CPU time of a short test. What only a whole browser has, such as profiles and its rules for
 * third-party cookies, is tested in `chromium` (`test/browser/engines/driver.ts`).
 */
import { existsSync } from "node:fs";
import { type Browser, chromium } from "playwright-core";

const SHELL = "/usr/bin/chromium-headless-shell";
const CHROMIUM = "/usr/bin/chromium";
const FLAGS = ["--no-sandbox", "--disable-gpu"];

/** @param more further flags for Chromium, besides those that a machine without a screen needs */
export function launchChromium(more: readonly string[] = []): Promise<Browser> {
  const executablePath = existsSync(SHELL) ? SHELL : CHROMIUM;
  return chromium.launch({ executablePath, args: [...FLAGS, ...more] });
}
