/**
 * The log: JSON lines on standard error, readable text on a terminal.
 * Fields that may hold a credential are redacted by name, every text is made safe and bounded, and every event has a budget of lines. If
 * the reader stalls, lines are lost.
 */
import { type Level, type Logger, type LoggerOptions, pino } from "pino";
import { createLineLimit, LINES_PER_SECOND } from "../../platform/log/line-limit.ts";
import { createLineSink, type LineSink } from "../../platform/log/line-sink.ts";
import { readable } from "./readable.ts";
import { safeStack, safeText } from "./text.ts";

export type { Logger };

/** Counts of the log itself, for the metrics. They include lines that the log drops. */
export type LogCounts = {
  /** Calls back for each line at an enabled level, whether it is written or suppressed. */
  readonly onLine: (listener: (event: string, level: string, suppressed: boolean) => void) => void;
  /** Returns the number of lines that the reader did not accept. */
  readonly lost: () => number;
};

export type Log = {
  readonly log: Logger;
  readonly counts: LogCounts;
  /** Reports suppressed lines that no later line has reported. It is called every ten seconds, and public for tests. */
  readonly reportSuppressed: () => void;
  /** Writes the buffered lines. The log can still be used afterwards. */
  readonly flush: () => Promise<void>;
};

const SECRETS = new Set([
  "token",
  "cookie",
  "authorization",
  "accessToken",
  "refreshToken",
  "password",
  "secret",
  "privateJwk",
]);

/** The audit events that are not limited. A session causes at most one line of each, and creating a session takes an admin token. */
export const UNLIMITED_EVENTS: ReadonlySet<string> = new Set([
  "session_created",
  "session_ended",
  "session_elevated",
  "subject_forgotten",
  "subject_exported",
  "all_sessions_ended",
  "authn_token_reuse",
  "device_bound",
  "device_unbound",
]);

/** How often suppressed lines are reported, in ms, if no later line of their kind has reported them. */
const SUPPRESSED_REPORT_INTERVAL_MS = 10_000;
/** How long the process waits at its end for a stalled reader, in ms. */
const FLUSH_TIMEOUT_MS = 1000;
/** The limits of a line: the nesting of objects, and the number of entries of an array or an object. */
const MAX_DEPTH = 4;
const MAX_ENTRIES = 50;

/** The functions that suppress lines of a logger before their fields are collected. */
const suppressors = new WeakMap<Logger, (level: Level, fields: Fields) => boolean>();

/**
 * Counts a line as suppressed if its event has used up its lines of this second; then it must not be logged. Code may call this before it
 * collects all fields of a line, which takes too long in a flood of bad credentials. @param fields those that the line's kind depends on
 */
export function suppressLine(log: Logger, level: Level, fields: Fields): boolean {
  return suppressors.get(log)?.(level, fields) ?? false;
}

type Fields = Readonly<Record<string, unknown>>;

/** @param clock returns milliseconds */
export function createLogger(level: string, clock: () => number = Date.now): Log {
  const limit = createLineLimit(clock, LINES_PER_SECOND, UNLIMITED_EVENTS);
  let onLine: Parameters<LogCounts["onLine"]>[0] = () => {};
  const options: LoggerOptions = {
    level,
    // An error of Redis includes the arguments of its command, which name sessions. So only its type, code and stack are logged.
    serializers: { err: describeError },
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: (fields) => safeFields(fields, MAX_DEPTH) },
    hooks: {
      logMethod(args, method, levelNumber) {
        const [fields, message] = partsOf(args);
        const label = pino.levels.labels[levelNumber] ?? "info";
        const event = typeof fields.event === "string" ? safeText(fields.event, 64) : message || "other";
        const suppressed = limit.admit(event, kindOf(event, label, fields));
        onLine(event, label, suppressed === undefined);
        if (suppressed === undefined) return;
        method.call(this, suppressed > 0 ? { ...fields, suppressed } : fields, message);
      },
    },
  };
  const { log, sink } = openLog(options);
  const kindOfEvent = rememberKinds();
  suppressors.set(log, (level, fields) => {
    const { event, kind } = kindOfEvent(level, fields);
    if (!limit.suppress(event, kind)) return false;
    onLine(event, level, true);
    return true;
  });
  const reportSuppressed = () => {
    for (const { kind, lines } of limit.takeSuppressed()) {
      log.warn({ event: "log_lines_suppressed", kind, lines }, "log_lines_suppressed");
    }
  };
  setInterval(reportSuppressed, SUPPRESSED_REPORT_INTERVAL_MS).unref();
  return {
    log,
    counts: {
      onLine(listener) {
        onLine = listener;
      },
      lost: () => sink?.lost ?? 0,
    },
    reportSuppressed,
    async flush() {
      reportSuppressed();
      await sink?.flush(FLUSH_TIMEOUT_MS);
    },
  };
}

function openLog(options: LoggerOptions): { log: Logger; sink: LineSink | undefined } {
  if (process.stderr.isTTY) {
    return { log: pino(options, { write: (line) => void process.stderr.write(readable(line)) }), sink: undefined };
  }
  const sink = createLineSink(process.stderr, (lines) => {
    log.warn({ event: "log_lines_lost", lines }, "log_lines_lost");
  });
  const log: Logger = pino(options, sink);
  return { log, sink };
}

/** Splits the arguments of a call, which are fields, a message, or both. */
function partsOf(args: readonly unknown[]): [fields: Readonly<Record<string, unknown>>, message: string] {
  const [first, second] = args;
  if (typeof first === "string") return [{}, safeText(first)];
  const message = typeof second === "string" ? safeText(second) : "";
  return [isPlain(first) ? first : { err: first }, message];
}

/**
 * Returns the kind of a line. Each kind has its own budget of lines, so many refusals for one reason do not suppress those for another
 * reason, and refusals of other credentials do not suppress those of admin tokens.
 */
function kindOf(event: string, level: Level | string, fields: Readonly<Record<string, unknown>>): string {
  const reason = typeof fields.reason === "string" ? ` ${safeText(fields.reason, 64)}` : "";
  const limit = typeof fields.limit === "string" ? ` ${safeText(fields.limit, 64)}` : "";
  return `${level} ${event}${reason}${limit}${fields.admin === true ? " admin" : ""}`;
}

/** How many kinds of log lines are remembered. */
const MAX_KINDS = 256;

/** A kind of log lines, with the level and the fields from which it was determined. */
type Kind = { readonly event: string; readonly kind: string; readonly level: Level; readonly fields: Fields };

/** Returns a function that determines the kind of a line. As this is slow, it caches the last kind for each `reason` or `limit`. */
function rememberKinds(): (level: Level, fields: Fields) => Kind {
  const known = new Map<unknown, Kind>();
  return (level, { event: given, reason, limit, admin }) => {
    const last = known.get(reason ?? limit);
    if (
      last?.level === level &&
      last.fields.event === given &&
      last.fields.reason === reason &&
      last.fields.limit === limit &&
      last.fields.admin === admin
    )
      return last;
    const fields = { event: given, reason, limit, admin };
    const event = typeof given === "string" ? safeText(given, 64) : "other";
    const kind = { event, kind: kindOf(event, level, fields), level, fields };
    if (last !== undefined || known.size < MAX_KINDS) known.set(reason ?? limit, kind);
    return kind;
  };
}

/** Redacts the fields. pino's own redaction is not used, because it takes as long as all other work on a line. */
function safeFields(fields: Readonly<Record<string, unknown>>, levels: number): Record<string, unknown> {
  const safe: Record<string, unknown> = {};
  let entries = 0;
  for (const [name, value] of Object.entries(fields)) {
    if (entries++ === MAX_ENTRIES) break;
    safe[name] = SECRETS.has(name) ? "[redacted]" : safeValue(value, levels);
  }
  return safe;
}

function safeValue(value: unknown, levels: number): unknown {
  if (typeof value === "string") return safeText(value);
  if (levels === 0) return typeof value === "object" && value !== null ? "[nested]" : value;
  if (Array.isArray(value)) return value.slice(0, MAX_ENTRIES).map((entry) => safeValue(entry, levels - 1));
  return isPlain(value) ? safeFields(value, levels - 1) : value;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function describeError(error: unknown, levels = MAX_DEPTH): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const code = "code" in error ? { code: safeValue(error.code, 0) } : {};
  const nested = error.cause !== undefined && levels > 0;
  const cause = nested ? { cause: describeError(error.cause, levels - 1) } : {};
  const stack = safeStack(error.stack ?? "");
  return { type: safeText(error.name, 64), message: safeText(error.message), ...code, stack, ...cause };
}
