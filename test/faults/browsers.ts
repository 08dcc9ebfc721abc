/**
 * Simulates honest browsers. Each has one cookie jar, two tabs that refresh on their own schedules, logouts that are repeated until the
 * outcome is known, and then another login. Meanwhile the credentials of ended sessions are presented again and again.
 *
 * Some tests send the same requests at a steady rate instead, without waiting for responses.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Verifier } from "../../src/verifier/index.ts";
import { cookie, somebody, successor } from "../support/sessions.ts";
import { exchange, newTally, type Reply, type Tally } from "./tally.ts";

export type Instance = { readonly publicUrl: string; readonly adminUrl: string };

export type Fleet = {
  readonly adminToken: string;
  readonly reuseIntervalMs: number;
  /** Returns an instance that a load balancer would choose. */
  pick(): Instance;
};

type Login = {
  refreshToken: string;
  accessToken: string;
  /** Whether a logout has been sent for this login. */
  leaving: boolean;
  /**
   * Whether a request of this login took longer than half of the reuse interval. Such a login may be refused wrongly: the guarantee of the
   * service does not cover it.
   */
  isBeyondPromise: boolean;
  /** The time at which a logout was acknowledged. */
  endedAt?: number;
  /**
   * Whether the check of the ended session is finished: the session was refused, as it must be, or it was served and that fault was
   * counted.
   */
  isSettled: boolean;
};

/** The live sessions. `coming` is the number of logins under way. */
type Pool = { readonly live: Set<Login>; coming: number };

const TABS = 2;
/** How long a tab waits between refreshes, ms. */
const PAUSE_MS = [200, 1_200] as const;
/** The probability that a browser logs out instead of refreshing. */
const LEAVES = 0.08;
/** The number of sessions for the requests that are sent at a steady rate. */
const SESSIONS = 20;
/** The fewest requests of a run, however slow the machine is. */
export const MIN_REQUESTS = 30;
/** The probability that a simulated browser presents a session that has ended. */
const PRESENTS = 0.05;
/** How old a verifier's knowledge may be, ms; after that it must refuse. */
export const MAX_STALENESS_MS = 2_000;

const RPC = "/auth.admin.v1.SessionAdminService";
const oneOf = <T>(list: readonly T[]): T | undefined => list[Math.floor(Math.random() * list.length)];
const between = ([from, to]: readonly [number, number]) => from + Math.random() * (to - from);

export class Browsers {
  tally: Tally = newTally();
  readonly #fleet: Fleet;
  readonly #verifier: Verifier;
  readonly #ended: Login[] = [];
  readonly #running: Promise<void>[];
  #isOver = false;

  constructor(fleet: Fleet, verifier: Verifier, count: number) {
    this.#fleet = fleet;
    this.#verifier = verifier;
    this.#running = Array.from({ length: count }, () => this.#browse());
    if (count > 0) this.#running.push(this.#presentEnded());
  }

  /**
   * Sends requests until `end`, and at least `MIN_REQUESTS`, without waiting for responses, and never more than `perSecond`: on a busy
   * machine, requests that were sent late would come at once and be refused as an overload. Resolves when each request has its response.
   */
  async offer(perSecond: number, end: Promise<unknown>): Promise<void> {
    let isOver = false;
    const finish = () => {
      isOver = true;
    };
    end.then(finish, finish);
    const pool: Pool = { live: new Set(), coming: 0 };
    const sent: Promise<void>[] = [];
    while (!isOver || sent.length < MIN_REQUESTS) {
      sent.push(this.#offerOne(pool));
      await sleep(1_000 / perSecond);
    }
    await Promise.all([end, ...sent]);
  }

  async #offerOne(pool: Pool): Promise<void> {
    const { live } = pool;
    const ended = oneOf(this.#ended);
    if (ended !== undefined && Math.random() < PRESENTS) return this.#present(ended);
    const login = live.size + pool.coming < SESSIONS ? undefined : oneOf([...live]);
    if (login === undefined) {
      pool.coming++;
      const fresh = await this.#logIn();
      pool.coming--;
      if (fresh !== undefined) live.add(fresh);
      return;
    }
    if (Math.random() < LEAVES) {
      live.delete(login);
      login.leaving = true;
      return this.#leave(login);
    }
    await this.#refresh(login);
    if (login.isSettled) live.delete(login);
  }

  /** Stops the browsers, and then presents the token of every ended session once more. */
  async stop(): Promise<void> {
    this.#isOver = true;
    await Promise.all(this.#running);
    for (const login of this.#ended) await this.#present(login);
  }

  async #browse(): Promise<void> {
    while (!this.#isOver) {
      const login = await this.#logIn();
      if (login === undefined) {
        await sleep(200);
        continue;
      }
      const tabs = Array.from({ length: TABS }, () => this.#tab(login));
      await Promise.all(tabs);
      if (login.leaving) await this.#leave(login);
    }
  }

  async #tab(login: Login): Promise<void> {
    while (!this.#isOver && !login.leaving && !login.isSettled) {
      await sleep(between(PAUSE_MS));
      if (Math.random() < LEAVES) login.leaving = true;
      else if (!login.leaving) await this.#refresh(login);
    }
  }

  async #logIn(): Promise<Login | undefined> {
    const { adminUrl } = this.#fleet.pick();
    const { status, body } = await this.#admin(adminUrl, "CreateSession", { subject: somebody() });
    if (status !== 200) return undefined;
    const { refreshToken, accessToken } = JSON.parse(body) as { refreshToken: string; accessToken: string };
    return { refreshToken, accessToken, leaving: false, isBeyondPromise: false, isSettled: false };
  }

  async #refresh(login: Login): Promise<void> {
    const { publicUrl } = this.#fleet.pick();
    const reply = await exchange(this.tally, publicUrl, "POST", "/v1/auth/refresh", cookie(login.refreshToken));
    this.#note(login, reply);
    if (reply.status === 200) {
      login.refreshToken = successor(reply) ?? login.refreshToken;
      login.accessToken = (JSON.parse(reply.body) as { data: { accessToken: string } }).data.accessToken;
    } else if (reply.status === 401) {
      if (!login.isSettled && !login.leaving) this.#countRefusal(login);
      login.isSettled = true; // The session has ended. The tab stops, and the browser logs in again.
    }
  }

  #note(login: Login, { tookMs }: Reply): void {
    if (tookMs > this.#fleet.reuseIntervalMs / 2) login.isBeyondPromise = true;
  }

  #countRefusal(login: Login): void {
    if (login.isBeyondPromise) this.tally.late401++;
    else this.tally.wrong401++;
  }

  /** Logs out, again and again until the outcome is known. */
  async #leave(login: Login): Promise<void> {
    for (let attempt = 0; attempt < 100; attempt++) {
      const { publicUrl } = this.#fleet.pick();
      // The cookie is sent along, as in browsers: with it, the service also accepts an access token that has just expired.
      const credentials = { authorization: `Bearer ${login.accessToken}`, ...cookie(login.refreshToken) };
      const reply = await exchange(this.tally, publicUrl, "DELETE", "/v1/auth/logout", credentials);
      const { status } = reply;
      this.#note(login, reply);
      // 401 on the first attempt is a fault. On a later attempt it may be right: an earlier attempt without a response may have ended the
      // session.
      if (status === 401 && attempt === 0 && !login.isSettled) this.#countRefusal(login);
      if (status === 200 || status === 401) {
        login.endedAt = performance.now();
        login.isSettled = false;
        this.#ended.push(login);
        return;
      }
      await sleep(200);
    }
  }

  /** Presents the credentials of ended sessions while the browsers continue to send requests. */
  async #presentEnded(): Promise<void> {
    while (!this.#isOver) {
      await sleep(50);
      const login = oneOf(this.#ended);
      if (login !== undefined) await this.#present(login);
    }
  }

  async #present(login: Login): Promise<void> {
    if (login.isSettled) return;
    const { publicUrl, adminUrl } = this.#fleet.pick();
    const refreshed = await exchange(this.tally, publicUrl, "POST", "/v1/auth/refresh", cookie(login.refreshToken));
    const introspected = await this.#admin(adminUrl, "IntrospectToken", { token: login.accessToken });
    const isActive = introspected.status === 200 && (JSON.parse(introspected.body) as { active?: boolean }).active;
    if (refreshed.status === 200) this.tally.undone++;
    // A verifier may be behind by its maximum staleness. After that it must refuse tokens of ended sessions.
    const isOld = performance.now() - (login.endedAt ?? 0) > 2 * MAX_STALENESS_MS;
    const isAccepted = isOld && (await this.#verifier.verify(login.accessToken)).ok;
    if (isActive === true || isAccepted) this.tally.deadAccepted++;
    // A session that was served after its end is counted only once.
    if (refreshed.status === 200 || isActive === true || isAccepted) login.isSettled = true;
  }

  #admin(url: string, method: string, message: unknown) {
    const authorization = `Bearer ${this.#fleet.adminToken}`;
    return exchange(this.tally, url, "POST", `${RPC}/${method}`, { authorization }, message);
  }
}

/** Returns whether an instance serves a login, a refresh and a logout. */
export async function serves(instance: Instance, adminToken: string): Promise<boolean> {
  const uncounted = newTally();
  const authorization = `Bearer ${adminToken}`;
  const created = await exchange(
    uncounted,
    instance.adminUrl,
    "POST",
    `${RPC}/CreateSession`,
    { authorization },
    {
      subject: somebody(),
    },
  );
  if (created.status !== 200) return false;
  const { refreshToken, accessToken } = JSON.parse(created.body) as { refreshToken: string; accessToken: string };
  const refreshed = await exchange(uncounted, instance.publicUrl, "POST", "/v1/auth/refresh", cookie(refreshToken));
  const bearer = { authorization: `Bearer ${accessToken}` };
  const ended = await exchange(uncounted, instance.publicUrl, "DELETE", "/v1/auth/logout", bearer);
  return refreshed.status === 200 && ended.status === 200;
}
