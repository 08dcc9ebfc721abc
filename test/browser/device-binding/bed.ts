/** Steps that the tests of device binding have in common: a bound session, refreshes, expired cookies, and the recorded requests. */
import type { Cookie } from "playwright-core";
import { type MovedClock, movedClock } from "../../support/moved-clock.ts";
import { admin, bearer, message, openAdmin } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import type { Tab } from "../engines/driver.ts";
import { type Origin, SITES, startOrigin } from "../engines/origin.ts";
import { eventually } from "../engines/pages.ts";
import { type Profile, type ProfileTab, startProfile } from "./profiles.ts";

export const DEVICE_COOKIE = "refresh_token_device";
export const REFRESH = "/v1/auth/refresh";
export const REGISTER = "/v1/auth/device";
export const RENEW = "/v1/auth/device/refresh";

/** The life of a device cookie, in ms. With a much shorter life the browser would renew the cookie before every request. */
export const LIFE_MS = 300_000;

/** A request to the service, as the origin in front of it received the request. */
export type Seen = {
  readonly path: string;
  readonly proof: string | undefined;
  readonly skipped: string | undefined;
  readonly cookie: string;
};

/** A user of a browser profile, with the session at one site. */
export type User = {
  readonly profile: Profile;
  readonly subject: string;
  readonly host: string;
  /** The origin of the site. */
  readonly url: string;
};

/** The settings of the service. Overload control is off, because it would interpret a step of the test's clock as a blocked event loop. */
const SERVICE = { OVERLOAD_MAX_LOOP_DELAY: "0" };

export type Bed = {
  readonly origin: Origin;
  readonly clock: MovedClock;
  /** The requests so far; tests empty this list. */
  readonly seen: Seen[];
  /** Returns the names of the audit events about a user's sessions so far, including those before restarts. */
  audit(user: Pick<User, "subject">): readonly string[];
  /** Stops the service if it still runs, and starts it again. */
  restartService(changes?: Readonly<Record<string, string>>): Promise<void>;
  profile(binds?: boolean): Promise<Profile>;
  /**
   * Returns a user of a browser profile. Each user has a separate site, because a browser signs at most six times in nine minutes for one
   * site.
   */
  user(profile: Profile): User;
  stop(): Promise<void>;
};

export async function startBed(env: Readonly<Record<string, string>> = {}): Promise<Bed> {
  const clock = movedClock();
  const origin = await startOrigin({ DEVICE_BINDING: "on", ...SERVICE, ...env, ...clock.env });
  const sites = SITES.values();
  const seen: Seen[] = [];
  const profiles = new Set<Profile>();
  let past = "";
  origin.observe = ({ headers }, path) => {
    const text = (name: string) => headers[name] as string | undefined;
    const [proof, skipped] = [text("secure-session-response"), text("secure-session-skipped")];
    seen.push({ path, proof, skipped, cookie: text("cookie") ?? "" });
  };
  return {
    origin,
    clock,
    seen,
    audit: ({ subject }) =>
      eventsOf(past + origin.service.stderr())
        .filter((event) => event.subject === subject)
        .map(({ event }) => String(event)),
    async restartService(changes) {
      await origin.service.stop();
      past += origin.service.stderr();
      origin.service = await origin.service.restart(changes);
    },
    async profile(binds = true) {
      const profile = await startProfile({ authority: origin.authority, binds });
      profiles.add(profile);
      return profile;
    },
    user(profile) {
      const host = sites.next().value;
      if (host === undefined) throw new Error("no site is left");
      return { profile, host, subject: host, url: `https://${host}:${origin.port}` };
    },
    async stop() {
      for (const profile of profiles) await profile.close();
      await origin.stop();
    },
  };
}

function eventsOf(output: string): Record<string, unknown>[] {
  return output
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Record<string, unknown>);
}

export const pathsOf = (seen: readonly Seen[]): string[] => seen.map(({ path }) => path);

/** Signs in, in a new tab. */
export const signIn = ({ profile, url, subject }: User): Promise<ProfileTab> =>
  profile.open(`${url}/login?subject=${subject}`);

export const deviceCookieOf = async ({ profile, host }: User) =>
  (await profile.cookies()).find(({ name, domain }) => name === DEVICE_COOKIE && domain === host);

/** Returns the device cookie as soon as there is one. */
export async function deviceCookie(user: User): Promise<Cookie> {
  const found = await eventually(
    () => deviceCookieOf(user),
    (cookie) => cookie !== undefined,
  );
  return found as Cookie;
}

type Refreshed = {
  readonly status: number;
  readonly code?: string;
  readonly claims?: Readonly<Record<string, unknown>>;
};

/** Refreshes as a page does. The status is 0 if the network failed. */
export async function refreshIn(tab: Tab): Promise<Refreshed> {
  const text = await tab.evaluate<string>(
    `fetch("${REFRESH}", { method: "POST" }).then(async (r) => JSON.stringify({ status: r.status, body: await r.json() }), () => '{"status":0}')`,
  );
  const { status, body } = JSON.parse(text) as {
    status: number;
    body?: { data?: { accessToken: string }; error?: { code: string } };
  };
  const payload = body?.data?.accessToken.split(".")[1];
  return {
    status,
    ...(body?.error && { code: body.error.code }),
    ...(payload && { claims: JSON.parse(Buffer.from(payload, "base64url").toString()) }),
  };
}

/** Signs a user in, and waits until the session is bound. The service binds it when the key is first used. */
export async function bound(user: User, { seen }: Bed): Promise<ProfileTab> {
  const tab = await signIn(user);
  await deviceCookie(user);
  await refreshIn(tab);
  seen.length = 0;
  return tab;
}

/**
 * Moves the clock of the service. The service then refuses calls for a moment, as after its machine has slept, so this function waits until
 * it accepts calls again.
 */
export async function passTime({ origin, clock }: Bed, ms: number): Promise<void> {
  clock.pass(ms);
  const client = openAdmin(origin.service);
  await until(async () => {
    message(await client.call(admin.createSession, { subject: "nobody" }, bearer(origin.service.adminToken)));
  });
}

/** Lets a device cookie expire: moves the clock of the service by its life, and deletes it in the browser. */
export async function passLife({ profile, host }: User, bed: Bed, lifeMs = LIFE_MS): Promise<void> {
  await passTime(bed, lifeMs);
  await profile.deleteCookie(DEVICE_COOKIE, host);
}
