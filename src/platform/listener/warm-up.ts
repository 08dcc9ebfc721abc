/** Makes a request to each listener before the service is ready, because the first request takes ten times as long as a later one. */
import { get } from "node:http";
import { setImmediate } from "node:timers/promises";
import type { Listener } from "./listener.ts";

/** How long the start of the service waits for the responses to its own first requests, in ms. Then it continues without them. */
const TIMEOUT_MS = 1_000;

/** Requests a page of each listener; never rejects. Listeners with TLS are left out, because they may require a client certificate. */
export async function warmUp(listeners: readonly Pick<Listener, "url" | "scheme">[]): Promise<void> {
  await Promise.all(listeners.filter(({ scheme }) => scheme === "http").map(({ url }) => ask(`${url}/healthz`)));
  // The listeners notice the end of these connections one turn of the event loop later, and count them as open until then.
  for (let turn = 0; turn < 2; turn++) await setImmediate();
}

function ask(url: string): Promise<void> {
  return new Promise((resolve) => {
    const request = get(url, { agent: false, timeout: TIMEOUT_MS }, (response) => response.resume());
    request.once("timeout", () => request.destroy());
    request.on("error", () => {});
    request.once("close", resolve);
  });
}
