/**
 * Logouts from pages of the own origin and of another site, in real browsers. A page's referrer policy decides which `Origin` its requests
 * have: with `no-referrer`, the default of helmet, it is `null` also at the own origin.
 */
import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { until } from "../../support/until.ts";
import { type Engine, startChromium } from "./driver.ts";
import { startFirefox } from "./firefox.ts";
import { type Origin, startOrigin } from "./origin.ts";
import { signIn } from "./pages.ts";
import { startWebKit } from "./webkit.ts";

const LONG = process.env.BROWSERS === "long";
const POLICIES = ["no-referrer", "same-origin", "origin", "strict-origin-when-cross-origin", "unsafe-url"];
const LOGOUT = "/v1/auth/logout";
const WAYS = {
  form: "void setTimeout(() => document.forms[0].submit())",
  fetch:
    "void fetch(document.forms[0].action, { method: 'POST', mode: 'no-cors', credentials: 'include' }).catch(() => {})",
  sendBeacon: "navigator.sendBeacon(document.forms[0].action)",
};

describe.each([
  ["Chromium", (origin: Origin) => startChromium(origin.authority)],
  ["Firefox", (origin: Origin) => startFirefox(origin.authority)],
  ["WebKitGTK", () => startWebKit()],
])("%s", (name, start) => {
  let origin: Origin;
  let engine: Engine;
  const page = (policy: string) =>
    `<!doctype html><title>${policy}</title><meta name="referrer" content="${policy}"><form method="post" action="${origin.url}${LOGOUT}"></form>`;
  /** A server of another site: for browsers, an address and a name are never of one site. */
  const foreign = createServer((request, response) => {
    response.setHeader("content-type", "text/html").end(page(request.url?.slice(1) ?? ""));
  });
  let statuses: number[] = [];
  beforeAll(async () => {
    await once(foreign.listen(0, "127.0.0.1"), "listening");
    origin = await startOrigin();
    for (const policy of POLICIES) origin.files.set(`/${policy}`, { type: "text/html", body: page(policy) });
    origin.change = (headers, path, status) => {
      if (path === LOGOUT) statuses.push(status);
      return headers;
    };
    engine = await start(origin);
  });
  afterAll(async () => {
    await engine?.close();
    await origin?.stop();
    foreign.closeAllConnections();
    foreign.close();
  });

  afterEach(() => engine.reset());

  const policies = LONG || name === "Chromium" ? POLICIES : POLICIES.slice(0, 1);
  test.each(policies.flatMap((policy) => Object.entries(WAYS).map(([way, script]) => [policy, way, script] as const)))(
    "%s, %s: the own page logs out, and the page of another site is refused",
    async (policy, _, script) => {
      const tab = await signIn(engine, origin);
      const refresh = () =>
        tab.evaluate<number>("fetch('/v1/auth/refresh', { method: 'POST' }).then(({ status }) => status)");
      const logOutFrom = async (url: string) => {
        statuses = [];
        const other = await engine.open(url);
        await other.evaluate(script);
        const [status] = await until(async () => {
          expect(statuses).toHaveLength(1);
          return statuses;
        });
        return status;
      };
      expect(await logOutFrom(`http://127.0.0.1:${(foreign.address() as AddressInfo).port}/${policy}`)).toBe(403);
      expect(await refresh()).toBe(200);
      expect(await logOutFrom(`${origin.url}/${policy}`)).toBe(200);
      expect(await refresh()).toBe(401);
    },
  );
});
