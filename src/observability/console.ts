import { Console } from "node:console";
import { Writable } from "node:stream";
import type { Logger } from "./logger.ts";

/** A console whose text becomes log lines: dependencies write to the global one (connect-node and ioredis offer no other way). */
export function logConsole(log: Logger): Console {
  const linesAt = (level: "info" | "warn") =>
    new Writable({
      decodeStrings: false,
      write(text: string, _encoding, done) {
        log[level]({ event: "console" }, text.trimEnd());
        done();
      },
    });
  return new Console({ stdout: linesAt("info"), stderr: linesAt("warn"), colorMode: false });
}
