/** How long the signals of a subject are waited for before it is forgotten, and which subscriptions name it. */
import { expect, test } from "vitest";
import type { SessionId } from "../../../src/service/session/model.ts";
import { storeMs } from "../../../src/service/session/time.ts";
import type { KnownSubscription } from "../../../src/service/signals/model.ts";
import { createSubjectSignals } from "../../../src/service/signals/of-subject.ts";
import type { SignalPage } from "../../../src/service/signals/ports.ts";

const subscription = (id: string, more: Partial<KnownSubscription> = {}) =>
  ({ id, kind: "webhook", filter: {}, audience: [], state: "active", ...more }) as KnownSubscription;

const page = (unreadBy: readonly string[], next?: number): SignalPage => {
  const signal = { id: "x", sessionId: "s" as SessionId, reason: "logout", happenedAt: storeMs(1) } as const;
  return { signals: [{ signal, unreadBy }], next };
};

/** Returns signals whose log gives these pages, one after the other, and the last one from then on. Each reading takes a second. */
function signalsOf(known: readonly KnownSubscription[], ...pages: readonly SignalPage[]) {
  const read: number[] = [];
  const log = {
    ofSubject: async (_: string, after: number) => {
      read.push(after);
      return pages[Math.min(read.length, pages.length) - 1] as SignalPage;
    },
  };
  const clock = () => 1_000 * read.length;
  return { read, ...createSubjectSignals({ log, subscriptions: { known: async () => known }, clock }) };
}

test("signals are waited for until every active subscription has read them", async () => {
  const known = [
    subscription("a"),
    subscription("b"),
    subscription("paused", { state: "paused", because: "operator" }),
  ];
  const { read, delivered } = signalsOf(known, page(["a", "b", "paused"]), page(["b", "paused"]), page(["paused"]));
  await delivered("alice");
  expect(read).toEqual([0, 0, 0]);
});

test("every page is looked at", async () => {
  const { read, delivered } = signalsOf([subscription("a")], page([], 7), page(["a"]), page([], 7), page([]));
  await delivered("alice");
  expect(read).toEqual([0, 7, 0, 7]);
});

test("a receiver that does not accept them is waited for only for ten seconds", async () => {
  const { read, delivered } = signalsOf([subscription("a")], page(["a"]));
  await delivered("alice");
  expect(read).toHaveLength(10);
});

test("without active subscriptions nothing is read", async () => {
  const { read, delivered } = signalsOf([subscription("a", { state: "paused", because: "failing" })], page(["a"]));
  await delivered("alice");
  expect(read).toEqual([]);
});

test("subscriptions whose filter names the subject are found", async () => {
  const known = [
    subscription("only", { filter: { subject: "alice" } }),
    subscription("not", { filter: { exceptSubjects: ["bob", "alice"] } }),
    subscription("all"),
    subscription("other", { filter: { subject: "alice2", exceptSubjects: ["bob"] } }),
  ];
  expect(await signalsOf(known).named("alice")).toEqual(["only", "not"]);
});

test("one signal that was not read is waited for among others, and a page is handed on", async () => {
  const [first, second] = [page([]), page(["a"])];
  const both = { signals: [...first.signals, ...second.signals], next: undefined };
  const { read, delivered } = signalsOf([subscription("a")], both, page([]));
  await delivered("alice");
  expect(read).toEqual([0, 0]);
  const asked: unknown[] = [];
  const log = {
    async ofSubject(...args: readonly unknown[]) {
      asked.push(args);
      return first;
    },
  };
  const signals = createSubjectSignals({ log, subscriptions: { known: async () => [] }, clock: () => 0 });
  expect(await signals.page("alice", 3)).toBe(first);
  expect(asked).toEqual([["alice", 3, 500]]);
});
