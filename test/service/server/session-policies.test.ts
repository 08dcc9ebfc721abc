/** SESSION_POLICIES_FILE, in processes of the service. */
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { runToExit, scratch, startService, waitFor } from "../../support/service.ts";

const text = (...limits: object[]) => JSON.stringify({ limits });

test("a changed file is in force at once, and a broken one changes nothing", async () => {
  const file = join(scratch(), "policies.json");
  writeFileSync(file, text({ max_sessions: 1 }));
  const service = await startService({ SESSION_POLICIES_FILE: file });
  const logged = (event: string) =>
    waitFor(service, () => service.stderr().includes(`"event":"${event}"`) || undefined);
  writeFileSync(file, text({ max_sessions: 0 }));
  await logged("session_policies_refused");
  writeFileSync(file, text({ max_sessions: 2 }));
  await logged("session_policies_changed");
});

test("a service does not start with a broken file", async () => {
  const file = join(scratch(), "policies.json");
  writeFileSync(file, text({ max_sessions: 0 }));
  const { code, stderr } = await runToExit({ SESSION_POLICIES_FILE: file });
  const fault = "limits[0].max_sessions: must be a whole number from 1 to 100";
  expect([code, stderr]).toEqual([1, `SESSION_POLICIES_FILE: ${file}: ${fault}\n`]);
});
