import { expect, test } from "vitest";
import { createSession, type Realm } from "../../src/browser/index.ts";
import { hintOf } from "../../src/browser/realm.ts";

const IN_A_WORKER: Realm = {
  setTimeout: globalThis.setTimeout,
  clearTimeout: globalThis.clearTimeout,
  performance: globalThis.performance,
  Date: globalThis.Date,
  Math: globalThis.Math,
  fetch: globalThis.fetch,
};
const withCookies = (cookie: string): Realm => ({ ...IN_A_WORKER, document: { visibilityState: "visible", cookie } });

test("the hint is the value of the very cookie that is named, empty where it is absent", () => {
  expect(hintOf(withCookies("a=b; hint=s1; c=d"), "hint")).toBe("s1");
  expect(hintOf(withCookies("hint=s1"), "hint")).toBe("s1");
  expect(hintOf(withCookies("my_hint=s1; hinted=s2; a=hint=s3"), "hint")).toBe("");
  expect(hintOf(withCookies("hint="), "hint")).toBe("");
  expect(hintOf(withCookies(""), "hint")).toBe("");
  expect(hintOf(withCookies("hint=s1"), undefined)).toBeUndefined();
});

test("a worker, which has no cookies to read, asks the service", async () => {
  const claims = Buffer.from(JSON.stringify({ sid: "s1", iat: 0, exp: 900 })).toString("base64url");
  const accessToken = `e30.${claims}.`;
  const fetch = async () => Response.json({ data: { accessToken } });
  const session = createSession({ baseUrl: "https://app.example", hintCookie: "hint" }, { ...IN_A_WORKER, fetch });
  expect(await session.accessToken()).toBe(accessToken);
  session.dispose();
});

test("what a server renders for all users asks the service for none of them, and knows nobody", async () => {
  const asked: unknown[] = [];
  const fetch = async (url: unknown) => {
    asked.push(url);
    return Response.json({ error: { code: "E001_AUTH_FAILURE" } }, { status: 401 });
  };
  // A server has no location. Its runtime is otherwise that of a worker.
  const session = createSession({ baseUrl: "https://auth.example" }, { ...IN_A_WORKER, fetch });
  // A composable of Vue subscribes on the server, too.
  session.subscribe(() => {});
  const page = createSession({}, { ...IN_A_WORKER, fetch, location: { origin: "https://app.example" } });
  await new Promise<void>((resolve) => void page.subscribe(resolve));
  expect([session.snapshot.state, page.snapshot.state]).toEqual(["unknown", "ended"]);
  expect(asked).toEqual(["https://app.example/v1/auth/refresh"]);
});
