/** The warnings on a page's console: once each, for what would look like a sign-out or an outage, and for nothing else. */
import { expect, test } from "vitest";
import { createSession, type Realm } from "../../src/browser/index.ts";

type Given = Partial<Pick<Realm, "isSecureContext" | "document">> & { readonly respond?: () => Response };

function page({ respond = () => new Response(), ...given }: Given) {
  const warnings: string[] = [];
  const realm: Realm = {
    setTimeout: globalThis.setTimeout,
    clearTimeout: globalThis.clearTimeout,
    performance: globalThis.performance,
    Date: globalThis.Date,
    Math: globalThis.Math,
    fetch: async () => respond(),
    console: { warn: (...texts) => warnings.push(texts.join(" ")) },
    ...given,
  };
  return { warnings, realm };
}

/** Opens two sessions, since an application may do so by mistake, and asks each for a token. Returns what the console has. */
async function warningsOf(options: Parameters<typeof createSession>[0], given: Given): Promise<readonly string[]> {
  const { warnings, realm } = page(given);
  let first: readonly string[] | undefined;
  for (let opened = 0; opened < 2; opened++) {
    const session = createSession(options, realm);
    await expect(session.accessToken()).rejects.toThrow();
    session.dispose();
    first ??= [...warnings];
  }
  expect(warnings).toEqual(first);
  return warnings;
}

const ended = () => Response.json({ error: { code: "E001_AUTH_FAILURE" } }, { status: 401 });
const html = (status: number) => () =>
  new Response("<!doctype html>", { status, headers: { "content-type": "text/html" } });
const document = { visibilityState: "visible", cookie: "" };

test.each([404, 200, 405])("a page in place of the service: %i with HTML", async (status) => {
  const baseUrl = `https://app${status}.example`;
  expect(await warningsOf({ baseUrl }, { respond: html(status) })).toEqual([
    `session: no service at ${baseUrl}/v1/auth/refresh`,
  ]);
});

test("an outage is no such page", async () => {
  for (const status of [500, 502])
    expect(await warningsOf({ baseUrl: `https://outage${status}.example` }, { respond: html(status) })).toEqual([]);
  const limited = () => Response.json({ error: { code: "E429_RATE_LIMITED" } }, { status: 429 });
  expect(await warningsOf({ baseUrl: "https://limited.example" }, { respond: limited })).toEqual([]);
});

test("a browser without a console gets the status of the page in place of the service", async () => {
  const { realm } = page({ respond: html(404) });
  const session = createSession({ baseUrl: "https://silent.example" }, { ...realm, console: undefined as never });
  await expect(session.accessToken()).rejects.toMatchObject({ reason: "unavailable", cause: 404 });
  session.dispose();
});

test("a hint cookie that is absent, in development", async () => {
  const options = { baseUrl: "http://localhost:3000", hintCookie: "signed_in" };
  expect(await warningsOf(options, { document })).toEqual(["session: no cookie signed_in"]);
  const production = { baseUrl: "https://app.example", hintCookie: "signed" };
  expect(await warningsOf(production, { document })).toEqual([]);
});

test("Secure cookies on http", async () => {
  const baseUrl = "http://192.168.1.2:3000";
  expect(await warningsOf({ baseUrl }, { respond: ended, isSecureContext: false })).toEqual([
    "session: http drops Secure cookies",
  ]);
  expect(await warningsOf({ baseUrl: "http://localhost" }, { respond: ended, isSecureContext: true })).toEqual([]);
});
