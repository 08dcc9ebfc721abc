/**
 * Reads the configuration from the environment; no other directory of src reads the environment. One pass finds all faults, and the
 * returned value is frozen. Each topic has its own file. docs/configuration.md lists all variables, and a test compares that list with the
 * code.
 */
import { readAdmin } from "./admin.ts";
import { readBrowsers } from "./browsers.ts";
import { readDeviceBinding } from "./device-settings.ts";
import { readLimits } from "./limits.ts";
import { readListeners } from "./listeners.ts";
import { readOAuth } from "./oauth.ts";
import { readObservability } from "./observability.ts";
import { type AddFault, type Environment, type Read, readSettings } from "./reader.ts";
import { readSessions } from "./sessions.ts";
import { readSignals } from "./signals.ts";
import { readStore } from "./store.ts";
import { readTelemetry } from "./telemetry.ts";
import { readTokens } from "./tokens.ts";
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
    ...readAdmin(read),
    ...readTokens(read, store.dataDir),
    ...readSessions(read, addFault),
    ...browsers,
    ...readDeviceBinding(read, addFault, { ...listeners, ...browsers }),
    ...readOAuth(read),
    ...readLimits(read),
    ...readObservability(read),
    ...readSignals(read),
    ...readTelemetry(read, addFault),
  };
}

/** Reads the configuration of the service. @throws ConfigError with every fault */
export const readConfig = (env: Environment): Config => readSettings(env, readGroups);

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
