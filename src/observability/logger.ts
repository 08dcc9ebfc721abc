/**
 * The log: JSON lines on standard error, readable text on a terminal. What may carry a credential is
 * redacted by name, whoever logs it.
 */
import { type Logger, type LoggerOptions, pino } from "pino";

export type { Logger };

const SECRETS = ["token", "cookie", "authorization", "accessToken", "refreshToken", "password", "secret", "privateJwk"];

export async function createLogger(level: string): Promise<Logger> {
  const options: LoggerOptions = {
    level,
    redact: { paths: SECRETS.flatMap((name) => [name, `*.${name}`]), censor: "[redacted]" },
    // Redis tells a failed command with its arguments, and they name sessions: type, code and stack will do.
    serializers: { err: describeError },
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    formatters: { level: (label) => ({ level: label }) },
  };
  if (!process.stderr.isTTY) return pino(options, pino.destination(2));
  const { default: pretty } = await import("pino-pretty");
  return pino(options, pretty({ destination: 2, sync: true }));
}

function describeError(error: unknown): object {
  if (!(error instanceof Error)) return { type: typeof error };
  const code = "code" in error ? { code: error.code } : {};
  const cause = error.cause === undefined ? {} : { cause: describeError(error.cause) };
  return { type: error.name, message: error.message, ...code, stack: error.stack, ...cause };
}
