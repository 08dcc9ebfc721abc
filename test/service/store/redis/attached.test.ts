/** The note that a session has to end with its actor's stays until the session has ended. */
import { expect, test } from "vitest";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { createAttached } from "../../../../src/service/store/redis/attached.ts";
import { tagOfSession } from "../../../../src/service/store/redis/partitions.ts";
import type { ScriptRunner } from "../../../../src/service/store/redis/script-runner.ts";
import { elsewhere, sidOf } from "../../../support/store/sessions.ts";

test("a session whose end fails is found again", async () => {
  const [actor, sid] = [sidOf("support"), sidOf(elsewhere("support"))];
  const notes = new Set<string>([sid]);
  const listed = (tag: string) => (tag === tagOfSession(actor) ? [String(notes.size), ...notes] : ["0"]);
  const run: ScriptRunner["run"] = async (verb, tags) => {
    if (verb === "attached") return tags.flatMap(listed).map((text) => Buffer.from(text));
    if (verb === "detach") notes.clear();
    return Buffer.from("u");
  };
  let fails = true;
  const { endAttached } = createAttached(
    { run, clustered: false },
    async () => {},
    async () => {
      if (fails) throw new StoreUnavailable("out");
      return { ok: true, actor: "support" };
    },
  );
  await expect(endAttached()).rejects.toThrow(StoreUnavailable);
  fails = false;
  expect(await endAttached()).toEqual([{ sid, actor: "support" }]);
  expect(await endAttached()).toEqual([]);
});
