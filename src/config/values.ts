/** How each kind of configuration value is read: text in, value or the fault out. */
import { accessSync, constants } from "node:fs";

/** What is wrong with a value, as the end of a sentence that begins with the variable's name. */
export class Fault {
  readonly text: string;
  constructor(text: string) {
    this.text = text;
  }
}

export type Parse<T> = (text: string) => T | Fault;

export const SECOND_MS = 1000;
export const DAY_MS = 86_400_000;

const UNITS = { ms: 1, s: SECOND_MS, m: 60_000, h: 3_600_000, d: DAY_MS } as const;

/** `10s`, `5m`, `14d`, `250ms` or seconds; milliseconds out. */
export function duration(min: number, max: number): Parse<number> {
  return (text) => {
    const match = /^(\d{1,12})(ms|s|m|h|d)?$/.exec(text);
    if (!match) return new Fault("is not a duration (10s, 5m, 14d or a number of seconds)");
    const value = Number(match[1]) * UNITS[(match[2] ?? "s") as keyof typeof UNITS];
    if (value < min || value > max) return new Fault(`must be between ${min / 1000}s and ${max / 1000}s`);
    return value;
  };
}

export function integer(min: number, max: number): Parse<number> {
  return (text) => {
    if (!/^\d{1,15}$/.test(text)) return new Fault("is not a whole number");
    const value = Number(text);
    return value < min || value > max ? new Fault(`must be between ${min} and ${max}`) : value;
  };
}

/** A point in time: `2027-01-31` (the start of that day, UTC) or `2027-01-31T12:00:00Z`; ms since the epoch out. */
export function date(text: string): number | Fault {
  const ms = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d)?(Z|[+-]\d\d:\d\d))?$/.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(ms) ? new Fault("is not a date such as 2027-01-31 or 2027-01-31T12:00:00Z") : ms;
}

/** How often something may be done; undefined: without limit. */
export type RateSetting = { readonly count: number; readonly windowMs: number } | undefined;

/** `300/30s`, or `off`. */
export function rate(text: string): RateSetting | Fault {
  if (text.toLowerCase() === "off") return undefined;
  const [, digits, window] = /^(\d{1,7})\/(\w+)$/.exec(text) ?? [];
  if (digits === undefined || window === undefined) return new Fault("is neither a rate such as 300/30s nor off");
  const count = integer(1, 1_000_000)(digits);
  const windowMs = duration(SECOND_MS, DAY_MS)(window);
  if (count instanceof Fault) return new Fault(`has a count that ${count.text}`);
  if (windowMs instanceof Fault) return new Fault(`has a time that ${windowMs.text}`);
  return { count, windowMs };
}

export function boolean(text: string): boolean | Fault {
  if (text === "true") return true;
  if (text === "false") return false;
  return new Fault("is not true or false");
}

export function oneOf<const T extends string>(...values: T[]): Parse<T> {
  return (text) => {
    const value = values.find((v) => v.toLowerCase() === text.toLowerCase());
    return value ?? new Fault(`is not one of ${values.join(", ")}`);
  };
}

/** Comma-separated; spaces around an item are not part of it. */
export function list<T>(item: Parse<T>): Parse<readonly T[]> {
  return (text) => {
    const values: T[] = [];
    for (const part of text.split(",")) {
      const value = item(part.trim());
      if (value instanceof Fault) return value;
      values.push(value);
    }
    return Object.freeze(values);
  };
}

/** The path of a file that is there, and that we may read. */
export function readableFile(path: string): string | Fault {
  try {
    accessSync(path, constants.R_OK);
    return path;
  } catch {
    return new Fault("names a file that cannot be read");
  }
}

/** A host name or address to listen on. */
export function host(text: string): string | Fault {
  return /^[A-Za-z0-9.:_-]{1,253}$/.test(text) ? text : new Fault("is not a host name or an address");
}

/** A web origin exactly as browsers send it (RFC 6454): scheme, host, port where not the default; no path. */
export function origin(text: string): string | Fault {
  if (text === "*") return new Fault("may not be *: credentials are never shared with every origin");
  const url = URL.parse(text);
  if (url === null || (url.protocol !== "https:" && url.protocol !== "http:") || url.origin !== text) {
    return new Fault("has an item that is not an origin such as https://app.example.com");
  }
  return text;
}

/** An issuer identifier (RFC 8414 section 2): an http(s) URL without query and fragment. */
export function issuer(text: string): string | Fault {
  const url = URL.parse(text);
  if (url === null || !/^https?:$/.test(url.protocol) || /[?#\s]/.test(text) || url.username || url.password) {
    return new Fault("is not an http(s) URL without credentials, query and fragment");
  }
  return text;
}

export function text(max: number): Parse<string> {
  return (value) => {
    if (value.length > max) return new Fault(`is longer than ${max} characters`);
    return /\p{Cc}/u.test(value) ? new Fault("has control characters") : value;
  };
}

/** An admin token: long enough that guessing is hopeless, and made of what a header may carry (RFC 6750 b64token). */
export function adminToken(value: string): string | Fault {
  if (value.length < 32) return new Fault("has a token shorter than 32 characters");
  return /^[A-Za-z0-9._~+/-]+=*$/.test(value)
    ? value
    : new Fault("has a token with characters that a Bearer header cannot carry");
}
