/** Finds the variables that a misspelt name was probably meant to be. */
import { nearest } from "../../platform/spelling/nearest.ts";
import { COMMAND_VARIABLES } from "./command-line.ts";
import { configVariables } from "./config.ts";
import type { Environment } from "./reader.ts";

/**
 * Variables of others whose names look like those of this service: of OpenSSL, of OpenTelemetry's libraries, and those with which
 * Kubernetes and Docker name the address of each service.
 */
const FOREIGN = /^SSL_CERT_(?:FILE|DIR)$|_SERVICE_(?:HOST|PORT)(?:_|$)|_PORT_\d+_(?:TCP|UDP)(?:_|$)/;
const ADDRESS_OF_SERVICE = /^(?:tcp|udp):\/\//;

/** A name that is shorter than this may have one edit, others two. */
const SHORT_NAME = 8;

const COMMANDS: ReadonlySet<string> = new Set(COMMAND_VARIABLES);

export function misspeltVariables(env: Environment): string[] {
  const known = configVariables();
  const unset = [...known.keys()].filter((name) => !env[name]);
  const wordsOfUnset = unset.map((name) => [name, wordsOf(name)] as const);
  return Object.keys(env).flatMap((name) => {
    const text = env[name];
    if (known.has(name) || FOREIGN.test(name) || !text || ADDRESS_OF_SERVICE.test(text)) return [];
    // ADMIN_TOKEN is a variable of the commands. It may be a misspelt ADMIN_TOKENS, but not beside ADMIN_TOKENS_FILE: the service then has
    // its tokens from that file.
    if (name === "ADMIN_TOKEN" && env.ADMIN_TOKENS_FILE) return [];
    const upper = name.toUpperCase();
    const meant =
      nearest(upper, unset, name.length < SHORT_NAME ? 1 : 2) ??
      (COMMANDS.has(name) ? undefined : likeByWords(upper, wordsOfUnset));
    if (meant === undefined) return [];
    const what = COMMANDS.has(name)
      ? "a variable of the commands, not of the service"
      : "not a variable of this service";
    return [`${name} is ${what}: is ${meant} meant?`];
  });
}

/** Words that mean the same at the end of a name. */
const SYNONYMS: Readonly<Record<string, string>> = Object.fromEntries(
  [
    ["TTL", "TIMEOUT", "LIFETIME", "EXPIRY", "EXPIRATION", "AGE"],
    ["URL", "URI", "HOST", "ADDR", "ADDRESS", "ENDPOINT", "DSN"],
    ["BYTES", "SIZE", "LENGTH"],
  ].flatMap(([word = "", ...others]) => others.map((other) => [other, word])),
);

/** From this share of common words on, a name was probably meant to be another one. */
const MIN_COMMON_WORDS = 0.65;

/**
 * Returns the known name that has the same first word and most words in common (Dice coefficient), such as `SESSION_IDLE_TTL` for
 * `SESSION_TIMEOUT`; undefined if there is none. The variables of OpenTelemetry share their words without meaning each other.
 */
function likeByWords(name: string, known: Iterable<readonly [string, ReadonlySet<string>]>): string | undefined {
  const words = wordsOf(name);
  if (words.size < 2 || words.has("OTEL")) return undefined;
  let best: string | undefined;
  let most = MIN_COMMON_WORDS;
  for (const [candidate, others] of known) {
    if (first(words) !== first(others)) continue;
    const common = (2 * [...words].filter((word) => others.has(word)).length) / (words.size + others.size);
    if (common > most) [best, most] = [candidate, common];
  }
  return best;
}

const first = ([word]: ReadonlySet<string>) => word;

const wordsOf = (name: string): ReadonlySet<string> =>
  new Set(
    name.split("_").map((word) => {
      const singular = word.replace(/IES$/, "Y").replace(/(?<=...)S$/, "");
      return SYNONYMS[singular] ?? SYNONYMS[word] ?? singular;
    }),
  );
