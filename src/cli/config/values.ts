/** Values of variables as they may be shown, to people and to programs. */

/** Variables whose text is a secret, by their names, also by those that are still to come. */
const SECRET = /(?:^|_)(?:PASSWORD|SECRET|TOKENS?|HEADERS|KEY)$/;

const IS_URL = /_(?:URL|ENDPOINT)$/;

export function shownValue(name: string, text: string): string {
  if (SECRET.test(name)) return `(hidden: ${text.split(",").length})`;
  return IS_URL.test(name) ? withoutPassword(text) : text;
}

/** Also where a URL is ill-formed, and has its password in an unusual place. */
function withoutPassword(url: string, instead = ":(hidden)"): string {
  const at = url.lastIndexOf("@");
  if (at === -1) return url;
  const [scheme = ""] = /^[a-z+]+:\/\//.exec(url) ?? [];
  const user = /^([^:@,/]*):/.exec(url.slice(scheme.length))?.[1] ?? "";
  return `${scheme}${user}${instead}@${url.slice(at + 1)}`;
}

/**
 * A variable for programs: numbers, switches, lists and rates as the configuration has them, times in ms; URLs without
 * their passwords. Of a secret no value, only whether it is set.
 *
 * @param value as the configuration has it; undefined where there is none, or a fault
 */
export function variableAsJson(name: string, text: string | undefined, value: unknown): object {
  const source = text ? "environment" : "default";
  if (SECRET.test(name)) return { name, source, secret: true };
  if (value === undefined) return { name, source, value: null };
  if (text && IS_URL.test(name)) return { name, source, value: withoutPassword(text, "") };
  // A file that is read with the configuration is its path here.
  return { name, source, value: text && name.endsWith("_FILE") ? text : value };
}

/** What is made at the start where a variable is not set. */
const DERIVED: Readonly<Record<string, string>> = {
  ADMIN_TOKENS: "(made in DATA_DIR)",
  ISSUER: "(http://127.0.0.1:PORT)",
  AUDIENCE: "(ISSUER)",
  COOKIE_PATH: "(/v1/auth, or / with a __Host- name)",
  MAX_CONNECTIONS_PER_ADDRESS: "(three quarters of MAX_CONNECTIONS)",
};

/** @param value as the configuration has it: durations in ms */
export function shownDefault(name: string, value: unknown): string {
  const derived = DERIVED[name];
  if (derived !== undefined) return derived;
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return "(none)";
  if (isRate(value)) return `${value.count}/${value.windowMs / 1000}s`;
  return typeof value === "number" && isDuration(name) ? duration(value) : String(value);
}

const isRate = (value: unknown): value is { readonly count: number; readonly windowMs: number } =>
  typeof value === "object" && value !== null && "windowMs" in value;

/** Variables whose number is a time with a unit; those of OpenTelemetry are plain numbers of milliseconds. */
const isDuration = (name: string) =>
  !name.startsWith("OTEL_") && /_(?:TTL|INTERVAL|TIMEOUT|DELAY|AGE|RETENTION)$/.test(name);

/** As it would be written in the environment. */
function duration(ms: number): string {
  for (const [unit, length] of [["d", 86_400_000] as const, ["h", 3_600_000] as const, ["m", 60_000] as const]) {
    if (ms >= length && ms % length === 0) return `${ms / length}${unit}`;
  }
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
