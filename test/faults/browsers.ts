/**
 * Honest browsers and their judge: one cookie jar each, two tabs that refresh on their own schedules, logouts that are
 * repeated until somebody answers, and then another login. What was ended is presented again and again.
 */
import { setTimeout as sleep } from "node:timers/promises";
import type { Verifier } from "../../src/verifier/index.ts";
import { cookie, somebody, successor } from "../support/sessions.ts";
import { exchange, newTally, type Tally } from "./tally.ts";

export type Instance = { readonly publicUrl: string; readonly adminUrl: string };

export type Fleet = {
  readonly adminToken: string;
  /** An instance that a load balancer would choose. */
  pick(): Instance;
};

type Login = {
  refreshToken: string;
  accessToken: string;
  /** A logout has been sent. */
  leaving: boolean;
  /** When a logout was acknowledged. */
  endedAt?: number;
  judged?: boolean;
};

const TABS = 2;
/** How long a tab waits between refreshes, ms. */
const PAUSE = [200, 1_200] as const;
/** How likely a browser logs out instead of refreshing. */
const LEAVES = 0.08;
/** How old a verifier's knowledge may be, ms; after that it must refuse. */
export const MAX_STALENESS = 2_000;

const RPC = "/auth.admin.v1.SessionAdminService";
const between = ([from, to]: readonly [number, number]) => from + Math.random() * (to - from);

export class Browsers {
  tally: Tally = newTally();
  readonly #fleet: Fleet;
  readonly #verifier: Verifier;
  readonly #graveyard: Login[] = [];
  readonly #running: Promise<void>[];
  #over = false;

  constructor(fleet: Fleet, verifier: Verifier, count: number) {
    this.#fleet = fleet;
    this.#verifier = verifier;
    this.#running = Array.from({ length: count }, () => this.#browse());
    this.#running.push(this.#haunt());
  }

  /** Ends the visits, and presents all that was ended once more. */
  async stop(): Promise<void> {
    this.#over = true;
    await Promise.all(this.#running);
    for (const login of this.#graveyard) await this.#judge(login);
  }

  async #browse(): Promise<void> {
    while (!this.#over) {
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
    while (!this.#over && !login.leaving && login.judged !== true) {
      await sleep(between(PAUSE));
      if (Math.random() < LEAVES) login.leaving = true;
      else if (!login.leaving) await this.#refresh(login);
    }
  }

  async #logIn(): Promise<Login | undefined> {
    const { adminUrl } = this.#fleet.pick();
    const { status, body } = await this.#admin(adminUrl, "CreateSession", { subject: somebody() });
    if (status !== 200) return undefined;
    const { refreshToken, accessToken } = JSON.parse(body) as { refreshToken: string; accessToken: string };
    return { refreshToken, accessToken, leaving: false };
  }

  async #refresh(login: Login): Promise<void> {
    const { publicUrl } = this.#fleet.pick();
    const reply = await exchange(this.tally, publicUrl, "POST", "/v1/auth/refresh", cookie(login.refreshToken));
    if (reply.status === 200) {
      login.refreshToken = successor(reply) ?? login.refreshToken;
      login.accessToken = (JSON.parse(reply.body) as { data: { accessToken: string } }).data.accessToken;
    } else if (reply.status === 401) {
      if (login.judged !== true && !login.leaving) this.tally.wrong401++;
      login.judged = true; // and logs in again
    }
  }

  /** Logs out, again and again until it is known. */
  async #leave(login: Login): Promise<void> {
    for (let attempt = 0; attempt < 100; attempt++) {
      const { publicUrl } = this.#fleet.pick();
      // A browser sends its cookie along, which makes up for an access token that has just expired.
      const credentials = { authorization: `Bearer ${login.accessToken}`, ...cookie(login.refreshToken) };
      const { status } = await exchange(this.tally, publicUrl, "DELETE", "/v1/auth/logout", credentials);
      // The first one may have been done although nobody said so.
      if (status === 401 && attempt === 0 && login.judged !== true) this.tally.wrong401++;
      if (status === 200 || status === 401) {
        login.endedAt = performance.now();
        login.judged = false;
        this.#graveyard.push(login);
        return;
      }
      await sleep(200);
    }
  }

  /** Presents ended sessions while the browsers go on. */
  async #haunt(): Promise<void> {
    while (!this.#over) {
      await sleep(50);
      const login = this.#graveyard[Math.floor(Math.random() * this.#graveyard.length)];
      if (login !== undefined) await this.#judge(login);
    }
  }

  async #judge(login: Login): Promise<void> {
    if (login.judged === true) return;
    const { publicUrl, adminUrl } = this.#fleet.pick();
    const refreshed = await exchange(this.tally, publicUrl, "POST", "/v1/auth/refresh", cookie(login.refreshToken));
    const introspected = await this.#admin(adminUrl, "IntrospectToken", { token: login.accessToken });
    const isActive = introspected.status === 200 && (JSON.parse(introspected.body) as { active?: boolean }).active;
    if (refreshed.status === 200) this.tally.undone++;
    // A verifier may be that much behind; it must refuse when it is more.
    const isOld = performance.now() - (login.endedAt ?? 0) > 2 * MAX_STALENESS;
    const isTaken = isOld && (await this.#verifier.verify(login.accessToken)).ok;
    if (isActive === true || isTaken) this.tally.deadAccepted++;
    if (refreshed.status === 200 || isActive === true || isTaken) login.judged = true; // counted
  }

  #admin(url: string, method: string, message: unknown) {
    const authorization = `Bearer ${this.#fleet.adminToken}`;
    return exchange(this.tally, url, "POST", `${RPC}/${method}`, { authorization }, message);
  }
}

/** Whether an instance serves everything: a login, a refresh, a logout. */
export async function serves(instance: Instance, adminToken: string): Promise<boolean> {
  const unseen = newTally();
  const authorization = `Bearer ${adminToken}`;
  const created = await exchange(
    unseen,
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
  const refreshed = await exchange(unseen, instance.publicUrl, "POST", "/v1/auth/refresh", cookie(refreshToken));
  const bearer = { authorization: `Bearer ${accessToken}` };
  const ended = await exchange(unseen, instance.publicUrl, "DELETE", "/v1/auth/logout", bearer);
  return refreshed.status === 200 && ended.status === 200;
}
