/** Reads groups of variables: each variable once, with all faults collected. */
import { type Parse, valid } from "./values.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** Reads one variable. Returns `byDefault` if it is unset, empty or faulty; a fault is collected. */
export type Read = <T, D>(name: string, parse: Parse<T>, byDefault: D) => T | D;

/** Adds a fault of several variables together: one line that starts with the name of one of them. */
export type AddFault = (line: string) => void;

/** All faults of a configuration, one line each: the name of the variable and the problem, but never the value. */
export class ConfigError extends Error {
  override readonly name = "ConfigError";
  readonly faults: readonly string[];
  constructor(faults: readonly string[]) {
    super(faults.join("\n"));
    this.faults = faults;
  }
}

/** Reads and freezes settings. A variable with an empty text counts as unset. @throws ConfigError with every fault */
export function readSettings<T>(env: Environment, readAll: (read: Read, addFault: AddFault) => T): Readonly<T> {
  const faults: string[] = [];
  const addFault = (line: string) => void faults.push(line);
  const settings = readAll((name, parse, byDefault) => {
    const parsed = env[name] ? parse(env[name]) : valid(byDefault);
    if (parsed.ok) return parsed.value;
    addFault(`${name} ${parsed.reason}`);
    return byDefault;
  }, addFault);
  if (faults.length > 0) throw new ConfigError(faults);
  return Object.freeze(settings);
}
