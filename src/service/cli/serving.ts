import { once } from "node:events";
import { errorMessage } from "../../platform/files/error-code.ts";
import { CommandError, type Context, usageError } from "./context.ts";

type Log = (line: object) => void;

/** Returns a log that writes each event as a line of JSON to standard error. */
export const logOf =
  ({ note }: Context): Log =>
  (line) => {
    const error = "error" in line ? { error: errorMessage(line.error) } : {};
    note(JSON.stringify({ time: new Date().toISOString(), ...line, ...error }));
  };

/** Parses the value of `--port`. @throws CommandError */
export function parsePort(text: string): number {
  if (/^\d{1,5}$/.test(text) && Number(text) <= 65_535) return Number(text);
  throw usageError("--port is a number of at most 65535");
}

/** Ends the command with the message of an error that the user can fix. @throws CommandError */
function refuse(error: unknown): never {
  throw new CommandError(errorMessage(error));
}

/** Reports that a server is ready, and closes it at a signal. @throws CommandError if it cannot be opened */
export async function serveUntilSignal(
  { print }: Context,
  log: Log,
  opening: Promise<{ readonly url: string; readonly close: () => Promise<void> }>,
): Promise<void> {
  const server = await opening.catch(refuse);
  print(JSON.stringify({ event: "ready", url: server.url }));
  await Promise.race([once(process, "SIGTERM"), once(process, "SIGINT")]);
  log({ event: "draining" });
  await server.close();
}
