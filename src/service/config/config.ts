/** Reads the configuration from the environment. One pass finds all faults. A test compares the variables with their documentation. */
import { readAdmin } from "./admin.ts";
import { readBrowsers, readDeviceBinding, readMigration, readOAuth } from "./clients.ts";
import { readLimits } from "./limits.ts";
import { readListeners } from "./listeners.ts";
import { readObservability, readTelemetry } from "./observability.ts";
import { type AddFault, type Environment, type Read, readSettings } from "./reader.ts";
import { readSessions, readTokens } from "./sessions.ts";
import { readSignIn } from "./sign-in.ts";
import { readSignals } from "./signals.ts";
import { readStore } from "./store.ts";
import { valid } from "./values.ts";

export { ConfigError } from "./reader.ts";

export type Config = Readonly<ReturnType<typeof readGroups>>;

function readGroups(read: Read, addFault: AddFault) {
  const store = readStore(read, addFault);
  const listeners = readListeners(read, addFault, store.redis === undefined);
  const browsers = readBrowsers(read, addFault);
  return {
    ...store,
    ...listeners,
    ...readAdmin(read, addFault),
    ...readTokens(read, store.dataDir),
    ...readSessions(read, addFault),
    ...browsers,
    ...readDeviceBinding(read, addFault, browsers.cookie, listeners),
    ...readMigration(read, addFault, browsers.cookie),
    ...readOAuth(read),
    ...readSignIn(read, addFault),
    ...readLimits(read),
    ...readObservability(read),
    ...readSignals(read),
    ...readTelemetry(read, addFault),
  };
}

const STATUS_LISTS = "was removed with Token Status Lists: verifiers follow or poll the feed (docs/tasks/verifier.md)";

/**
 * The variables of earlier versions, each with the end of a sentence that says what replaces it. The start refuses them, because an ignored
 * setting would be a promise that nobody keeps.
 */
const REMOVED: ReadonlyMap<string, string> = new Map([
  ["STATUS_LIST", STATUS_LISTS],
  ["STATUS_LIST_TTL", STATUS_LISTS],
]);

/** @throws ConfigError with every fault */
export const readConfig = (env: Environment): Config =>
  readSettings(env, (read, addFault) => {
    for (const [name, what] of REMOVED) if (env[name]) addFault(`${name} ${what}`);
    return readGroups(read, addFault);
  });

/** Returns every variable that the service reads, with its value or its default. A variable with a fault is undefined. */
export function configVariables(env: Environment = {}): ReadonlyMap<string, unknown> {
  const variables = new Map<string, unknown>();
  readGroups(
    (name, parse, byDefault) => {
      const text = env[name];
      const parsed = text ? parse(text) : valid(byDefault);
      variables.set(name, parsed.ok ? parsed.value : undefined);
      return parsed.ok ? parsed.value : byDefault;
    },
    () => {},
  );
  return variables;
}
