/** Faults that are planted in ten kinds of waits: each reports what it waited for. */
import { once } from "node:events";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { expect, test, vi } from "vitest";
import { openContext } from "./browser-context.ts";
import { launchChromium } from "./chromium.ts";
import { request } from "./raw-http.ts";
import { runToExit, startService, waitFor } from "./service.ts";
import { next } from "./session/feed.ts";
import { admin, openAdmin } from "./sessions.ts";
import { slowness } from "./slowness.ts";
import { inTime, until, untilTrue } from "./until.ts";

// Set before the modules are loaded, which is enough for the start of a service or of a page.
vi.hoisted(() => {
  process.env.EVENT_MS = "5000";
});

/** In ms on an idle machine. It is much longer than needed there: how busy the machine is changes between the wait and its judge. */
const LIMIT_MS = 30_000;

/** A wait for what does not happen, given how to clean up after it, and what its error must say. */
type Failure = readonly [run: (finished: (cleanUp: () => unknown) => void) => Promise<unknown>, reason: RegExp];

const FAILURES: Readonly<Record<string, Failure>> = {
  "a value that stays wrong": [() => until(async () => expect(1 + 1).toBe(3)), /expected 2 to be 3/],
  "an error that stays": [() => until(() => JSON.parse("no JSON")), /no JSON/],
  "an attempt that never ends": [() => until(() => new Promise(() => {})), /the first attempt has not ended/],
  "a condition that never holds": [() => untilTrue(() => 1 + 1 > 2), /1 \+ 1 > 2/],
  "a promise that is never settled": [() => inTime("the end of time", new Promise(() => {})), /the end of time/],
  "a server that never responds": [
    async (finished) => request(await startSilentServer(finished), { path: "/silent" }),
    /a response to GET \/silent/,
  ],
  "an RPC without a response": [
    async (finished) =>
      openAdmin({ adminUrl: await startSilentServer(finished) }).call(admin.getSession, { sessionId: "x" }),
    /GetSession by /,
  ],
  "a line that a process never writes": [
    async (finished) => {
      const service = await startService();
      finished(() => service.stop());
      return waitFor(service, () => (service.stdout().includes("fairy") ? true : undefined));
    },
    /includes\("fairy"\).*finds nothing\nstdout: .*"ready"/s,
  ],
  "a process that does not end": [() => runToExit({}), /the end of the process\nstdout: .*"ready"/s],
  "a batch that a feed never delivers": [
    () => next({ next: () => new Promise(() => {}) } as unknown as AsyncGenerator<never>),
    /a batch of the feed/,
  ],
};

/** Starts a server that accepts connections, and sends nothing. */
async function startSilentServer(finished: (cleanUp: () => unknown) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server = createServer((socket) => void sockets.add(socket.on("error", () => {}))).listen(0, "127.0.0.1");
  await once(server, "listening");
  finished(() => {
    for (const socket of sockets) socket.destroy();
    server.close();
  });
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}

/** It runs alone: the limit of a page depends on the machine's slowness at the moment when it is opened. */
const ABSENT_ELEMENT: Failure = [
  async (finished) => {
    const browser = await launchChromium();
    finished(() => browser.close());
    const page = await (await openContext(browser)).newPage();
    await page.setContent("<p>nothing</p>");
    await page.locator("#absent").click();
  },
  /#absent/,
];

async function fail(
  [run, reason]: Failure,
  finished: (cleanUp: () => Promise<void>) => void,
  limitMs = LIMIT_MS,
): Promise<void> {
  const failure = run((cleanUp) => finished(async () => void (await cleanUp()))).then(
    () => undefined,
    (error: unknown) => error,
  );
  expect(String(await inTime("the report of a failure", failure, limitMs))).toMatch(reason);
}

// One test for all: the runner would start the second half after the first half has ended.
test(`each is named: ${Object.keys(FAILURES).join(", ")}`, async ({ onTestFinished }) => {
  await Promise.all(Object.values(FAILURES).map((failure) => fail(failure, onTestFinished)));
});

// The page keeps the limit that it got when it was opened, also if the machine is faster again.
test("an element that a page never shows is named", ({ onTestFinished }) =>
  fail(ABSENT_ELEMENT, onTestFinished, LIMIT_MS * slowness()));

test("a wait that succeeds returns the value, and leaves no timer", async () => {
  const before = process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length;
  expect(await until(async () => 1)).toBe(1);
  expect(await inTime("a value", Promise.resolve(2))).toBe(2);
  expect(process.getActiveResourcesInfo().filter((resource) => resource === "Timeout").length).toBe(before);
});
