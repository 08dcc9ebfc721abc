#!/usr/bin/env node
import { createLineSink } from "../observability/line-sink.ts";
import { parseArguments, USAGE } from "./arguments.ts";
import { startGateway } from "./gateway.ts";
import type { WriteLog } from "./request-log.ts";

/** How long the process waits, before it ends, until its last log lines have been read, in milliseconds. */
const FLUSH_TIMEOUT_MS = 1_000;

const sink = createLineSink(process.stdout, (lines) => write({ event: "log lines lost", lines }));
const write: WriteLog = (line) => sink.write(`${JSON.stringify({ time: new Date().toISOString(), ...line })}\n`);

async function run(args: readonly string[]): Promise<void> {
  if (args.length === 0 || args.includes("--help")) {
    process.stdout.write(USAGE);
    return;
  }
  const gateway = await startGateway(parseArguments(args), write);
  process.on("SIGHUP", () => void gateway.reload());
  const end = () => {
    write({ event: "draining" });
    void gateway
      .close()
      .then(() => sink.flush(FLUSH_TIMEOUT_MS))
      .then(() => process.exit(0));
  };
  process.once("SIGTERM", end);
  process.once("SIGINT", end);
}

run(process.argv.slice(2)).catch((error: unknown) => {
  process.stderr.write(`connect-http-gateway: ${error instanceof Error ? error.message : String(error)}\n`);
  process.exitCode = 1;
});
