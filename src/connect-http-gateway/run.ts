import { createLineSink } from "../platform/log/line-sink.ts";
import type { GatewayArguments } from "./arguments.ts";
import { startGateway } from "./gateway.ts";
import type { WriteLog } from "./request-log.ts";

/** How long the process waits, before it ends, until its last log lines have been read, in milliseconds. */
const FLUSH_TIMEOUT_MS = 1_000;

/** Runs a gateway with a log on stdout, until a signal ends it. @throws Error if the descriptors cannot be loaded or the port is taken */
export async function runGateway(args: GatewayArguments): Promise<void> {
  const sink = createLineSink(process.stdout, (lines) => write({ event: "log lines lost", lines }), setImmediate);
  const write: WriteLog = (line) => sink.write(`${JSON.stringify({ time: new Date().toISOString(), ...line })}\n`);
  const gateway = await startGateway(args, write);
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
