/** The browser kit on pages with hostile or faulty neighbours: cookies that a sibling domain sets, messages of other scripts. */
import { describe, expect, test, vi } from "vitest";
import { TOKEN_LIFE_S, World } from "./world.ts";

const HINT = { hintCookie: "session_hint" };
const NAME = "session/1:https://app.example";
const world = () => new World(() => 0.5);

/** Runs virtual time until a call is completed. */
async function completed<T>(here: World, promise: Promise<T>): Promise<T | string> {
  const outcome = promise.catch(
    (error: { readonly reason?: string; readonly name: string }) => error.reason ?? error.name,
  );
  await here.run(2_000);
  return outcome;
}

const sidOf = (token: string): unknown =>
  JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString()).sid;

describe("the hint cookie", () => {
  test.each(["", "s9"])(
    "of a sibling domain (%j) beside the service's ends nothing, and causes no refresh",
    async (value) => {
      const here = world();
      const tabs = [here.open(HINT), here.open(HINT)];
      for (const { session } of tabs) await completed(here, session.accessToken());
      here.planted = [`session_hint=${value}`];
      for (const tab of tabs) {
        here.dispatch(tab, "visibilitychange");
        expect(sidOf(await completed(here, tab.session.accessToken()))).toBe("s0");
      }
      expect(tabs.map(({ session }) => session.snapshot.state)).toEqual(["active", "active"]);
      expect(here.refreshes).toBe(1);
    },
  );

  test("is looked at with each call: after another user's sign-in no call returns the former user's token", async () => {
    const here = world();
    const tab = here.open(HINT);
    expect(sidOf(await completed(here, tab.session.accessToken()))).toBe("s0");
    const sid = here.signInByPage();
    here.subject = "bob";
    for (let call = 0; call < 8; call++) expect(sidOf(await completed(here, tab.session.accessToken()))).toBe(sid);
    expect(here.refreshes).toBe(2);
  });

  test("that is gone ends the session with the next call", async () => {
    const here = world();
    const tab = here.open(HINT);
    await completed(here, tab.session.accessToken());
    here.revoke();
    expect(await completed(here, tab.session.accessToken())).toBe("ended");
    expect(here.refreshes).toBe(1);
  });
});

test("a page sees that somebody else is signed in than before, until it is loaded again", async () => {
  const here = world();
  const tab = here.open();
  await completed(here, tab.session.accessToken());
  expect(tab.session.snapshot.changed).toBe(false);
  // A sibling domain sets the cookie of another session.
  here.signedIn = "s-mallory";
  here.subject = "mallory";
  await here.run(TOKEN_LIFE_S * 1_000);
  expect(tab.session.snapshot).toMatchObject({ state: "active", changed: true, claims: { sub: "mallory" } });
  await here.run(TOKEN_LIFE_S * 1_000);
  expect(tab.session.snapshot.changed).toBe(true);
  // If the same user signs in again, the session is new, but the user is not reported as changed.
  const other = here.open();
  await completed(here, other.session.accessToken());
  here.signIn();
  await completed(here, other.session.begin());
  expect(other.session.snapshot).toMatchObject({ state: "active", changed: false });
});

describe("a message of another script on the channel", () => {
  const TYPES = [
    "__proto__",
    "constructor",
    "toString",
    "__defineGetter__",
    "hasOwnProperty",
    "nonsense",
    undefined,
    1,
  ];
  test.each(TYPES.map((type) => [type]))("of the type %j does nothing", async (type) => {
    const here = world();
    const tab = here.open();
    const token = await completed(here, tab.session.accessToken());
    for (const message of [{ type }, { type, __proto__: { sid: "s0" } }, null, "text"]) {
      for (const { name, onmessage } of here.channels) {
        if (name === NAME) expect(() => onmessage?.({ data: message })).not.toThrow();
      }
    }
    expect(await completed(here, tab.session.accessToken())).toBe(token);
    expect(here.refreshes).toBe(1);
  });

  test.each([Number.POSITIVE_INFINITY, 1e15, Number.NaN, "1e9"])(
    "asks to wait for %j ms: not longer than ten minutes",
    async (waitMs) => {
      const here = world();
      const tab = here.open();
      await completed(here, tab.session.accessToken());
      here.network = "offline";
      await here.run(TOKEN_LIFE_S * 1_000);
      const message = { type: "failed", waitMs, atMs: here.nowMs + here.wallOffsetMs };
      for (const { name, onmessage } of here.channels) if (name === NAME) onmessage?.({ data: message });
      here.network = "up";
      await here.run(660_000);
      expect(tab.session.snapshot.state).toBe("active");
    },
  );
});

test("a fetch in the mode no-cors, in which browsers drop the token silently, is refused", async () => {
  const here = world();
  const { session } = here.open();
  expect(await completed(here, session.fetch("https://app.example/api", { mode: "no-cors" }))).toBe("TypeError");
  expect(here.attempts).toBe(0);
});

test("a browser without AbortSignal.any is served", async () => {
  vi.stubGlobal("AbortSignal", Object.assign(Object.create(AbortSignal), { any: undefined }));
  try {
    const here = world();
    expect(sidOf(await completed(here, here.open().session.accessToken()))).toBe("s0");
  } finally {
    vi.unstubAllGlobals();
  }
});
