#!/usr/bin/env node
/** `npm run keys -- …`: manages the key ring. Never prints a secret. */
import { ConfigError, readConfig } from "../config/config.ts";
import { generateMacKey, generateRing, generateSigningKey } from "../tokens/generate-key.ts";
import { isSigningAlg, type SigningAlg } from "../tokens/jws.ts";
import { KEY_KINDS, type KeyKind, KeyRingFault, type Ring } from "../tokens/ring.ts";
import { changeRingFile, createRingFile, readRing } from "../tokens/ring-file.ts";
import {
  type GenerateKey,
  nextStep,
  type RingTimes,
  remove,
  revoke,
  rotate,
  StepRefused,
  withoutSpent,
} from "../tokens/ring-steps.ts";
import { readOptions, runCommand, UsageError } from "./command.ts";

const USAGE = `usage: npm run keys -- <command> [options]

  create               make a key ring; refused when there is one
  list                 show every key: state, age, what it may do next
  rotate [signing|mac] the published key signs, the one that signed retires, a new one is published (both kinds
                       unless one is named); retired keys that are no longer needed leave
  remove [kid]         take a published, retired or revoked key out; without a kid, all that are no longer needed
  revoke <kid>         emergency: the key is not accepted from now on, and a successor signs at once if it did.
                       A signing key: access tokens under it are refused. A MAC key: sessions under it must log in again

  --file <path>        the ring (otherwise KEYS_FILE, or keys.json in DATA_DIR)
  --alg ES256|EdDSA    of new signing keys (otherwise as before; at create, SIGNING_ALGORITHM)
  --force              rotate or remove although a key is too young or still needed: honest tokens may be refused
  --pick-up <seconds>  how long until every instance has a changed ring in force (60)

Ages come from JWKS_MAX_AGE, ACCESS_TOKEN_TTL and SESSION_IDLE_TTL: set them as for the service.
Exit codes: 0 done, 1 refused or failed, 2 wrong usage.`;

const OPTIONS = {
  file: { type: "string" },
  alg: { type: "string" },
  force: { type: "boolean" },
  "pick-up": { type: "string" },
  help: { type: "boolean", short: "h" },
} as const;

async function run(args: string[]): Promise<string> {
  const { positionals, values } = readOptions(args, OPTIONS);
  if (values.help || positionals.length === 0) return USAGE;
  const config = readConfig(process.env);
  const path = values.file ?? config.keysFile;
  const alg = values.alg === undefined ? undefined : signingAlg(values.alg);
  const times: RingTimes = { ...config, pickUp: seconds(values["pick-up"] ?? "60") };
  const force = values.force ?? false;
  const now = Date.now();
  const change = async (step: (ring: Ring, generate: GenerateKey) => Ring) => {
    const stepWithKeys = (ring: Ring) => {
      // A ring goes on with the algorithm that it has.
      const own = alg ?? signingAlg(ring.signing.find((key) => key.state === "signing")?.alg ?? "");
      return step(ring, (kind) => (kind === "mac" ? generateMacKey(now) : generateSigningKey(own, now)));
    };
    return show(await changeRingFile(path, stepWithKeys), now, times);
  };

  const [command, operand, ...rest] = positionals;
  if (rest.length > 0) throw new UsageError("too many operands");
  switch (command) {
    case "create":
      noOperand(operand);
      if (await createRingFile(path, generateRing(alg ?? config.signingAlgorithm, now))) return `created ${path}`;
      throw new KeyRingFault(`${path} is there already; nothing was changed`);
    case "list":
      noOperand(operand);
      return show(await readRing(path), now, times);
    case "rotate": {
      const which = kinds(operand);
      return change((ring, generate) => rotate(ring, which, generate, now, times, force));
    }
    case "remove":
      return change((ring, generate) =>
        operand === undefined ? withoutSpent(ring, now, times) : remove(ring, operand, generate, now, times, force),
      );
    case "revoke":
      if (operand === undefined) throw new UsageError("revoke needs a kid");
      return change((ring, generate) => revoke(ring, operand, generate, now));
    case "retire": // rotate retires a key; this command had the name before
      throw new UsageError("retire is called remove now: `npm run keys -- remove`");
    default:
      throw new UsageError(`there is no command ${command}`);
  }
}

function signingAlg(text: string): SigningAlg {
  if (isSigningAlg(text)) return text;
  throw new UsageError("--alg must be ES256 or EdDSA");
}

function seconds(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text) * 1000;
  throw new UsageError("--pick-up must be a number of seconds");
}

function kinds(operand: string | undefined): readonly KeyKind[] {
  if (operand === undefined) return KEY_KINDS;
  if (operand === "signing" || operand === "mac") return [operand];
  throw new UsageError("rotate takes signing or mac");
}

function noOperand(operand: string | undefined): void {
  if (operand !== undefined) throw new UsageError(`what is ${operand}?`);
}

function show(ring: Ring, now: number, times: RingTimes): string {
  const rows = KEY_KINDS.flatMap((kind) =>
    ring[kind].map((key) => {
      const next = nextStep(kind, key, times);
      const what = next === undefined ? "rotate replaces it" : `may ${next.step}`;
      const when = next === undefined ? "" : now >= next.from ? " now" : ` from ${new Date(next.from).toISOString()}`;
      return [kind, key.kid, key.alg, key.state, age(now - key.since), what + when];
    }),
  );
  const table = [["kind", "kid", "alg", "state", "for", "next"], ...rows];
  const width = (column: number) => Math.max(...table.map((row) => row[column]?.length ?? 0));
  return table
    .map((row) =>
      row
        .map((cell, i) => cell.padEnd(width(i)))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function age(ms: number): string {
  const s = Math.max(0, Math.floor(ms / 1000));
  if (s < 120) return `${s}s`;
  if (s < 7200) return `${Math.floor(s / 60)}m`;
  return s < 172_800 ? `${Math.floor(s / 3600)}h` : `${Math.floor(s / 86_400)}d`;
}

await runCommand(run, USAGE, [KeyRingFault, StepRefused, ConfigError]);
