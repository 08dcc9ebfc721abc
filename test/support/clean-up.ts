/**
 * Cleans up when a test file has ended. The end of its process would be too late: half a second after SIGTERM, Vitest kills the process,
 * which is not enough on a busy machine.
 */
import { afterAll } from "vitest";
import { cleanUp } from "./on-exit.ts";

afterAll(cleanUp);
