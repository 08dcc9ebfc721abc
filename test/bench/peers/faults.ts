/** Faults of clients, networks, thieves and stores: who is signed out, and who is served. */
import { setTimeout as sleep } from "node:timers/promises";
import { type Held, inTurns, logIn, type Running, refresh, type Store } from "./contenders/contender.ts";

const TABS = 10;
/** How far apart tabs refresh that do not do so at the same moment: a response takes longer on most networks. */
const APART_MS = 20;
/** When a client repeats a refresh whose response was lost. */
const RETRY_MS = 15_000;
/** How long a user and a thief wait for their turns, and how many turns there are. */
const [TURN_MS, TURNS] = [12_000, 10];
/** How long the store is away, how often a user refreshes meanwhile, and afterwards, and how long afterwards a user is waited for. */
const [OUTAGE_MS, USE_MS, AGAIN_MS, WAIT_MS] = [20_000, 1_000, 100, 60_000];

/** Does something for a number of users at the same time. */
const forUsers = <T>(users: number, act: () => Promise<T>) => Promise.all(Array.from({ length: users }, act));
const count = (outcomes: readonly boolean[], what: boolean) => String(outcomes.filter((is) => is === what).length);
const isSignedIn = async (running: Running, held: Held) => (await refresh(running, held)).result === "served";

/**
 * Tabs of one browser refresh with the same token, and the browser keeps the last response that brings something. A server that reads a
 * token before it marks the token as used may serve tabs of the same moment, and not those that are some ms apart.
 */
function tabs(users: number, apartMs: number) {
  return async (running: Running): Promise<readonly string[]> => {
    const signedIn = await forUsers(users, async () => {
      const held = await logIn(running);
      let last = held;
      const inTab = async (_: unknown, tab: number) => {
        await sleep(tab * apartMs);
        const outcome = await refresh(running, held);
        if (outcome.result === "served") last = outcome;
      };
      await Promise.all(Array.from({ length: TABS }, inTab));
      return isSignedIn(running, last);
    });
    return [count(signedIn, false)];
  };
}

/** The response to a refresh is lost, and the client refreshes again with what it has. */
async function lostResponse(users: number, running: Running): Promise<readonly string[]> {
  const signedIn = await forUsers(users, async () => {
    const held = await logIn(running);
    await refresh(running, held);
    await sleep(RETRY_MS);
    return isSignedIn(running, await refresh(running, held));
  });
  return [count(signedIn, false)];
}

/** A thief has a copy of what a user holds. Both refresh in turns, and the user begins. */
async function theft(running: Running): Promise<readonly string[]> {
  const stolen = await logIn(running);
  const hands = [stolen, stolen];
  let thiefServed = 0;
  for (let turn = 0; turn < TURNS; turn++) {
    await sleep(TURN_MS);
    const who = turn % 2;
    const outcome = await refresh(running, hands[who] ?? stolen);
    if (outcome.result !== "served") return [String(thiefServed), `${((turn + 1) * TURN_MS) / 1_000} s`];
    hands[who] = outcome;
    thiefServed += who;
  }
  return [String(thiefServed), "never"];
}

const ABSENCES: readonly ((store: Store) => Promise<() => Promise<void>>)[] = [
  async (store) => {
    store.pause();
    return async () => store.resume();
  },
  async (store) => {
    await store.shutDown();
    return store.start;
  },
];

/** The store stalls, and later is stopped and started again. Users refresh all the time, and give a request up after 15 s. */
async function outages(users: number, running: Running): Promise<readonly string[]> {
  const { store } = running;
  if (store === undefined) return ["–", "–", "–"];
  const [refused, out, waits]: [boolean[], boolean[], number[]] = [[], [], []];
  for (const begin of ABSENCES) {
    const sessions = await forUsers(users, () => logIn(running));
    const end = await begin(store);
    let backAt: number | undefined;
    const using = sessions.map(async (session) => {
      let held: Held = session;
      let isRefused = false;
      for (;;) {
        const outcome = await running.refresh(held);
        held = outcome;
        isRefused ||= outcome.result === "refused";
        const sinceBack = backAt === undefined ? undefined : performance.now() - backAt;
        if (sinceBack !== undefined && (outcome.result === "served" || sinceBack > WAIT_MS)) {
          refused.push(isRefused);
          out.push(outcome.result !== "served");
          if (outcome.result === "served") waits.push(sinceBack);
          return;
        }
        await sleep(sinceBack === undefined ? USE_MS : AGAIN_MS);
      }
    });
    await sleep(OUTAGE_MS);
    await end();
    backAt = performance.now();
    await Promise.all(using);
  }
  return [
    count(refused, true),
    count(out, true),
    waits.length === 0 ? "–" : `${(Math.max(...waits) / 1_000).toFixed(1)} s`,
  ];
}

/** Returns the cells of each contender. What mostly waits runs at the same time. */
export async function faults(all: readonly Running[], users: number): Promise<string[][]> {
  const columns: (readonly string[])[][] = [];
  for (const scenario of [tabs(users, 0), tabs(users, APART_MS)]) columns.push(await inTurns(all, scenario));
  const waiting = [(each: Running) => lostResponse(users, each), (each: Running) => outages(users, each), theft];
  for (const scenario of waiting) columns.push(await Promise.all(all.map(scenario)));
  return all.map((_, at) => columns.flatMap((column) => column[at] ?? []));
}

/** Returns the title of each cell. */
export const faultTitles = (users: number): readonly string[] => [
  ...[`${TABS} tabs at once: out, of ${users}`, `${APART_MS} ms apart`, "lost response"],
  ...[`store away: refused, of ${ABSENCES.length * users}`, "out", "last served after", "thief served", "out after"],
];
