/**
 * `npm run test:site`: builds the site of the documentation as a release, and uses it in Chromium. Every page is examined by axe, on a phone in
 * light and on a desk in dark; the keyboard reaches what a mouse does; no link is dead, and no page is deeper than two clicks. Then a later
 * release adds itself, and the menus of both lead to each other.
 */
import { strict as assert } from "node:assert";
import { spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { tmpdir } from "node:os";
import { extname, join } from "node:path";
import type { Browser, Page } from "playwright-core";
import { launchChromium } from "../support/chromium.ts";
import { makeTree } from "./small-tree.ts";

const ROOT = join(import.meta.dirname, "../..");
const DIRECTORY = mkdtempSync(join(tmpdir(), "session-service-site-"));
/** What readers of all releases see. */
const PUBLISHED = join(DIRECTORY, "published");
const AXE = join(ROOT, "deploy/site/node_modules/axe-core/axe.min.js");
const PHONE = { width: 390, height: 844 };
const DESK = { width: 1280, height: 900 };
const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html",
  ".js": "text/javascript",
  ".mjs": "text/javascript",
  ".css": "text/css",
  ".svg": "image/svg+xml",
  ".png": "image/png",
  ".json": "application/json",
  ".woff2": "font/woff2",
};

process.on("exit", () => rmSync(DIRECTORY, { recursive: true, force: true }));

/** Builds the site of a tree and adds it to the published one. Returns whether that succeeded, and the releases that are published. */
function release(tree: string): {
  readonly done: boolean;
  readonly releases: Readonly<Record<string, readonly string[]>>;
} {
  const { status } = spawnSync(process.execPath, ["deploy/site/build.ts", "release", PUBLISHED], {
    cwd: tree,
    stdio: "inherit",
  });
  const list = join(PUBLISHED, "versions.json");
  return { done: status === 0, releases: existsSync(list) ? JSON.parse(readFileSync(list, "utf8")) : {} };
}

mkdirSync(PUBLISHED);
const startedAt = performance.now();
const { done, releases } = release(ROOT);
assert.ok(done, "the site is built: VitePress finds no dead link");
console.log(`built in ${((performance.now() - startedAt) / 1000).toFixed(0)} s`);
const [[version, files] = assert.fail("no release is published")] = Object.entries(releases);

const server = createServer((request, response) => {
  const { pathname } = new URL(request.url ?? "/", "http://site");
  const file = pathname.endsWith("/") ? `${pathname}index.html` : pathname;
  try {
    const body = readFileSync(join(PUBLISHED, file));
    response.writeHead(200, { "content-type": TYPES[extname(file)] ?? "application/octet-stream" }).end(body);
  } catch {
    response.writeHead(404).end();
  }
});
server.listen(0, "127.0.0.1");
await once(server, "listening");
const root = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
/** The address of the release, to which the paths of its pages are relative. */
const site = `${root}${version}/`;
const pages = files.map((name) => name.replace(/(^|\/)index\.html$/, "$1"));

/** Opens a page, and fails with the first error of its scripts or its requests. */
async function open(browser: Browser, viewport: typeof PHONE, colorScheme: "light" | "dark"): Promise<Page> {
  const context = await browser.newContext({ viewport, colorScheme, reducedMotion: "reduce" });
  const page = await context.newPage();
  page.on("pageerror", (error) => {
    throw error;
  });
  page.on("response", (response) => {
    assert.ok(response.status() < 400, `${response.status()} ${response.url()}`);
  });
  return page;
}

type Report = { readonly violations: readonly { id: string; nodes: { html: string; failureSummary: string }[] }[] };

async function findings(page: Page): Promise<string[]> {
  await page.addScriptTag({ path: AXE });
  const { violations } = await page.evaluate<Report>("axe.run()");
  return violations.flatMap(({ id, nodes }) =>
    nodes.map(({ html, failureSummary }) => `${id}: ${html.slice(0, 160)} ${failureSummary}`),
  );
}

/** Waits until every picture of the page is drawn. */
const drawn = (page: Page) =>
  page.waitForFunction(
    "document.querySelectorAll('.picture').length === document.querySelectorAll('.picture svg').length",
  );

async function examine(browser: Browser, viewport: typeof PHONE, colorScheme: "light" | "dark"): Promise<void> {
  const page = await open(browser, viewport, colorScheme);
  const faults: string[] = [];
  for (const path of pages) {
    await page.goto(site + path);
    await drawn(page);
    const width = await page.evaluate<number>("document.documentElement.scrollWidth");
    if (width > viewport.width) faults.push(`${path} is ${width} px wide`);
    faults.push(...(await findings(page)).map((finding) => `${path}: ${finding}`));
  }
  assert.deepEqual(faults, [], `${viewport.width} px, ${colorScheme}`);
  console.log(`${pages.length} pages at ${viewport.width} px in ${colorScheme}: 0 findings`);
  await page.context().close();
}

/** What adopters ask, by the words that they type, and the page that says it. */
const QUESTIONS: Readonly<Record<string, string>> = {
  "role changed": "tasks/roles",
  "tokens unit tests": "tasks/test-tokens",
  "erase user": "tasks/erase",
  "everybody out": "tasks/log-out",
  "signed out reason": "tasks/symptoms",
  "Redis down": "tasks/incidents",
  "verify tokens Go": "tasks/verifier",
  "nginx TLS": "tasks/proxy",
  cookies: "reference/configuration",
  "move without signing out": "tasks/migration",
  "instance cost refreshes": "why/capacity",
  "personal data stored": "why/security",
};

async function openSearch(page: Page, words: string): Promise<void> {
  await page.keyboard.press("Control+k");
  await page.waitForSelector(".site-search input:focus");
  await page.keyboard.type(words);
  await page.waitForSelector(".site-search li");
}

async function closeSearch(page: Page): Promise<void> {
  await page.keyboard.press("Escape");
  await page.waitForSelector(".site-search", { state: "detached" });
}

/** The search has the page of each question among its first three results. */
async function askQuestions(browser: Browser): Promise<void> {
  const page = await open(browser, DESK, "light");
  await page.goto(site);
  for (const [words, wanted] of Object.entries(QUESTIONS)) {
    await openSearch(page, words);
    const first = page.locator(`.site-search li:nth-child(-n+3) a[href*="/${wanted}.html"]`);
    await first.first().waitFor();
    await closeSearch(page);
  }
  console.log(`the search leads to the pages of ${Object.keys(QUESTIONS).length} questions`);
  await page.context().close();
}

/** Presses a key until the focus is on an element. */
async function tabTo(page: Page, selector: string): Promise<void> {
  for (let presses = 0; presses < 100; presses++) {
    await page.keyboard.press("Tab");
    if (await page.locator(`${selector}:focus`).count()) return;
  }
  assert.fail(`Tab does not reach ${selector}`);
}

async function tryKeyboard(browser: Browser): Promise<void> {
  const page = await open(browser, DESK, "light");
  await page.goto(site);
  await tabTo(page, ".VPSkipLink");
  await page.keyboard.press("Enter");
  await tabTo(page, "#VPContent a");
  await openSearch(page, "password changes");
  assert.deepEqual(await findings(page), [], "the search");
  await closeSearch(page);
  await openSearch(page, "password changes");
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/tasks\/roles/);
  await page.context().close();

  const phone = await open(browser, PHONE, "light");
  await phone.goto(site);
  await tabTo(phone, ".VPLocalNav .menu");
  await phone.keyboard.press("Enter");
  await phone.waitForSelector(".VPSidebar.open");
  assert.deepEqual(await findings(phone), [], "the menu on a phone");
  await tabTo(phone, '.VPSidebar a[href$="getting-started.html"]');
  await phone.keyboard.press("Enter");
  await phone.waitForURL(/getting-started/);
  await phone.context().close();
  console.log("the keyboard reaches content, search and menu");
}

/** The links of each page lead to all pages: the first page's are one click, those of their pages two. */
async function tryClicks(browser: Browser): Promise<void> {
  const page = await open(browser, DESK, "light");
  const linksOf = async (path: string) => {
    await page.goto(site + path);
    const links = await page.evaluate<string[]>("[...document.querySelectorAll('a')].map(({ href }) => href)");
    return links.filter((href) => href.startsWith(site)).map((href) => href.slice(site.length).replace(/#.*/, ""));
  };
  const first = new Set(await linksOf(""));
  const second = new Set(first);
  for (const path of first) for (const link of await linksOf(path)) second.add(link);
  assert.deepEqual(
    pages.filter((path) => !second.has(path)),
    [],
  );
  console.log(`${first.size} pages after one click, ${second.size} after two`);
  await page.context().close();
}

const LATER = "999.10.0";

/** A later release adds itself. Its pages lead to those of the release before, whose menu has it from then on. */
async function tryReleases(browser: Browser): Promise<void> {
  const pages = { "tasks/roles.md": "# When a role changes\n", "tasks/new.md": "# New\n" };
  const broken = join(DIRECTORY, "broken");
  makeTree(broken, LATER, { ...pages, "tasks/new.md": "# New\n\n{{ absent.member }}\n" });
  assert.deepEqual(release(broken), { done: false, releases }, "a page that cannot be rendered ends the build");
  const later = join(DIRECTORY, "later");
  makeTree(later, LATER, pages);
  assert.deepEqual(Object.keys(release(later).releases), [LATER, version], "the newest is the first");

  const page = await open(browser, DESK, "light");
  await page.goto(root);
  await page.waitForURL(`${root}${LATER}/`);
  /** Follows a link of the menu of releases, by the keyboard. */
  async function choose(from: string, to: string): Promise<void> {
    await tabTo(page, `.VPNavBarMenuGroup button:has-text("${from}")`);
    await page.keyboard.press("Enter");
    assert.deepEqual(await findings(page), [], "the menu of releases");
    await tabTo(page, `.VPNavBarMenuGroup a:has-text("${to}")`);
    await page.keyboard.press("Enter");
  }
  await page.goto(`${root}${LATER}/tasks/roles.html`);
  await choose(LATER, version);
  await page.waitForURL(`${site}tasks/roles.html`);
  await page.waitForSelector("h1:has-text('When a role or a password changes')");
  await choose(version, LATER);
  await page.waitForURL(`${root}${LATER}/tasks/roles.html`);
  // The release before lacks this page: its first page is in its place.
  await page.goto(`${root}${LATER}/tasks/new.html`);
  await choose(LATER, version);
  await page.waitForURL(site);
  await page.context().close();

  const phone = await open(browser, PHONE, "light");
  await phone.goto(`${site}tasks/roles.html`);
  await phone.locator("button.VPNavBarHamburger").click();
  await phone.locator(`.VPNavScreenMenuGroup button:has-text("${version}")`).click();
  assert.deepEqual(await findings(phone), [], "the menu of releases on a phone");
  await phone.locator(`.VPNavScreenMenuGroup a:has-text("${LATER}")`).click();
  await phone.waitForURL(`${root}${LATER}/tasks/roles.html`);
  await phone.context().close();
  console.log(`the menus of ${version} and ${LATER} lead to each other`);
}

const browser = await launchChromium();
try {
  await tryReleases(browser);
  await tryKeyboard(browser);
  await askQuestions(browser);
  await tryClicks(browser);
  await examine(browser, PHONE, "light");
  await examine(browser, DESK, "dark");
} finally {
  await browser.close();
  server.close();
}
