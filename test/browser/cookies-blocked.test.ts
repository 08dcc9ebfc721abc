/**
 * A browser whose user blocks all cookies. In Firefox the constructor of `BroadcastChannel` then throws an error. The simulated channel
 * does so as well.
 */
import { expect, test } from "vitest";
import { createSession, type Realm } from "../../src/browser/index.ts";

class RefusedChannel {
  onmessage = null;
  constructor() {
    throw new DOMException("The operation is insecure.", "SecurityError");
  }
  postMessage(): void {}
  close(): void {}
}

/** Returns a page without cookies. The service responds that nobody is signed in. */
function page(): Realm {
  const ended = { error: { code: "E001_AUTH_FAILURE", message: "authentication failed" } };
  return {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    performance: globalThis.performance,
    Date: globalThis.Date,
    Math: globalThis.Math,
    location: { origin: "https://app.example" },
    document: { visibilityState: "visible", cookie: "" },
    BroadcastChannel: RefusedChannel,
    fetch: async () => Response.json(ended, { status: 401 }),
  };
}

test("the page learns that nobody is signed in", async () => {
  const session = createSession({ baseUrl: "https://app.example" }, page());
  const state = await new Promise((resolve) => {
    session.subscribe(() => resolve(session.snapshot.state));
    session.accessToken().catch(({ reason }: { readonly reason?: unknown }) => reason ?? resolve("rejected"));
  });
  expect(state).toBe("ended");
  session.dispose();
});

test("a page that a server has rendered for a user begins", () => {
  const claims = { sub: "user", sid: "s1", iat: 0, exp: 300 };
  const session = createSession({ baseUrl: "https://app.example", initial: { claims, ageMs: 0 } }, page());
  expect(session.snapshot.state).toBe("active");
  session.dispose();
});
