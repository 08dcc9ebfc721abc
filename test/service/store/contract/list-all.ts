/** Tests that every store has to pass: the list of the sessions of all subjects. */
import { expect, test } from "vitest";
import { EVERY_SESSION, type SessionFilter } from "../../../../src/service/session/admin/filter.ts";
import type { Session, SessionId } from "../../../../src/service/session/model.ts";
import { InvalidCursor, type SessionStore } from "../../../../src/service/session/ports.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { MAX_EXAMINED } from "../../../../src/service/store/search.ts";
import type { Context } from "../../../support/store/context.ts";
import { IDLE, newSession, nonce, SECOND, subject } from "../../../support/store/sessions.ts";

const sids = (sessions: readonly Session[]) => sessions.map(({ sid }) => sid);
const order = (sessions: readonly Session[]) => sessions.map(({ createdAt, sid }) => `${createdAt} ${sid}`);

/** Returns all pages of a list. */
async function pages(store: SessionStore, limit: number, filter: SessionFilter): Promise<(readonly Session[])[]> {
  const seen: (readonly Session[])[] = [];
  let from: string | undefined;
  do {
    const page = await store.listAll(limit, from, filter);
    seen.push(page.sessions);
    from = page.next;
  } while (from !== undefined);
  return seen;
}

export function listAllContract(context: () => Context): void {
  test("the newest sessions of all subjects come first, each once, in as many pages as it takes", async () => {
    const { backend, store, login } = context();
    await backend.advance(SECOND);
    const createdFrom = backend.now();
    const live: SessionId[] = [];
    for (let at = 0; at < 60; at++) {
      live.push((await login(subject())).sid);
      if (at % 3 === 0) await backend.advance(1);
    }
    const seen = await pages(store, 7, { createdFrom });
    expect(seen.map((page) => page.length)).toEqual([7, 7, 7, 7, 7, 7, 7, 7, 4]);
    expect(sids(seen.flat()).sort()).toEqual([...live].sort());
    expect(order(seen.flat())).toEqual(order(seen.flat()).sort().reverse());
    expect(sids((await store.listAll(5, undefined, EVERY_SESSION)).sessions)).toEqual(sids(seen.flat()).slice(0, 5));
  });

  test("many sessions of one subject, created within one millisecond, are all there", async () => {
    const { backend, store, login } = context();
    await backend.advance(SECOND);
    const createdFrom = backend.now();
    const user = subject();
    const live: SessionId[] = [];
    for (let at = 0; at < 90; at++) live.push((await login(user)).sid);
    const seen = await pages(store, 40, { createdFrom });
    expect(sids(seen.flat())).toEqual([...live].sort().reverse());
  });

  test("what has ended, by itself, with others or by expiry, is not there", async () => {
    const { backend, store, login } = context();
    await backend.advance(SECOND);
    const filter = { createdFrom: backend.now() };
    const user = subject();
    await login(subject(), { idleTimeoutMs: SECOND });
    const one = await login(user);
    await login(user);
    const kept = await login(subject());
    await store.end(one.sid, "logout");
    await store.endAll(user, "revoked_subject");
    await backend.advance(SECOND);
    expect(sids((await store.listAll(10, undefined, filter)).sessions)).toEqual([kept.sid]);
    await store.revokeAll(undefined);
    expect(await store.listAll(10, undefined, EVERY_SESSION)).toEqual({ sessions: [], next: undefined });
    await backend.advance(1);
    const after = await login(subject());
    expect(sids((await store.listAll(10, undefined, EVERY_SESSION)).sessions)).toEqual([after.sid]);
  });

  test("a page goes on after a session that has ended meanwhile", async () => {
    const { backend, store, login } = context();
    await backend.advance(SECOND);
    const filter = { createdFrom: backend.now() };
    const old = await login(subject());
    await backend.advance(1);
    const young = await login(subject());
    const { sessions, next } = await store.listAll(1, undefined, filter);
    expect(sids(sessions)).toEqual([young.sid]);
    await store.end(young.sid, "logout");
    expect(await store.listAll(1, next, filter)).toMatchObject({ sessions: [{ sid: old.sid }], next: undefined });
  });

  test("filters by application, device and time hold together, with a subject and without", async () => {
    const { backend, store } = context();
    await backend.advance(SECOND);
    const user = subject();
    const from = backend.now();
    const make = async (clientId: string, userAgent: string, ipAddress: string, displayName = "") => {
      const session = newSession(user, { clientId, client: { userAgent, displayName, ipAddress } });
      await store.create(session, nonce(), { cap: 100 });
      await backend.advance(10);
      return session.sid;
    };
    const [a, b, c] = [
      await make("one", "Firefox/1", "192.0.2.1"),
      await make("two", "Chrome/2", "192.0.2.17"),
      await make("one", "x", "2001:db8::1", "My FIREFOX"),
    ];
    const cases: [SessionFilter, SessionId[]][] = [
      [{}, [c, b, a]],
      [{ clientId: "one" }, [c, a]],
      [{ clientId: "on" }, []],
      [{ device: "fireFox" }, [c, a]],
      [{ device: "chrome", clientId: "one" }, []],
      [{ subjectPrefix: user.slice(0, -1) }, [c, b, a]],
      [{ subjectPrefix: user, ipAddress: "192.0.2.1" }, [a]],
      [{ subjectPrefix: user.slice(1) }, []],
      [{ ipAddress: "192.0.2." }, [b, a]],
      [{ ipAddress: "192.0.2" }, []],
      [{ ipAddress: "2001:db8:" }, [c]],
      [{ createdFrom: storeMs(from + 10) }, [c, b]],
      [{ createdBefore: storeMs(from + 20) }, [b, a]],
      [{ createdFrom: storeMs(from + 10), createdBefore: storeMs(from + 20) }, [b]],
      [{ createdFrom: storeMs(from + 20), createdBefore: storeMs(from + 20) }, []],
    ];
    for (const [filter, expected] of cases) {
      expect(sids((await store.list(user, 10, undefined, filter)).sessions)).toEqual(expected);
      const all = await pages(store, 1, { createdFrom: from, ...filter });
      expect(sids(all.flat())).toEqual(expected);
    }
    const { next } = await store.list(user, 1, undefined, { clientId: "one" });
    expect(sids((await store.list(user, 1, next, { clientId: "one" })).sessions)).toEqual([a]);
  });

  test("a search that finds little examines a bounded number of sessions for each page", async () => {
    const { backend, store } = context();
    await backend.advance(SECOND);
    const createdFrom = backend.now();
    const wanted = newSession(subject(), { clientId: "rare" });
    await store.create(wanted, nonce(), { cap: 10 });
    await backend.advance(1);
    const others = Array.from({ length: MAX_EXAMINED + 50 }, () => newSession(subject()));
    await Promise.all(others.map((session) => store.create(session, nonce(), { cap: 10 })));
    const first = await store.listAll(10, undefined, { clientId: "rare", createdFrom });
    expect(first.sessions).toEqual([]);
    expect(first.next).toBeDefined();
    const second = await store.listAll(10, first.next, { clientId: "rare", createdFrom });
    expect(second).toMatchObject({ sessions: [{ sid: wanted.sid }], next: undefined });
    await backend.advance(IDLE);
  });

  test.each(["", "x", "1.x"])("a made-up page position is refused: %s", async (from) => {
    await expect(context().store.listAll(1, from, EVERY_SESSION)).rejects.toThrow(InvalidCursor);
  });
}
