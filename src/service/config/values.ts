/** Parses each kind of configuration value. The result is a value or a fault. */
import { accessSync, constants, statSync } from "node:fs";
import { errorCode } from "../../platform/files/error-code.ts";

/** A value, or the fault of its text: the end of a sentence that begins with the variable's name. */
export type Parsed<T> = { readonly ok: true; readonly value: T } | { readonly ok: false; readonly reason: string };

export type Parse<T> = (text: string) => Parsed<T>;

export const valid = <T>(value: T): Parsed<T> => ({ ok: true, value });
export const invalid = (reason: string): Parsed<never> => ({ ok: false, reason });

export const SECOND_MS = 1000;
export const DAY_MS = 86_400_000;

const UNITS = { ms: 1, s: SECOND_MS, m: 60_000, h: 3_600_000, d: DAY_MS } as const;

/** Parses `10s`, `5m`, `14d`, `250ms` or a number of seconds. Returns milliseconds. */
export function duration(min: number, max: number): Parse<number> {
  return (text) => {
    const match = /^(\d{1,12})(ms|s|m|h|d)?$/.exec(text);
    if (!match) return invalid("is not a duration (10s, 5m, 14d or a number of seconds)");
    const value = Number(match[1]) * UNITS[(match[2] ?? "s") as keyof typeof UNITS];
    if (value < min || value > max) return invalid(`must be between ${min / 1000}s and ${max / 1000}s`);
    return valid(value);
  };
}

/** Parses a whole number in decimal digits. Both bounds are included. */
export function integer(min: number, max: number): Parse<number> {
  return (text) => {
    if (!/^\d{1,15}$/.test(text)) return invalid("is not a whole number");
    const value = Number(text);
    return value < min || value > max ? invalid(`must be between ${min} and ${max}`) : valid(value);
  };
}

/** Parses a point in time: `2027-01-31` (the start of that day, UTC) or `2027-01-31T12:00:00Z`. Returns ms since the epoch. */
export function date(text: string): Parsed<number> {
  const day = text.slice(0, 10);
  const isDay = Date.parse(day) > 0 && new Date(day).toISOString().startsWith(day); // JavaScript takes 31 February for 3 March.
  const ms =
    isDay && /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d))?$/.test(text)
      ? Date.parse(text)
      : Number.NaN;
  return Number.isNaN(ms) ? invalid("is not a date such as 2027-01-31 or 2027-01-31T12:00:00Z") : valid(ms);
}

/** How often something may be done; undefined means without a limit. */
export type RateSetting = { readonly count: number; readonly windowMs: number } | undefined;

/** Parses `300/30s`, or `off`. */
export function rate(text: string): Parsed<RateSetting> {
  if (text.toLowerCase() === "off") return valid(undefined);
  const [, digits, window] = /^(\d{1,7})\/(\w+)$/.exec(text) ?? [];
  if (digits === undefined || window === undefined) return invalid("is neither a rate such as 300/30s nor off");
  const count = integer(1, 1_000_000)(digits);
  const windowMs = duration(SECOND_MS, DAY_MS)(window);
  if (!count.ok) return invalid(`has a count that ${count.reason}`);
  if (!windowMs.ok) return invalid(`has a time that ${windowMs.reason}`);
  return valid({ count: count.value, windowMs: windowMs.value });
}

export function boolean(text: string): Parsed<boolean> {
  if (text === "true") return valid(true);
  if (text === "false") return valid(false);
  return invalid("is not true or false");
}

/** Parses one of the allowed texts, in upper or lower case. Returns the allowed text. */
export function oneOf<const T extends string>(...values: T[]): Parse<T> {
  return (text) => {
    const value = values.find((v) => v.toLowerCase() === text.toLowerCase());
    return value === undefined ? invalid(`is not one of ${values.join(", ")}`) : valid(value);
  };
}

/** Parses a list that is separated by commas, with or without spaces. */
export function list<T>(item: Parse<T>): Parse<readonly T[]> {
  return (text) => {
    const values: T[] = [];
    for (const part of text.split(",")) {
      if (part.trim() === "") return invalid("has an empty item");
      const parsed = item(part.trim());
      if (!parsed.ok) return parsed;
      values.push(parsed.value);
    }
    return valid(Object.freeze(values));
  };
}

export function readableFile(path: string): Parsed<string> {
  try {
    accessSync(path, constants.R_OK);
    return statSync(path).isDirectory() ? invalid(A_DIRECTORY) : valid(path);
  } catch (error) {
    return unreadable(error);
  }
}

const A_DIRECTORY = "names a directory, not a file";

/** The path is left out: whoever takes the variable for the one without `_FILE` has put the secret itself there. */
export function unreadable(error: unknown): Parsed<never> {
  const code = errorCode(error);
  return invalid(code === "EISDIR" ? A_DIRECTORY : `names a file that cannot be read (${code})`);
}

export function host(text: string): Parsed<string> {
  return /^[A-Za-z0-9.:_-]{1,253}$/.test(text) ? valid(text) : invalid("is not a host name or an address");
}

/** Parses a host name without a port, `*.` followed by a domain, or `*`; in lower case. */
export function hostPattern(text: string): Parsed<string> {
  return /^(?:\*|(?:\*\.)?[\w-]+(?:\.[\w-]+)*)$/.test(text) && text.length <= 253
    ? valid(text.toLowerCase())
    : invalid("has an item that is not a host name such as admin.example.com or *.example.com");
}

/** Parses an http(s) URL without credentials, query and fragment, such as an issuer identifier (RFC 8414 section 2). */
export function plainUrl(text: string): Parsed<string> {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || /[?#\s]/.test(text) || url.username || url.password) {
    return invalid("is not an http(s) URL without credentials, query and fragment");
  }
  return valid(text);
}

/** Parses a text of at most `max` UTF-16 code units, without control characters, and without white space around it: nobody sees that. */
export function text(max: number): Parse<string> {
  return (value) => {
    if (value.length > max) return invalid(`is longer than ${max} characters`);
    if (value !== value.trim()) return invalid("begins or ends with white space");
    return /\p{Cc}/u.test(value) ? invalid("has control characters") : valid(value);
  };
}

/** Parses an admin token, whose characters a header may contain (RFC 6750 b64token). Its length keeps it from being guessed. */
export function adminToken(value: string): Parsed<string> {
  if (value.length < 32) return invalid("has a token shorter than 32 characters");
  return /^[A-Za-z0-9._~+/-]+=*$/.test(value)
    ? valid(value)
    : invalid("has a token with characters that a Bearer header cannot carry");
}
