/**
 * Searches the state machine of the kit in every order of events: two tabs, two sessions, refreshes whose responses come late or never,
 * messages that overtake each other or are lost, ends of sessions, sign-ins, and reads of the hint cookie. The search ends when it finds no
 * new state.
 */
import { expect, test } from "vitest";
import * as machine from "../../../src/browser/machine.ts";
import type { HeldToken } from "../../../src/browser/token.ts";

const TABS = [0, 1] as const;
const SESSIONS = 2;
/** How many tokens the service issues. Two are enough, because the rules only compare which of two tokens is newer. */
const REFRESHES = 2;
/** How many messages may be under way to a tab. */
const MAILBOX = 1;

type Message =
  | { readonly type: "token"; readonly sid: string; readonly iat: number }
  | { readonly type: "ended"; readonly sid: string | undefined }
  | { readonly type: "failed" }
  | { readonly type: "began" };

type Tab = {
  readonly known: machine.Known;
  /** The response to the tab's request that is under way, and the state of the tab when it sent the request. */
  readonly response?: { readonly sid: string | undefined; readonly iat: number; readonly version: number } | undefined;
  readonly mailbox: readonly Message[];
};

type World = {
  /** How many sessions have been created. The browser's cookie belongs to the latest of them, unless that session has ended. */
  readonly begun: number;
  readonly over: readonly string[];
  readonly refreshes: number;
  readonly tabs: readonly [Tab, Tab];
};

const tokenOf = (sid: string, iat: number) => ({ claims: { sid, iat, exp: iat + 300 } }) as unknown as HeldToken;
const signedIn = ({ begun, over }: World) => (over.includes(`s${begun}`) ? undefined : `s${begun}`);

/** Returns a key that is equal for two states if they have the same future. */
function keyOf(world: World): string {
  return JSON.stringify(world, (name, value) => {
    if (name === "tabs") return (value as Tab[]).map((tab) => ({ ...tab, isVoid: tab.response && isLate(tab) }));
    return ["version", "failures", "waitMs", "exp", "doubtful"].includes(name) ? undefined : value;
  });
}
const isLate = ({ known, response }: Tab) => response?.version !== known.version;

function withTab(world: World, index: number, tab: Partial<Tab>): World {
  const tabs = world.tabs.map((one, at) => (at === index ? { ...one, ...tab } : one)) as [Tab, Tab];
  return { ...world, tabs };
}

function tell(world: World, from: number, message: Message): World {
  const to = 1 - from;
  const { mailbox } = world.tabs[to] as Tab;
  return mailbox.length < MAILBOX ? withTab(world, to, { mailbox: [...mailbox, message] }) : world;
}

function ended(world: World, index: number, known: machine.Known): World {
  const over = machine.end(known);
  return tell(withTab(world, index, { known: over }), index, { type: "ended", sid: over.endedSid });
}

/** Delivers the response to the refresh of a tab. Returns the state after it. */
function respond(world: World, index: number): World {
  const { known, response } = world.tabs[index] as Tab;
  const without = withTab(world, index, { response: undefined });
  if (response === undefined || response.version !== known.version) return without;
  if (response.sid === undefined) return ended(without, index, known);
  const next = machine.receive(known, tokenOf(response.sid, response.iat));
  const then = withTab(without, index, { known: next });
  return next.token?.claims.iat === response.iat && next.token.claims.sid === response.sid
    ? tell(then, index, { type: "token", sid: response.sid, iat: response.iat })
    : then;
}

function hear(known: machine.Known, message: Message, hint: string | undefined): machine.Known {
  if (message.type === "began") return machine.begin(known);
  if (message.type === "failed") return machine.fail(known, 1_000);
  if (message.type === "ended") return machine.hearEnd(known, message);
  return machine.take(known, tokenOf(message.sid, message.iat), hint);
}

function* after(world: World, hinted: boolean): Generator<World> {
  const sid = signedIn(world);
  const hint = hinted ? (sid ?? "") : undefined;
  if (sid !== undefined) yield { ...world, over: [...world.over, sid] };
  for (const index of TABS) {
    const { known, response, mailbox } = world.tabs[index];
    if (world.begun + 1 < SESSIONS) {
      const next = { ...world, begun: world.begun + 1 };
      yield tell(withTab(next, index, { known: machine.begin(known) }), index, { type: "began" });
      // A page that does not contain the kit signs in, which changes the cookie. No message announces the new session to the tabs.
      yield next;
    }
    if (response === undefined && known.state !== "ended" && (sid === undefined || world.refreshes < REFRESHES)) {
      const refreshes = sid === undefined ? world.refreshes : world.refreshes + 1;
      yield withTab({ ...world, refreshes }, index, { response: { sid, iat: refreshes, version: known.version } });
    }
    if (response !== undefined) {
      yield respond(world, index);
      const lost = withTab(world, index, { response: undefined, known: machine.fail(known, 1_000) });
      yield isLate(world.tabs[index])
        ? withTab(world, index, { response: undefined })
        : tell(lost, index, { type: "failed" });
    }
    for (const [at, message] of mailbox.entries()) {
      const rest = mailbox.filter((_, other) => other !== at);
      yield withTab(world, index, { mailbox: rest });
      yield withTab(world, index, { mailbox: rest, known: hear(known, message, hint) });
    }
    if (hint === "") yield ended(world, index, known);
    // The cookie may have changed since the tab last read it, or not.
    else for (const former of [hint, ""]) yield withTab(world, index, { known: machine.look(known, hint, former) });
  }
}

/** Returns the rule that a step between two states violates; undefined if it violates none. */
function wrong(before: World, now: World, hinted: boolean): string | undefined {
  for (const index of TABS) {
    const [was, is] = [before.tabs[index].known, now.tabs[index].known];
    if (was === is) continue;
    const [old, held] = [was.token?.claims, is.token?.claims];
    if (is.state === "ended" && was.state !== "ended" && old?.sid && !now.over.includes(old.sid)) {
      // A page may learn from its own request or from the hint cookie that nobody is signed in. The page may then report the end of its
      // session, although the service has not ended that session.
      if (signedIn(now) !== undefined || now.begun === 0) return `a session ended that lives: ${old.sid}`;
    }
    if (held?.sid && held.sid === was.endedSid) return "an ended session came back";
    if (held && old && held.sid === old.sid && held.iat < old.iat) return "an older token replaced a newer one";
    if ((held !== old || is.endedSid !== was.endedSid) && is.state === "active" && is.version <= was.version) {
      return "a token that makes nothing void";
    }
    const isHeard = now.tabs[index].mailbox.length < before.tabs[index].mailbox.length;
    if (hinted && isHeard && held && held !== old && held.sid !== signedIn(now))
      return "a token that the hint contradicts";
    if (is.state === "ended" && held) return "a token of an ended session is held";
    if (is.state === "active" && !held) return "active without a token";
  }
  return undefined;
}

test.each([
  ["with", true],
  ["without", false],
])("no order of events ends a session wrongly, or brings one back, %s the hint cookie", (_, hinted) => {
  const tab: Tab = { known: machine.BEGINNING, mailbox: [] };
  const start: World = { begun: 0, over: [], refreshes: 0, tabs: [tab, tab] };
  const seen = new Set([keyOf(start)]);
  let edge = [start];
  const failures = new Set<string>();
  while (edge.length > 0) {
    const next: World[] = [];
    for (const world of edge) {
      for (const then of after(world, hinted)) {
        const failure = wrong(world, then, hinted);
        if (failure !== undefined) failures.add(`${failure}: ${keyOf(world)} → ${keyOf(then)}`);
        const key = keyOf(then);
        if (!seen.has(key)) next.push(then);
        seen.add(key);
      }
    }
    edge = next;
  }
  expect([...failures].slice(0, 3)).toEqual([]);
  expect(seen.size).toBeGreaterThan(5_000);
});
