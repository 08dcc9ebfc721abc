/** The tests of suite.ts as a service worker, which receives commands as messages and posts the results. */
import { createSession } from "../../src/browser/index.ts";
import { run } from "./commands.ts";

type ExtendableEvent = {
  readonly data: string;
  readonly ports: readonly MessagePort[];
  waitUntil(work: Promise<unknown>): void;
};
type Scope = {
  skipWaiting(): Promise<void>;
  readonly clients: { claim(): Promise<void> };
  addEventListener(type: string, listener: (event: ExtendableEvent) => void): void;
};
const scope = globalThis as unknown as Scope;
/** Runs the browser kit. Its requests have the cookies of the origin. */
const session = createSession();

const respond = (text: string) =>
  text === "kit" ? session.accessToken().then((token) => JSON.stringify({ result: token })) : run(text);

scope.addEventListener("install", (event) => event.waitUntil(scope.skipWaiting()));
scope.addEventListener("activate", (event) => event.waitUntil(scope.clients.claim()));
scope.addEventListener("message", (event) =>
  event.waitUntil(respond(event.data).then((text) => event.ports[0]?.postMessage(text))),
);
