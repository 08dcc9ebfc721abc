/**
 * A model of one session that is bound to a device. Searches look for a wrong logout, and for a thief that stays undetected.
 *
 * A browser has one cookie jar and any number of tabs, which send refreshes, registrations and renewals. Each request takes effect within
 * half of the reuse interval (R/2) of being sent, any number of times and in any order, and its response may be lost or late. A browser
 * that has a key but no device cookie renews the cookie before it refreshes. If the renewal has failed, the refresh says so in its header
 * `Secure-Session-Skipped`. A browser that misses the response to a registration loses the new key. With `unbinds` support staff removes
 * keys at any time; with `failover` the store falls back to an earlier state, once.
 *
 * A thief copies the whole jar at any moment, but no key. From then on it presents any token with any cookie that it has, and registers a
 * key of its own. The model assumes the worst: a request of the thief that passes the rules of device binding also passes the rules of
 * rotation.
 *
 * The rules of rotation have a separate search (rotation-search). In this model, a refresh returns the successor token that was created
 * within the last reuse interval (R), or a new one if there is none.
 */
import type {
  DevicePresentation,
  DeviceVerdict,
  isReplaceable,
  judgeDevice,
} from "../../../../../src/service/session/devices/binding.ts";
import { storeMs } from "../../../../../src/service/session/time.ts";
import type { Model, Step } from "../../rotation/rotation-search/explore.ts";
import { NOW } from "../../rotation/rotation-search/time.ts";
import { canonical, freshKey } from "./canonical.ts";
import {
  type Call,
  type Cookie,
  type Device,
  FLIGHT,
  type Jar,
  type Key,
  LIFE,
  NEVER_FRESH,
  R,
  type Refresh,
  THIEF,
  type World,
} from "./state.ts";

/**
 * The time for which a browser keeps a device cookie. It drops the cookie so early that the cookie does not expire while a request is in
 * flight.
 */
const KEPT = LIFE - FLIGHT;

/** An instance with device binding switched off. It offers no registration, and must otherwise act like the other instances. */
export type OffInstance = {
  readonly judge: typeof judgeDevice;
  readonly renews: "with a proof" | "by taking the key away";
};

export type Assumptions = {
  readonly judge: typeof judgeDevice;
  readonly isReplaceable: typeof isReplaceable;
  readonly inFlight: number;
  /** Whether requests take time, up to half of the reuse interval (R/2). */
  readonly slow: boolean;
  readonly thief: boolean;
  readonly registers: "at any time" | "when offered";
  readonly unbinds?: boolean;
  readonly failover?: boolean;
  /** If set, requests may also reach an instance with device binding switched off. */
  readonly off?: OffInstance;
  /**
   * Whether the model keeps the exact issue times of tokens. Searches of mutants need the exact times, because a mutant of the rules may
   * compare times that the original rules do not compare.
   */
  readonly exact?: boolean;
};

const thumbprintOf = (key: Key) => Uint8Array.from(key, (character) => character.charCodeAt(0));
const full = ({ key, ...device }: Device) => ({
  ...device,
  since: storeMs(device.since),
  key: { algorithm: "ES256" as const, bytes: thumbprintOf(key), thumbprint: thumbprintOf(key) },
});

export function session(assumptions: Assumptions): Model<World> {
  return {
    start: {
      device: undefined,
      mintedAt: -R - 1,
      jar: { issuedAt: 0, cookie: undefined, mark: undefined },
      key: undefined,
      offered: true,
      refreshes: [],
      call: undefined,
      thief: undefined,
      replica: undefined,
    },
    canonical: (world) => canonical(world, assumptions.exact === true),
    *steps(world) {
      yield timePasses(world, assumptions);
      yield* browserSends(world, assumptions);
      yield* requestsRun(world, assumptions);
      yield* responsesArrive(world);
      if (assumptions.unbinds && world.device !== undefined) {
        yield { label: () => "the key is taken away", world: { ...world, device: undefined } };
      }
      if (assumptions.failover) yield* storeFails(world);
      if (assumptions.thief) yield* thiefActs(world, assumptions);
    },
  };
}

function timePasses(world: World, { slow, registers }: Assumptions): Step<World> {
  const flight = slow ? FLIGHT : 0;
  const older = <T extends { readonly issuedAt: number }>(one: T | undefined) =>
    one && one.issuedAt !== NEVER_FRESH ? { ...one, issuedAt: one.issuedAt - 1 } : one;
  const aged = (time: number) => time - 1;
  const { device, jar, thief, call, replica } = world;
  const since = (one: Device | undefined) => one && { ...one, since: one.since - 1 };
  const drop = (cookie: Cookie | undefined) => (cookie && cookie.issuedAt < -KEPT ? undefined : cookie);
  const still = world.refreshes.filter(({ sentAt }) => sentAt > -flight);
  return {
    label: () => "0.5 R",
    world: {
      ...world,
      device: since(device),
      mintedAt: aged(world.mintedAt),
      offered: registers === "at any time", // A browser accepts an offer at once or never.
      jar: { ...jar, issuedAt: aged(jar.issuedAt), cookie: drop(older(jar.cookie)) },
      refreshes: still.map((r) => ({
        ...r,
        issuedAt: aged(r.issuedAt),
        cookie: older(r.cookie),
        sentAt: aged(r.sentAt),
        response: r.response === undefined ? undefined : aged(r.response),
      })),
      call:
        call === undefined || call.sentAt <= -flight
          ? undefined
          : {
              ...call,
              sentAt: aged(call.sentAt),
              response: typeof call.response === "number" ? aged(call.response) : call.response,
            },
      thief: thief && {
        ...thief,
        issuedAt: aged(thief.issuedAt),
        copiedAt: aged(thief.copiedAt),
        cookie: older(thief.cookie),
        own: older(thief.own),
      },
      replica: replica && { device: since(replica.device) },
    },
  };
}

/**
 * Returns the cookie by which a request names its device: the device cookie if the jar has one, otherwise the longer-lived cookie that
 * names the key.
 */
const evidenceOf = ({ cookie, mark }: Jar): Cookie | undefined =>
  cookie ?? (mark === undefined ? undefined : { key: mark, issuedAt: NEVER_FRESH });

function* browserSends(world: World, { inFlight, registers }: Assumptions): Iterable<Step<World>> {
  const { jar, key, refreshes, call } = world;
  if (refreshes.length < inFlight) {
    const skipped = key !== undefined && jar.cookie === undefined;
    const refresh = {
      issuedAt: jar.issuedAt,
      cookie: evidenceOf(jar),
      skipped,
      sentAt: 0,
      response: undefined,
      offers: false,
    };
    const label = () => `a tab refreshes${skipped ? ", having renewed in vain" : ""}`;
    yield { label, world: { ...world, refreshes: [...refreshes, refresh] } };
  }
  if (call !== undefined) return;
  if (key !== undefined) {
    const renewal: Call = { kind: "renew", key, sentAt: 0, response: undefined };
    yield { label: () => `the browser renews with ${key}`, world: { ...world, call: renewal } };
  }
  if (registers === "when offered" && !world.offered) return;
  const next = freshKey(world);
  const registration: Call = { kind: "register", key: next, sentAt: 0, response: undefined };
  yield {
    label: () => `the browser registers ${next}`,
    world: { ...world, call: registration, offered: registers === "at any time" },
  };
}

const presentation = (cookie: Cookie | undefined, skipped: boolean): DevicePresentation => ({
  lifeMs: LIFE,
  cookie: cookie && { thumbprint: thumbprintOf(cookie.key), issuedAtMs: storeMs(cookie.issuedAt) },
  skipped,
});

/** Returns the world after a successful refresh, with the new state of the device and the successor token. */
function served(world: World, verdict: DeviceVerdict): World {
  const mintedAt = world.mintedAt >= -R ? world.mintedAt : 0;
  const first = verdict === "first_use" && world.device !== undefined;
  return {
    ...world,
    mintedAt,
    device: first ? { ...(world.device as Device), state: "bound", since: 0 } : world.device,
  };
}

/**
 * Yields the verdict on a refresh by each kind of instance that the refresh may reach: with device binding, and without it if such
 * instances are assumed.
 */
function* judgedByAll(world: World, assumptions: Assumptions, ...presented: Presented) {
  const { judge, off } = assumptions;
  yield { at: "", offers: true, verdict: judged(world, judge, ...presented) };
  if (off !== undefined)
    yield { at: " where it is off", offers: false, verdict: judged(world, off.judge, ...presented) };
}

type Presented = [issuedAt: number, cookie: Cookie | undefined, skipped: boolean];

function judged(world: World, judge: typeof judgeDevice, ...[issuedAt, cookie, skipped]: Presented) {
  const subject = { device: world.device && full(world.device), createdAt: storeMs(NEVER_FRESH) };
  return judge(subject, { issuedAt: storeMs(issuedAt) }, presentation(cookie, skipped), NOW, R);
}

function* requestsRun(world: World, assumptions: Assumptions): Iterable<Step<World>> {
  for (const [index, refresh] of world.refreshes.entries()) {
    const { issuedAt, cookie, skipped } = refresh;
    for (const found of judgedByAll(world, assumptions, issuedAt, cookie, skipped)) {
      yield* refreshRuns(world, assumptions, index, found);
    }
  }
  const { call } = world;
  if (call?.kind === "register") {
    const device = registered(world, assumptions, call.key);
    const label = () => `the registration of ${call.key} runs: ${device ? "registered" : "refused"}`;
    const response = device ? 0 : "refused";
    yield { label, world: { ...world, device: device ?? world.device, call: { ...call, response } } };
  } else if (call !== undefined) {
    const mine = world.device?.key === call.key;
    const label = () => `the renewal with ${call.key} runs: ${mine ? "renewed" : "refused"}`;
    yield { label, world: { ...world, call: { ...call, response: mine ? 0 : "refused" } } };
  }
}

type Found = { readonly at: string; readonly offers: boolean; readonly verdict: DeviceVerdict };

function* refreshRuns(
  world: World,
  assumptions: Assumptions,
  index: number,
  { at, offers, verdict }: Found,
): Iterable<Step<World>> {
  const { device } = world;
  const refresh = world.refreshes[index] as Refresh;
  const label = () => `a refresh of the browser runs${at}: ${verdict}`;
  const stolen = device?.key === THIEF && device.state === "bound";
  if (verdict === "two_holders") {
    // The property is broken: without a theft, the rules have logged the user out.
    if (!stolen) yield { label, world: undefined };
    return; // The theft is detected, so this history ends.
  }
  if (verdict === "device_proof_missing" || verdict === "device_required") {
    if (!refresh.skipped) yield { label, world: undefined }; // The property is broken: a refresh of the user is refused.
    return;
  }
  if (stolen && device.since < -2 * R) {
    yield { label: () => `${label()}, and the theft is not detected`, world: undefined };
  }
  const after = served(world, verdict);
  const asksForOffers = assumptions.registers === "when offered";
  const isOpen = after.device === undefined || assumptions.isReplaceable(full(after.device), NOW, R);
  const response = { ...refresh, response: after.mintedAt, offers: offers && asksForOffers && isOpen };
  yield { label, world: { ...after, refreshes: world.refreshes.with(index, response) } };
}

/** Returns the state of the device after a registration; undefined if the registration is refused. */
function registered({ device }: World, { isReplaceable }: Assumptions, key: Key): Device | undefined {
  if (device?.key === key) return device;
  if (device !== undefined && !isReplaceable(full(device), NOW, R)) return undefined;
  return { key, state: "registered", since: 0 };
}

function* responsesArrive(world: World): Iterable<Step<World>> {
  const { jar, call } = world;
  for (const [at, { response, offers }] of world.refreshes.entries()) {
    const refreshes = world.refreshes.toSpliced(at, 1);
    if (response === undefined) continue;
    yield {
      label: () => "its response arrives",
      world: { ...world, refreshes, offered: world.offered || offers, jar: { ...jar, issuedAt: response } },
    };
  }
  if (call?.response === undefined) return;
  const { key, response } = call;
  if (typeof response === "number") {
    const cookie = { key, issuedAt: response };
    const label = () => `a device cookie of ${key} arrives`;
    yield { label, world: { ...world, call: undefined, key, jar: { ...jar, cookie, mark: key } } };
  } else if (call.kind === "renew") {
    yield { label: () => `the browser gives ${key} up`, world: { ...world, call: undefined, key: undefined } };
  }
}

function* storeFails(world: World): Iterable<Step<World>> {
  const { device, replica } = world;
  if (replica === undefined)
    yield { label: () => "the replica stops following", world: { ...world, replica: { device } } };
  else yield { label: () => "FAILOVER", world: { ...world, device: replica.device } };
}

function* thiefActs(world: World, assumptions: Assumptions): Iterable<Step<World>> {
  const { thief, jar, device } = world;
  if (thief === undefined) {
    const copy = { ...jar, copiedAt: 0, own: undefined };
    yield { label: () => "the jar is COPIED", world: { ...world, thief: copy } };
    return;
  }
  const mark = thief.mark === undefined ? undefined : { key: thief.mark, issuedAt: NEVER_FRESH };
  const isOthers = device !== undefined && device.key !== THIEF;
  for (const cookie of new Set([undefined, thief.cookie, mark, thief.own])) {
    for (const { at, verdict } of judgedByAll(world, assumptions, thief.issuedAt, cookie, false)) {
      const by = cookie ? `a cookie of ${cookie.key}` : "no cookie";
      const label = () => `the thief refreshes${at} with ${by}: ${verdict}`;
      if (verdict === "two_holders") {
        // The property is broken: the browser itself could have sent this request, so the service must not conclude that two parties hold
        // the session.
        if (device !== undefined && device.key === thief.mark && cookie !== undefined)
          yield { label, world: undefined };
        continue;
      }
      if (verdict === "device_proof_missing" || verdict === "device_required") continue;
      const bound = isOthers && device.state === "bound";
      // The property is broken: the thief stays undetected.
      if (bound && device.since < -2 * R && thief.copiedAt < -LIFE) yield { label, world: undefined };
      const after = served(world, verdict);
      yield { label, world: after };
      yield { label, world: { ...after, thief: { ...thief, issuedAt: after.mintedAt } } };
    }
  }
  if (assumptions.off?.renews === "by taking the key away" && isOthers && device.state === "bound") {
    yield { label: () => "the thief asks for a renewal where it is off: the key is taken away", world: undefined };
  }
  const own = registered(world, assumptions, THIEF);
  if (own !== undefined) {
    const label = () => "the thief registers a key, or renews with it";
    // The property is broken: the thief replaces the user's key.
    if (device?.state === "bound" && device.key !== THIEF) yield { label, world: undefined };
    yield { label, world: { ...world, device: own, thief: { ...thief, own: { key: THIEF, issuedAt: 0 } } } };
  }
}
