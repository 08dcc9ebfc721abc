/** The commands that export and forget users, against a running service. */
import { randomBytes } from "node:crypto";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { aService } from "../../support/every-protocol.ts";
import { scratch } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";
import { command, commandHere } from "./command.ts";

const service = aService({ RATE_LIMIT_CREATE: "off", MAX_SESSIONS_PER_SUBJECT: "200" });
const env = () => ({ ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken });
const run = (...args: string[]) => commandHere(["subjects", ...args], { env: env() });
const newSubject = () => `user-${randomBytes(4).toString("hex")}`;

test("export prints all that is stored of a user as one document", async () => {
  const subject = newSubject();
  for (let count = 0; count < 120; count++) await logIn(service, { subject, claims: { role: "editor" } });
  const { code, out } = await run("export", "--subject", subject);
  const { sessions, events } = JSON.parse(out);
  expect([code, sessions.length]).toEqual([0, 120]);
  expect(sessions[0]).toMatchObject({ subject, claims: { role: "editor" } });
  const ids = new Set(events.map(({ sessionId }: { readonly sessionId: string }) => sessionId));
  // The events of the last sessions may not be recorded yet.
  expect(ids.size).toBeGreaterThan(100);
  expect(events).toHaveLength(ids.size);
  expect((await run("export", "--subject", subject, "--json")).out.trimEnd()).not.toContain("\n");
});

test("forget removes what is stored of a user, once that is confirmed", async () => {
  const subject = newSubject();
  await logIn(service, { subject });
  const refused = await run("forget", "--subject", subject);
  expect([refused.code, refused.out, refused.err]).toEqual([1, "", expect.stringContaining("nothing was removed")]);
  expect(refused.err).not.toContain(subject);
  expect(JSON.parse((await run("export", "--subject", subject)).out).sessions).toHaveLength(1);
  const { code, out } = await run("forget", "--subject", subject, "--yes");
  expect([code, out]).toEqual([0, expect.stringMatching(/^forgot 1 user: ended 1 session, removed \d events?\n$/)]);
  expect(JSON.parse((await run("export", "--subject", subject)).out)).toEqual({});
});

test("forget takes a list, and writes what is left of it", async () => {
  const subjects = [newSubject(), newSubject(), newSubject()];
  for (const subject of subjects) await logIn(service, { subject });
  const [file, left] = [join(scratch(), "users"), join(scratch(), "left")];
  writeFileSync(file, subjects.join("\n"));
  const args = ["--subjects-from", file, "--left", left, "--yes", "--json"];
  const { code, out } = await run("forget", ...args);
  expect([code, JSON.parse(out)]).toMatchObject([0, { subjects: 3, endedCount: 3, signalCount: 0, left: [] }]);
  expect(readFileSync(left, "utf8")).toBe("");
  const piped = await command(["subjects", "forget", "--subjects-from", "-", "--yes"], {
    env: env(),
    input: subjects.join("\n"),
  });
  expect([piped.code, piped.out]).toEqual([0, "forgot 3 users: ended 0 sessions, removed 0 events\n"]);
});

test.each([
  [["forget"], "exactly one of"],
  [["forget", "--subject", "a", "--subjects-from", "b"], "exactly one of"],
  [["forget", "--subject", "a", "--left", "x"], "--left needs --subjects-from"],
  [["forget", "--subjects-from", "-", "--token-file", "-", "--yes"], "standard input has the subjects"],
  [["forget", "--subjects-from", "-"], "confirm with --yes"],
  [["forget", "--subject", "", "--yes"], "subject"],
  [["export"], "--subject"],
])("refuses %j as wrong usage", async (args, fault) => {
  const { code, err } = await run(...args);
  expect([code, err]).toEqual([2, expect.stringContaining(fault)]);
});
