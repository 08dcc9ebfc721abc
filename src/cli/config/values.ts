/** Formats the values of variables for people and for programs, without secrets. */

/** Matches variables whose text is a secret by their names, including names that do not exist yet. */
const SECRET = /(?:^|_)(?:PASSWORD|SECRET|TOKENS?|HEADERS|KEY)$/;

/** Matches variables whose text is a URL. Some collectors take keys in the query of a URL. */
const IS_URL = /^ISSUER$|_(?:URL|ENDPOINT)$/;

/**
 * Returns the text of a variable without secrets. Variables that are not URLs are checked too: a URL in their text may have credentials.
 */
export function shownValue(name: string, text: string): string {
  return SECRET.test(name) ? `(hidden: ${text.split(",").length})` : withoutCredentials(name, text, HIDDEN);
}

/** The texts that are shown in place of a password and of a query. */
const HIDDEN = { password: ":(hidden)", query: "?(hidden)" };
const LEFT_OUT = { password: "", query: "" };

/** Removes the credentials even if the URL is invalid and has its password in an unusual place. */
function withoutCredentials(name: string, text: string, { password, query }: typeof HIDDEN): string {
  if (!text.includes("://")) return text;
  const at = text.lastIndexOf("@");
  const [scheme = ""] = /^[a-z+]+:\/\//i.exec(text) ?? [];
  const user = /^([^:@,/]*):/.exec(text.slice(scheme.length))?.[1] ?? "";
  const open = at === -1 ? text : `${scheme}${user}${password}@${text.slice(at + 1)}`;
  return IS_URL.test(name) ? open.replace(/[?#].*$/s, query) : open;
}

/**
 * Describes a variable for programs: numbers, switches, lists and rates as in the configuration, times in ms, URLs without their
 * passwords. A secret has no value, only whether it is set.
 *
 * @param value the value in the configuration; undefined if the variable is not set or has a fault
 */
export function variableAsJson(name: string, text: string | undefined, value: unknown): object {
  const source = text ? "environment" : "default";
  if (SECRET.test(name)) return { name, source, secret: true };
  if (value === undefined) return { name, source, value: null };
  // A variable ending in `_FILE` or `_URL` is shown as its text, not as the value that was read from it.
  const isText = name.endsWith("_FILE") || name.endsWith("_URL");
  return { name, source, value: open(name, text && isText ? text : value) };
}

/** Returns a value, or a list of them, without credentials in URLs. */
function open(name: string, value: unknown): unknown {
  if (Array.isArray(value)) return value.map((each) => open(name, each));
  return typeof value === "string" ? withoutCredentials(name, value, LEFT_OUT) : value;
}

/** Descriptions of values that the service determines at its start if a variable is not set. */
const DERIVED: Readonly<Record<string, string>> = {
  ADMIN_TOKENS: "(made in DATA_DIR)",
  ISSUER: "(http://127.0.0.1:PORT)",
  AUDIENCE: "(ISSUER)",
  COOKIE_PATH: "(/v1/auth, or / with a __Host- name)",
  MAX_CONNECTIONS_PER_ADDRESS: "(three quarters of MAX_CONNECTIONS)",
};

/** Returns the text of a default. @param value in the form of the configuration, with durations in ms */
export function shownDefault(name: string, value: unknown): string {
  const derived = DERIVED[name];
  if (derived !== undefined) return derived;
  if (value === undefined || (Array.isArray(value) && value.length === 0)) return "(none)";
  if (isRate(value)) return `${value.count}/${value.windowMs / 1000}s`;
  return typeof value === "number" && isDuration(name) ? duration(value) : String(value);
}

const isRate = (value: unknown): value is { readonly count: number; readonly windowMs: number } =>
  typeof value === "object" && value !== null && "windowMs" in value;

/** Returns whether a variable is a duration with a unit. Variables of OpenTelemetry are plain numbers of milliseconds. */
const isDuration = (name: string) =>
  !name.startsWith("OTEL_") && /_(?:TTL|INTERVAL|TIMEOUT|DELAY|AGE|RETENTION)$/.test(name);

/** Formats a duration as variables contain it: `10s`, `5m`, `14d`. */
function duration(ms: number): string {
  for (const [unit, length] of [["d", 86_400_000] as const, ["h", 3_600_000] as const, ["m", 60_000] as const]) {
    if (ms >= length && ms % length === 0) return `${ms / length}${unit}`;
  }
  return ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
}
