/** The subcommands of `session-service keys`. */
import { readConfig } from "../../config/config.ts";
import type { Environment } from "../../config/reader.ts";
import { generateMacKey, generateRing, generateSigningKey } from "../../tokens/generate-key.ts";
import { isSigningAlg, type SigningAlg } from "../../tokens/jws.ts";
import { KEY_KINDS, type KeyKind, KeyRingFault, type Ring, type RingKey } from "../../tokens/ring.ts";
import { changeRingFile, createRingFile, readRing } from "../../tokens/ring-file.ts";
import {
  type GenerateKey,
  nextStep,
  PICK_UP_MS,
  type RingTimes,
  removeKey,
  revokeKey,
  rotateKeys,
  StepRefused,
  withoutSpent,
} from "../../tokens/ring-steps.ts";
import { CommandError, withRefusals } from "../context.ts";
import { table } from "../output/text.ts";
import { span } from "../output/times.ts";

export type KeysOptions = {
  readonly file?: string;
  readonly alg?: SigningAlg;
  readonly force?: boolean;
  readonly ifMissing?: boolean;
  readonly pickUp?: string;
  readonly json?: boolean;
};

type Given = KeysOptions & {
  readonly path: string;
  /** The configured algorithm, which a new ring gets unless the command names another one. */
  readonly configuredAlg: SigningAlg | undefined;
  readonly times: RingTimes;
  readonly now: number;
};

type Step = (given: Given, operands: readonly string[]) => Promise<string>;

export const STEPS = {
  create: async ({ path, alg, configuredAlg, now, ifMissing }) => {
    if (await createRingFile(path, generateRing(alg ?? configuredAlg, now))) return `created ${path}`;
    if (ifMissing && (await readRing(path))) return `${path} is there already`;
    throw new KeyRingFault(`${path} is there already; nothing was changed`);
  },
  list: async ({ path, now, times, json }) => (json ? ringAsJson : ringAsTable)(await readRing(path), now, times),
  rotate: (given, [kind]) =>
    change(given, (ring, generate) => {
      const kinds = kind === undefined ? KEY_KINDS : [kind as KeyKind];
      return rotateKeys(ring, kinds, generate, given.now, given.times, given.force === true);
    }),
  remove: (given, [kid]) =>
    change(given, (ring, generate) =>
      kid === undefined
        ? withoutSpent(ring, given.now, given.times)
        : removeKey(ring, kid, generate, given.now, given.times, given.force === true),
    ),
  revoke: (given, kids) => change(given, (ring, generate) => revokeKeys(ring, kids, generate, given.now)),
} as const satisfies Record<string, Step>;

export function runKeys(
  env: Environment,
  step: keyof typeof STEPS,
  operands: readonly string[],
  options: KeysOptions,
): Promise<string> {
  return withRefusals([KeyRingFault, StepRefused], async () => {
    const config = readConfig(env);
    const run: Step = STEPS[step];
    const given = {
      ...options,
      path: options.file ?? config.keysFile,
      configuredAlg: config.signingAlgorithm,
      times: { ...config, pickUpMs: options.pickUp === undefined ? PICK_UP_MS : Number(options.pickUp) * 1000 },
      now: Date.now(),
    };
    return run(given, operands);
  });
}

async function change(given: Given, step: (ring: Ring, generate: GenerateKey) => Ring): Promise<string> {
  const { path, alg, now, times } = given;
  return ringAsTable(await changeRingFile(path, (ring) => step(ring, generatorFor(ring, now, alg))), now, times);
}

const generatorFor =
  (ring: Ring, now: number, alg?: SigningAlg): GenerateKey =>
  (kind) =>
    kind === "mac" ? generateMacKey(now) : generateSigningKey(alg ?? algOf(ring), now);

const revokeKeys = (ring: Ring, kids: readonly string[], generate: GenerateKey, now: number): Ring =>
  kids.reduce((left, kid) => revokeKey(left, kid, generate, now), ring);

/** Revokes the keys of a ring file that another ring has as revoked. @returns their ids @throws KeyRingFault */
export async function revokeAsIn(other: Ring, path: string, now: number): Promise<readonly string[]> {
  const revoked = new Set(idsOf(other, (key) => key.state === "revoked"));
  const kids = idsOf(await readRing(path), ({ kid, state }) => revoked.has(kid) && state !== "revoked");
  if (kids.length > 0) await changeRingFile(path, (ring) => revokeKeys(ring, kids, generatorFor(ring, now), now));
  return kids;
}

const idsOf = (ring: Ring, isWanted: (key: RingKey) => boolean): readonly string[] =>
  KEY_KINDS.flatMap((kind) => ring[kind].filter(isWanted).map(({ kid }) => kid));

/** Returns the algorithm of the newest key of a ring, which new keys keep: the one that signs may be about to be replaced by another. */
function algOf({ signing }: Ring): SigningAlg {
  const newest =
    signing.findLast(({ state }) => state === "published") ?? signing.find(({ state }) => state === "signing");
  const alg = newest?.alg ?? "";
  if (isSigningAlg(alg)) return alg;
  throw new CommandError("the ring has no signing key whose algorithm could be used on: give --alg");
}

const keysOf = (ring: Ring, times: RingTimes) =>
  KEY_KINDS.flatMap((kind) => ring[kind].map((key) => ({ ...key, kind, next: nextStep(kind, key, times) })));

function ringAsTable(ring: Ring, now: number, times: RingTimes): string {
  const rows = keysOf(ring, times).map(({ kind, kid, alg, state, since, next }) => {
    const what = next === undefined ? "rotate replaces it" : `may ${next.step}`;
    const when = next === undefined ? "" : now >= next.from ? " now" : ` from ${new Date(next.from).toISOString()}`;
    return [kind, kid, alg, state, span(now - since), what + when];
  });
  return table([["kind", "kid", "alg", "state", "for", "next"], ...rows]);
}

function ringAsJson(ring: Ring, _now: number, times: RingTimes): string {
  const keys = keysOf(ring, times).map(({ kind, kid, alg, state, since, next }) => ({
    kind,
    kid,
    alg,
    state,
    since: new Date(since).toISOString(),
    ...(next !== undefined && { next: { step: next.step, from: new Date(next.from).toISOString() } }),
  }));
  return JSON.stringify({ keys });
}
