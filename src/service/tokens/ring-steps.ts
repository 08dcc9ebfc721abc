import { KEY_KINDS, type KeyKind, type Ring, type RingKey } from "./ring.ts";

/** How long it takes until every instance uses a changed ring, in ms, unless `session-service keys` is given another time. */
export const PICK_UP_MS = 60_000;

/** The times, in ms, that determine how long a key must stay in a state. */
export type RingTimes = {
  /** How long verifiers may keep the JWKS. */
  readonly jwksMaxAgeMs: number;
  readonly accessTokenTtlMs: number;
  /** The longest time between two refreshes, which is the life of a refresh token. */
  readonly sessionIdleTtlMs: number;
  /** How long it takes until every instance uses a changed ring. */
  readonly pickUpMs: number;
};

/** Makes a `published` key of a kind. */
export type GenerateKey = (kind: KeyKind) => RingKey;

/** A change of the ring is refused, because keys are too young, or in a state that does not allow the change. */
export class StepRefused extends Error {
  override readonly name = "StepRefused";
}

/** The next step of a key, and the time from which the step is possible (ms since the epoch). A `signing` key has no next step. */
type NextStep = { readonly step: "sign" | "leave"; readonly from: number };

export function nextStep(kind: KeyKind, key: RingKey, times: RingTimes): NextStep | undefined {
  const { pickUpMs, jwksMaxAgeMs, accessTokenTtlMs, sessionIdleTtlMs } = times;
  const tokenLifeMs = kind === "signing" ? accessTokenTtlMs : sessionIdleTtlMs;
  const jwksLifeMs = kind === "signing" ? jwksMaxAgeMs : 0;
  switch (key.state) {
    case "published": // Every verifier must know the key before its first token: instances from the ring, others from the JWKS.
      return { step: "sign", from: key.since + pickUpMs + jwksLifeMs };
    case "signing":
      return undefined;
    case "retired": // An instance signs with the key until it has read the new ring, and that token is valid for its whole life.
      return { step: "leave", from: key.since + pickUpMs + tokenLifeMs };
    case "revoked": // A verifier may still have a JWKS that contains the key.
      return { step: "leave", from: key.since + pickUpMs + tokenLifeMs + jwksLifeMs };
  }
}

/**
 * Rotates the keys: the published successor becomes the signing key, the previous signing key is retired, a new successor is published,
 * and keys that are not needed any more are removed. @throws StepRefused while the successor is too young, unless `force` is set
 */
export function rotateKeys(
  ring: Ring,
  kinds: readonly KeyKind[],
  generate: GenerateKey,
  now: number,
  times: RingTimes,
  force: boolean,
): Ring {
  const next = { ...ring };
  for (const kind of kinds) {
    const successor = successorOf(ring[kind]);
    if (successor === undefined) {
      next[kind] = withSuccessor(ring[kind], kind, generate); // The new key signs after the next rotation.
      continue;
    }
    const from = nextStep(kind, successor, times)?.from ?? now;
    if (now < from && !force) {
      throw new StepRefused(
        `${kind} key ${successor.kid} may sign from ${iso(from)}: not every verifier knows it before`,
      );
    }
    const retired = ring[kind].map(
      (key): RingKey => (key.state === "signing" ? { ...key, state: "retired", since: now } : key),
    );
    next[kind] = promote(retired, kind, generate, now);
  }
  return withoutSpent(next, now, times);
}

/**
 * Returns whether a retired key is needed by no token any more. The name of a revoked key stays for longer: a backup may have the key as it
 * was before.
 */
export function isSpent(kind: KeyKind, key: RingKey, now: number, times: RingTimes): boolean {
  const next = nextStep(kind, key, times);
  return key.state === "retired" && next !== undefined && now >= next.from;
}

export function withoutSpent(ring: Ring, now: number, times: RingTimes): Ring {
  const keep = (kind: KeyKind) => ring[kind].filter((key) => !isSpent(kind, key, now, times));
  return { signing: keep("signing"), mac: keep("mac") };
}

/** Removes one key. @throws StepRefused if the key signs, and while a token may need the key unless `force` is set */
export function removeKey(
  ring: Ring,
  kid: string,
  generate: GenerateKey,
  now: number,
  times: RingTimes,
  force: boolean,
): Ring {
  const { kind, key } = findKey(ring, kid);
  if (key.state === "signing") throw new StepRefused(`key ${kid} signs: rotate or revoke replaces it`);
  const next = nextStep(kind, key, times);
  if (next?.step === "leave" && now < next.from && !force) {
    throw new StepRefused(`key ${kid} is needed until ${iso(next.from)}: tokens under it may live`);
  }
  const left = ring[kind].filter((each) => each !== key);
  return { ...ring, [kind]: withSuccessor(left, kind, generate) };
}

/** Revokes a key in an emergency: its secret is deleted, its name stays. If it signed, its successor signs now, however young it is. */
export function revokeKey(ring: Ring, kid: string, generate: GenerateKey, now: number): Ring {
  const { kind, key } = findKey(ring, kid);
  if (key.state === "revoked") return ring;
  const revoked: RingKey = { kid, alg: key.alg, state: "revoked", since: now };
  const keys = ring[kind].map((each) => (each === key ? revoked : each));
  return {
    ...ring,
    [kind]: key.state === "signing" ? promote(keys, kind, generate, now) : withSuccessor(keys, kind, generate),
  };
}

/** Makes the successor the signing key, or a new key if there is none, and publishes the next successor. */
function promote(keys: readonly RingKey[], kind: KeyKind, generate: GenerateKey, now: number): readonly RingKey[] {
  const ready = withSuccessor(keys, kind, generate);
  const successor = successorOf(ready);
  const promoted = ready.map((key): RingKey => (key === successor ? { ...key, state: "signing", since: now } : key));
  return withSuccessor(promoted, kind, generate);
}

function withSuccessor(keys: readonly RingKey[], kind: KeyKind, generate: GenerateKey): readonly RingKey[] {
  return successorOf(keys) === undefined ? [...keys, generate(kind)] : keys;
}

function successorOf(keys: readonly RingKey[]): RingKey | undefined {
  return keys.filter((key) => key.state === "published").sort((a, b) => a.since - b.since)[0];
}

function findKey(ring: Ring, kid: string): { kind: KeyKind; key: RingKey } {
  for (const kind of KEY_KINDS) {
    const key = ring[kind].find((each) => each.kid === kid);
    if (key !== undefined) return { kind, key };
  }
  throw new StepRefused(`there is no key ${kid}`);
}

function iso(time: number): string {
  return new Date(time).toISOString();
}
