/**
 * Cleans up when a test file has ended. The end of its process would be too late for that: Vitest kills a process half a second after
 * SIGTERM, and cleaning up takes longer on a busy machine.
 */
import { afterAll } from "vitest";
import { cleanUp } from "./on-exit.ts";

afterAll(cleanUp);
