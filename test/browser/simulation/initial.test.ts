/** A page that a server has rendered starts with the session state that the server passed to it. */
import { describe, expect, test } from "vitest";
import { TOKEN_LIFE_S, World } from "./world.ts";

const IAT = 1_000;
const claims = { sub: "alice", sid: "s0", jti: "t0", iat: IAT, exp: IAT + TOKEN_LIFE_S };
const text = `e30.${Buffer.from(JSON.stringify(claims)).toString("base64url")}.c2ln`;
const hintCookie = "session_hint";

const world = () => new World(() => 0.5);

describe("a page that a server has rendered for somebody", () => {
  test("shows the user at once, and makes no refresh until the token is nearly over", async () => {
    const here = world();
    const { session } = here.open({ initial: { claims, ageMs: 60_000 } });
    expect(session.snapshot).toMatchObject({ state: "active", claims });
    session.subscribe(() => {});
    await here.run((TOKEN_LIFE_S - 60 - 40) * 1000);
    expect([here.attempts, session.snapshot.state]).toEqual([0, "active"]);
    await here.run(60_000);
    expect([here.refreshes, session.snapshot.state]).toEqual([1, "active"]);
  });

  test("uses the token that it was given", async () => {
    const here = world();
    const { session } = here.open({ initial: { claims, text, ageMs: 0 } });
    expect(await session.accessToken()).toBe(text);
    expect(here.attempts).toBe(0);
  });

  test("without a token refreshes with the first call that needs one", async () => {
    const here = world();
    const { session } = here.open({ initial: { claims, ageMs: 0 } });
    const token = session.accessToken();
    await here.run(10_000);
    expect((await token).split(".")).toHaveLength(3);
    expect(here.refreshes).toBe(1);
  });

  test("without a token takes that of another tab", async () => {
    const here = world();
    const first = here.open();
    const [known] = [first.session.accessToken(), await here.run(10_000)];
    const second = here.open({ initial: { claims, ageMs: 0 } });
    const token = second.session.accessToken();
    await here.run(10_000);
    expect(await token).toBe(await known);
    expect(here.refreshes).toBe(1);
  });

  test("notices that somebody else has signed in since, and says so", async () => {
    const here = world();
    here.subject = "bob";
    here.signInByPage();
    const { session } = here.open({ initial: { claims, ageMs: 0 }, hintCookie });
    session.subscribe(() => {});
    expect(session.snapshot.state).toBe("unknown");
    await here.run(10_000);
    expect(session.snapshot).toMatchObject({ state: "active", claims: { sub: "bob" }, changed: true });
  });

  test("notices that the session has ended since, without a request", async () => {
    const here = world();
    here.revoke();
    const { session } = here.open({ initial: { claims, text, ageMs: 0 }, hintCookie });
    expect(session.snapshot.state).toBe("ended");
    await expect(session.accessToken()).rejects.toThrow("ended");
    await here.run(60_000);
    expect(here.attempts).toBe(0);
  });

  test("renders on the server and at hydration what the server knew, whatever has become of it since", async () => {
    const here = world();
    here.revoke();
    const { session } = here.open({ initial: { claims, ageMs: 0 }, hintCookie });
    expect(session.initial).toEqual({ state: "active", claims });
    expect(here.open().session.initial).toEqual({ state: "unknown" });
  });

  test("learns of a sign-in with what the server renders then, and so do the other tabs", async () => {
    const here = world();
    const tabs = [here.open({ initial: { claims, ageMs: 0 } }), here.open({ initial: { claims, ageMs: 0 } })] as const;
    here.subject = "bob";
    const bob = { ...claims, sub: "bob", sid: here.signInByPage(), jti: "t9" };
    await tabs[0].session.begin({ claims: bob, ageMs: 0 });
    expect(tabs[0].session.snapshot).toMatchObject({ state: "active", claims: { sub: "bob" }, changed: true });
    expect(here.attempts).toBe(0);
    await here.run(10_000);
    expect(tabs[1].session.snapshot).toMatchObject({ state: "active", claims: { sub: "bob" }, changed: true });
    expect(here.refreshes).toBeLessThanOrEqual(1);
  });

  test("does nothing when the server renders the same session again", async () => {
    const here = world();
    const { session } = here.open({ initial: { claims, ageMs: 0 } });
    const { snapshot } = session;
    await session.begin({ claims: { ...claims, jti: "t9", iat: IAT + 1 }, ageMs: 0 });
    expect([session.snapshot === snapshot, here.attempts]).toEqual([true, 0]);
  });

  test.each([{}, { text }])(
    "stays as it is when its framework shows a page of the former user from a cache",
    async (more) => {
      const here = world();
      const { session } = here.open({ initial: { claims, ageMs: 0, ...more } });
      await here.run(5_000);
      here.subject = "bob";
      const bob = { ...claims, sub: "bob", sid: here.signInByPage(), jti: "t9", iat: IAT + 5 };
      await session.begin({ claims: bob, ageMs: 0 });
      await session.begin({ claims, ageMs: 0, ...more });
      expect(session.snapshot).toMatchObject({ state: "active", claims: { sub: "bob" } });
    },
  );

  test.each([{}, { text }])(
    "stays signed out when its framework shows a page from before the sign-out",
    async (more) => {
      const here = world();
      const [tab, other] = [here.open({ initial: { claims, ageMs: 0, ...more } }), here.open()];
      other.session.subscribe(() => {});
      void tab.session.end();
      await here.run(5_000);
      await tab.session.begin({ claims, ageMs: 0, ...more });
      await here.run(5_000);
      for (const { session } of [tab, other]) expect(session.snapshot.state).toBe("ended");
    },
  );

  test.each([{}, { text }])(
    "stays signed out when its framework shows a page of a user before the last one",
    async (more) => {
      const here = world();
      const [tab, other] = [here.open({ initial: { claims, ageMs: 0, ...more } }), here.open()];
      other.session.subscribe(() => {});
      here.subject = "bob";
      const bob = { ...claims, sub: "bob", sid: here.signIn(), jti: "t9", iat: IAT + 5 };
      await tab.session.begin({ claims: bob, ageMs: 0 });
      void tab.session.end();
      await here.run(5_000);
      await tab.session.begin({ claims, ageMs: 0, ...more });
      for (const { session } of [tab, other]) expect(session.snapshot.state).toBe("ended");
      await here.run(5_000);
      for (const { session } of [tab, other]) expect(session.snapshot.state).toBe("ended");
    },
  );

  test("asks the service if what its server renders looks older than the user it knows, because clocks may differ", async () => {
    const here = world();
    const { session } = here.open({ initial: { claims: { ...claims, iat: IAT + 1 }, ageMs: 0 } });
    here.subject = "bob";
    await session.begin({ claims: { ...claims, sub: "bob", sid: here.signIn(), jti: "t9" }, ageMs: 0 });
    await here.run(5_000);
    expect(session.snapshot).toMatchObject({ state: "active", claims: { sub: "bob" } });
    expect(here.attempts).toBe(1);
  });

  test("signs out", async () => {
    const here = world();
    const { session } = here.open({ initial: { claims, ageMs: 0 } });
    const over = session.end();
    await here.run(1_000);
    await over;
    expect([session.snapshot.state, here.signedIn]).toEqual(["ended", undefined]);
  });
});
