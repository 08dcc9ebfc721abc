import { ConfigError } from "../config/config.ts";
import { CommandError } from "./exit.ts";

/** Reads the configuration. Its faults end the command with exit code 1. @throws CommandError */
export function readOrRefuse<T>(read: () => T): T {
  try {
    return read();
  } catch (error) {
    throw error instanceof ConfigError ? new CommandError(error.message) : error;
  }
}
