/** `Set-Cookie` lines as frameworks take and give them. */
import { createRequire } from "node:module";
import { join } from "node:path";
import { expect, test } from "vitest";
import { nextSession } from "../../src/server/next.ts";
import { readSetCookie, setCookiesOf } from "../../src/server/set-cookie.ts";
import { aService } from "../support/every-protocol.ts";
import { admin, bearer, message, openAdmin } from "../support/sessions.ts";
import { aServer, aVerifier, Jar } from "./world.ts";

const service = aService({
  ...{ COOKIE_NAME: "__Host-refresh", ACCESS_COOKIE: "__Host-access", COOKIE_PATH: "/", COOKIE_SAMESITE: "None" },
  ...{ COOKIE_PARTITIONED: "on", SESSION_HINT_COOKIE: "signed_in" },
});
const kept = aVerifier(service);

type Cookies = { set(...given: unknown[]): unknown };
const { ResponseCookies } = createRequire(join(import.meta.dirname, "../dependencies/frameworks/package.json"))(
  "next/dist/compiled/@edge-runtime/cookies",
) as { readonly ResponseCookies: new (headers: Headers) => Cookies };

/** Calls the functions for server actions, with the cookies of Next.js itself. */
function inNext(cookie: string) {
  const response = new Headers();
  const { sessions } = aServer(service, kept.verifier, {
    accessCookie: "__Host-access",
    refreshCookie: "__Host-refresh",
  });
  const functions = nextSession(() => sessions, {
    connection: async () => {},
    headers: async () => new Headers({ cookie, "x-session-state": "active" }),
    cookies: async () => new ResponseCookies(response),
    redirect: (path) => {
      throw new Error(`redirect to ${path}`);
    },
  });
  return { ...functions, response };
}

/** A line without the order and the case of its attributes, and without the date that Next.js adds to `Max-Age`. */
const comparable = (line: string) =>
  line
    .split("; ")
    .filter((part) => !part.startsWith("Expires="))
    .map((part, index) => (index === 0 ? part : part.toLowerCase()))
    .sort();

async function signIn(subject: string, persistent = true): Promise<readonly string[]> {
  const wanted = { subject, persistent };
  return message(await openAdmin(service).call(admin.createSession, wanted, bearer(service.adminToken))).setCookies;
}

test.each([true, false])(
  "a server action of Next.js sets the cookies of a login as the service wrote them (persistent: %s)",
  async (persistent) => {
    const lines = await signIn("alice", persistent);
    expect(lines.join().includes("Max-Age")).toBe(persistent);
    const { setCookies, response } = inNext("");
    await setCookies(lines);
    expect(response.getSetCookie().map(comparable)).toEqual(lines.map(comparable));
    expect(lines).toHaveLength(3);
  },
);

test("a server action of Next.js signs the user out, and removes the cookies", async () => {
  const jar = new Jar();
  jar.take(await signIn("alice"));
  const { currentUser, requireCurrentUser, signOut, response } = inNext(jar.header);
  expect([await currentUser(), await requireCurrentUser()]).toMatchObject([{ state: "active" }, { state: "active" }]);
  expect(await signOut()).toEqual({ state: "ended" });
  jar.take(response.getSetCookie());
  expect([...jar.cookies]).toEqual([]);
});

test("a page of Next.js without a user leads to the login", async () => {
  const { requireCurrentUser } = nextSession(aServer(service, kept.verifier).sessions, {
    connection: async () => {},
    headers: async () => new Headers({ "x-session-state": "ended" }),
    cookies: () => Promise.reject(new Error("no cookies are set")),
    redirect: (path) => {
      throw new Error(`redirect to ${path}`);
    },
  });
  await expect(requireCurrentUser()).rejects.toThrow("redirect to /login");
});

test.each([
  [["a=1; Path=/, b=2; Secure"], ["a=1; Path=/", "b=2; Secure"]],
  [
    ["a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/,__Host-b=2"],
    ["a=1; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Path=/", "__Host-b=2"],
  ],
  [["a=1,2,3; Path=/"], ["a=1,2,3; Path=/"]],
  [
    ["a=1", "b=2"],
    ["a=1", "b=2"],
  ],
])("the lines of %j are %j", (joined, lines) => {
  const headers = new Headers();
  for (const line of joined) headers.append("set-cookie", line);
  expect(setCookiesOf(headers)).toEqual(lines);
});

test.each([
  ["a=%C3%A9", { name: "a", value: "\u00e9", attributes: {} }],
  ["a=%ff", { name: "a", value: "%ff", attributes: {} }],
  [
    "a = 1 ; PATH=/x; Domain=a.example; Expires=Wed, 21 Oct 2026 07:28:00 GMT; Max-Age=60; Priority=High",
    {
      ...{ name: "a", value: "1" },
      attributes: { path: "/x", domain: "a.example", expires: new Date(Date.UTC(2026, 9, 21, 7, 28)), maxAge: 60 },
    },
  ],
  [
    "a=1; HttpOnly; Secure ;Partitioned; SameSite=None",
    { name: "a", value: "1", attributes: { httpOnly: true, secure: true, partitioned: true, sameSite: "none" } },
  ],
])("the line %s is read as a framework sets it", (line, cookie) => {
  expect(readSetCookie(line)).toEqual(cookie);
});

test("cookies that a cache of fetch has joined reach the browser one by one", async () => {
  const jar = new Jar();
  jar.take(await signIn("alice"));
  jar.cookies.delete("__Host-access");
  const joining: typeof fetch = async (input, init) => {
    const response = await fetch(input, init);
    // A cache of `fetch` keeps the entries of the headers as an object.
    const own = new Response(response.body, { headers: Object.fromEntries(response.headers) });
    const joined = response.headers.getSetCookie().join(", ");
    own.headers.set("set-cookie", joined);
    return own;
  };
  const names = { accessCookie: "__Host-access", refreshCookie: "__Host-refresh" };
  const { sessions } = aServer(service, kept.verifier, { ...names, fetch: joining });
  const { setCookies, forward, user } = await sessions.authenticate(jar.request());
  expect([user.state, setCookies.length]).toEqual(["active", 3]);
  expect((await sessions.current(forward)).state).toBe("active");
});
