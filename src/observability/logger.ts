/**
 * The log: JSON lines on standard error, readable text on a terminal. What may carry a credential is
 * redacted by name, whoever logs it.
 */
import { type Logger, type LoggerOptions, pino } from "pino";

export type { Logger };

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

export async function createLogger(level: string): Promise<Logger> {
  const options: LoggerOptions = {
    level,
    // Redis tells a failed command with its arguments, and they name sessions: type, code and stack will do.
    serializers: { err: describeError },
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }), log: (fields) => redacted(fields) },
  };
  if (!process.stderr.isTTY) return pino(options, pino.destination(2));
  const { default: pretty } = await import("pino-pretty");
  return pino(options, pretty({ destination: 2, sync: true }));
}

/** Not by pino's own means: they take as long as all the rest of a line. */
function redacted(fields: Readonly<Record<string, unknown>>, levels = 4): Record<string, unknown> {
  const shown: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    shown[name] = SECRETS.has(name) ? "[redacted]" : levels > 0 && isPlain(value) ? redacted(value, levels - 1) : value;
  }
  return shown;
}

function isPlain(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && Object.getPrototypeOf(value) === Object.prototype;
}

function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const code = "code" in error ? { code: error.code } : {};
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) };
  return { type: error.name, message: error.message, ...code, stack: error.stack, ...cause };
}
