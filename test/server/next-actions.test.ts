/** The functions for pages and server actions of Next.js. A few lines stand for its functions. */
import { expect, test } from "vitest";
import { createServerSessions, type TokenVerifier } from "../../src/server/index.ts";
import { nextSession } from "../../src/server/next.ts";

const verifier: TokenVerifier = { verify: async () => ({ ok: false, reason: "unavailable" }) };
const sessions = createServerSessions({
  service: "http://service.test",
  fetch: () => Promise.reject(new TypeError("fetch failed")),
  verifier,
});

/** Creates the functions for a request with these headers, and lists what they call. */
function open(headers: Readonly<Record<string, string>>, isBuild = false, login?: string) {
  const calls: string[] = [];
  const source = () => {
    calls.push("kit");
    return sessions;
  };
  const next = {
    async connection() {
      calls.push("connection");
      if (isBuild) throw new Error("Next.js stops prerendering here");
    },
    async headers() {
      calls.push("headers");
      return new Headers(headers);
    },
    async cookies() {
      calls.push("cookies");
      return { set: (name: string) => void calls.push(`set ${name}`) };
    },
    redirect(path: string): never {
      throw new Error(`redirect to ${path}`);
    },
  };
  return { ...nextSession(source, next, login === undefined ? undefined : { login }), calls };
}

test("a build that prerenders a page reads no headers and creates no kit", async () => {
  const { currentUser, calls } = open({}, true);
  await expect(currentUser()).rejects.toThrow("Next.js stops prerendering here");
  expect(calls).toEqual(["connection"]);
});

test("a page whose user cannot be determined redirects nobody: error.tsx recognizes the error", async () => {
  const { requireCurrentUser } = open({ cookie: "access_token=a", "x-session-state": "unavailable" });
  await expect(requireCurrentUser()).rejects.toMatchObject({ name: "SessionError", digest: "session_unavailable" });
});

test.each([
  [undefined, "/login"],
  ["/de/anmelden", "/de/anmelden"],
])("a page without a user, with the login page %s, leads to %s", async (login, path) => {
  const { requireCurrentUser } = open({ "x-session-state": "ended" }, false, login);
  await expect(requireCurrentUser()).rejects.toThrow(`redirect to ${path}`);
});

test("a server action sets the cookies of a login, each with its attributes, and those of a logout", async () => {
  const cookies: unknown[][] = [];
  const urls: string[] = [];
  const fetch = async (url: unknown) => {
    urls.push(String(url));
    return Response.json({ data: {} }, { headers: { "set-cookie": "b=; Path=/; Max-Age=0" } });
  };
  const kit = createServerSessions({ service: "http://service.test", fetch, verifier });
  const { setCookies, signOut } = nextSession(kit, {
    connection: async () => {},
    headers: async () => new Headers({ cookie: "refresh_token=b" }),
    cookies: async () => ({ set: (...given: unknown[]) => void cookies.push(given) }),
    redirect: (path) => {
      throw new Error(`redirect to ${path}`);
    },
  });
  await setCookies(["a=1; Path=/; HttpOnly", "b=%7B; Secure"]);
  expect(cookies.splice(0)).toEqual([
    ["a", "1", { path: "/", httpOnly: true }],
    ["b", "{", { secure: true }],
  ]);
  expect(await signOut()).toEqual({ state: "ended" });
  expect(cookies).toEqual([["b", "", { path: "/", maxAge: 0 }]]);
  await signOut("a session");
  expect(urls).toEqual(["", "?session_id=a+session"].map((query) => `http://service.test/v1/auth/logout${query}`));
});

test("a new cookie is set although the service removes cookies of the same name from other scopes", async () => {
  // Next.js keeps one cookie of each name.
  const cookies = new Map<string, unknown[]>();
  const { setCookies } = nextSession(sessions, {
    connection: async () => {},
    headers: async () => new Headers(),
    cookies: async () => ({ set: (name: string, ...given: unknown[]) => void cookies.set(name, given) }),
    redirect: (path) => {
      throw new Error(`redirect to ${path}`);
    },
  });
  const removed = ["a=; Path=/; Domain=example.com; Max-Age=0", "a=; Path=/v1/auth; Max-Age=0"];
  for (const lines of [
    ["a=1; Path=/; Max-Age=60", ...removed],
    [...removed, "a=1; Path=/; Max-Age=60"],
  ]) {
    await setCookies(lines);
    expect([...cookies]).toEqual([["a", ["1", { path: "/", maxAge: 60 }]]]);
  }
  // At a logout, the first removal is that from the present scope.
  await setCookies(["a=; Path=/; Max-Age=0", ...removed]);
  expect([...cookies]).toEqual([["a", ["", { path: "/", maxAge: 0 }]]]);
});

test("a logout while the service cannot be reached removes no cookie", async () => {
  const { signOut, calls } = open({ cookie: "access_token=a; refresh_token=b" });
  expect(await signOut()).toEqual({ state: "unavailable" });
  expect(calls.filter((call) => call.startsWith("set"))).toEqual([]);
});
