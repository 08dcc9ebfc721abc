/** The commands about sessions and tokens, against a running service. */
import { spawnSync } from "node:child_process";
import { createHash, randomBytes } from "node:crypto";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ClientKind, CreateSessionRequestSchema } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { PROGRAM } from "../../support/program.ts";
import { type Service, scratch, startService } from "../../support/service.ts";
import { logIn } from "../../support/sessions.ts";
import { until } from "../../support/until.ts";
import { command, commandHere } from "./command.ts";

let service: Service;
/** The environment of a person who administers the service. */
let env: Record<string, string>;
beforeAll(async () => {
  service = await startService();
  env = { ADMIN_URL: service.adminUrl, ADMIN_TOKEN: service.adminToken };
});
afterAll(async () => {
  await service.stop();
});

type Created = {
  readonly session: Record<string, unknown> & { readonly sessionId: string };
  readonly accessToken: string;
  readonly refreshToken: string;
  readonly setCookies: readonly string[];
};

/** Creates a session by the command. Tests of other commands use `logIn` instead, which starts no process. */
async function created(subject: string, ...more: string[]): Promise<Created> {
  const { code, out, err } = await commandHere(["sessions", "create", "--subject", subject, "--json", ...more], {
    env,
  });
  expect({ code, err }).toEqual({ code: 0, err: "" });
  return JSON.parse(out) as Created;
}

const newSubject = () => `user-${randomBytes(4).toString("hex")}`;
const refreshStatus = async ({ refreshToken }: { readonly refreshToken: string }) =>
  (
    await fetch(`${service.publicUrl}/v1/auth/refresh`, {
      method: "POST",
      headers: { cookie: `refresh_token=${refreshToken}` },
    })
  ).status;

/** Options of `sessions create` that do not have the name of their field, and fields that have none. */
const OPTIONS: Readonly<Record<string, string | undefined>> = {
  ...{ claims: "--claim", audiences: "--audience", client: "--user-agent", replaces_session_id: "--replaces" },
  ...{ device_binding_policy: "--require-device-binding", persistent: "--no-persistent", limit: "--max-sessions" },
  ...{ transport: undefined, dpop_jkt: undefined, upstream: undefined },
};

describe("sessions create", () => {
  test("has an option for every field", async () => {
    const { out } = await commandHere(["sessions", "create", "--help"], { env });
    const wanted = CreateSessionRequestSchema.fields.map(({ name }) =>
      Object.hasOwn(OPTIONS, name) ? OPTIONS[name] : `--${name.replaceAll("_", "-")}`,
    );
    expect(wanted.filter((option) => option !== undefined && !out.includes(`${option} `))).toEqual([]);
  });

  test("creates a session with all that is given, and prints its tokens", async () => {
    const subject = newSubject();
    const { session, accessToken, refreshToken, setCookies } = await created(
      ...[subject, "--claim", "role=editor", "level=7", "--client-id", "shop", "--audience", "https://a.example"],
      ...[
        "--kind",
        "desktop",
        "--display-name",
        "laptop",
        "--user-agent",
        "UA",
        "--ip-address",
        "192.0.2.1",
        "--idle-timeout",
        "1h",
      ],
      ...["--absolute-lifetime", "2h", "--auth-time", "now", "--amr", "pwd", "otp", "--acr", "gold"],
    );
    expect(session).toMatchObject({
      subject,
      claims: { role: "editor", level: 7 },
      clientId: "shop",
      audiences: ["https://a.example"],
      client: { displayName: "laptop", userAgent: "UA", ipAddress: "192.0.2.1", kind: "CLIENT_KIND_DESKTOP" },
      amr: ["pwd", "otp"],
      acr: "gold",
    });
    const time = (name: string) => Date.parse(String(session[name]));
    expect(time("idleExpireTime") - time("createTime")).toBe(3_600_000);
    expect(time("absoluteExpireTime") - time("createTime")).toBe(7_200_000);
    expect([accessToken.split(".").length, refreshToken.length, setCookies.length]).toEqual([3, 96, 1]);
  });

  test("prints them for people, too", async () => {
    const { code, out } = await commandHere(["sessions", "create", "--subject", newSubject()], { env });
    expect(code).toBe(0);
    expect(out).toMatch(/^session +\S{23}\nsubject +user-/);
    expect(out).toMatch(/\naccess token +ey\S+\nrefresh token +\S{96}\nset-cookie +refresh_token=/);
  });

  test.each([
    [["--claim", "novalue"], "--claim must be name=value"],
    [["--idle-timeout", "soon"], "--idle-timeout is not a duration"],
    [["--auth-time", "soon"], "--auth-time must be now, or a time"],
    [["--auth-time", "7"], "--auth-time must be now, or a time"],
    [["--auth-time", "2026-02-30T12:00:00Z"], "--auth-time must be now, or a time"],
    [["--kind", "phone"], "Allowed choices are browser, mobile, desktop, cli, agent, tv"],
    [["--actor-reason", "ticket 7"], "--actor is needed with the options about it"],
    [["--when-exceeded", "refuse"], "--limit-scope and --when-exceeded need --max-sessions"],
  ])("refuses %j as wrong usage", async (more, fault) => {
    const { code, err } = await commandHere(["sessions", "create", "--subject", "a", ...more], { env });
    expect([code, err]).toEqual([2, expect.stringContaining(fault)]);
  });

  test("names who uses the session in place of the user, and it ends with the actor's own", async () => {
    const support = newSubject();
    const own = await created(support);
    const actorSession = String(own.session.sessionId);
    const { session, refreshToken } = await created(
      ...[newSubject(), "--actor", support, "--actor-reason", "ticket 7"],
      ...["--actor-session", actorSession, "--end-with-actor"],
    );
    expect(session.actor).toEqual({
      ...{ subject: support, reason: "ticket 7", sessionId: actorSession, endWithSession: true },
    });
    expect((await commandHere(["sessions", "end", actorSession], { env })).code).toBe(0);
    await until(async () => expect(await refreshStatus({ refreshToken })).toBe(401));
  });

  test("lists what is live when a limit refuses the session", async () => {
    const subject = newSubject();
    const limit = ["--max-sessions", "1", "--limit-scope", "client_kind", "--when-exceeded", "refuse", "--kind", "tv"];
    const { session } = await created(subject, ...limit);
    await created(subject, "--max-sessions", "1", "--limit-scope", "client_kind", "--kind", "cli");
    const { code, out, err } = await commandHere(["sessions", "create", "--subject", subject, ...limit], { env });
    expect([code, out]).toEqual([1, ""]);
    expect(err).toContain(
      `the user has too many sessions: end one of them, the least recently used first: ${session.sessionId}`,
    );
  });

  test("reports what the service refuses", async () => {
    const { code, out, err } = await commandHere(["sessions", "create", "--subject", "a", "--claim", "sub=b"], { env });
    expect([code, out]).toEqual([2, ""]);
    expect(err).toContain("sub");
    expect(err).not.toContain("    at ");
  });
});

describe("sessions list and show", () => {
  test("list a user's sessions, newest first, and say when there are more", async () => {
    const subject = newSubject();
    const first = await logIn(service, { subject, client: { displayName: "phone" } });
    const second = await logIn(service, { subject, client: { displayName: "evil\u202eeman" } });
    const { code, out } = await commandHere(["sessions", "list", "--subject", subject], { env });
    expect(code).toBe(0);
    const lines = out.trimEnd().split("\n");
    expect(lines[0]?.split(/ {2,}/)).toEqual([
      "session",
      "subject",
      "client",
      "kind",
      "created",
      "refreshed",
      "ends",
      "bound",
      "device",
    ]);
    expect(lines.slice(1).map((line) => line.split(" ")[0])).toEqual([second.sid, first.sid]);
    expect(out).not.toContain("\u202e");
    const limited = await commandHere(["sessions", "list", "--subject", subject, "--limit", "1", "--json"], { env });
    expect(JSON.parse(limited.out).sessions).toEqual([expect.objectContaining({ sessionId: second.sid })]);
    expect(limited.err).toContain("there are more");
    const tv = await logIn(service, { subject, client: { kind: ClientKind.TV } });
    const ofKind = await commandHere(["sessions", "list", "--subject", subject, "--kind", "tv"], { env });
    expect(ofKind.out).toMatch(new RegExp(`\\n${tv.sid} .* tv .*\\n$`));
    expect(ofKind.out.trimEnd().split("\n")).toHaveLength(2);
  });

  test("show one, and report one that is not there", async () => {
    const { session } = await created(newSubject(), "--claim", "role=editor");
    const shown = await commandHere(["sessions", "show", session.sessionId], { env });
    expect(shown.code).toBe(0);
    expect(shown.out).toMatch(/\nclaims +\{"role":"editor"\}\n/);
    expect(shown.out).not.toContain("last user agent");
    expect(JSON.parse((await commandHere(["sessions", "show", session.sessionId, "--json"], { env })).out)).toEqual(
      session,
    );
    await commandHere(["sessions", "end", session.sessionId], { env });
    const gone = () => commandHere(["sessions", "show", session.sessionId], { env });
    await until(async () => expect((await gone()).err).toMatch(/: it ended at \d{4}-\S+Z \(revoked_by_admin\)\n$/));
    expect(await gone()).toMatchObject({ code: 1, out: "" });
    const never = await commandHere(["sessions", "show", `${session.sessionId.slice(0, -3)}AAA`], { env });
    expect(never).toMatchObject({ code: 1, out: "", err: expect.stringMatching(/^there is no live session \S+\n$/) });
  });

  test("show every field that is set, one without a line of its own by its name", async () => {
    const upstream = { issuer: "https://login.example", subject: "a user" };
    const { sid } = await logIn(service, { subject: newSubject(), persistent: false, upstream });
    const { out } = await commandHere(["sessions", "show", sid], { env });
    expect(out).toMatch(/\npersistent +false\n/);
    expect(out).toMatch(/\nupstream +\{"issuer":"https:\/\/login.example","subject":"a user"\}\n/);
  });

  test("show who refreshed it last, if the service keeps that", async () => {
    const other = await startService({ LAST_SEEN: "full" });
    const { sid, refreshToken } = await logIn(other);
    const headers = { cookie: `refresh_token=${refreshToken}`, "user-agent": "Example-App/3.1" };
    await fetch(`${other.publicUrl}/v1/auth/refresh`, { method: "POST", headers });
    const own = { ADMIN_URL: other.adminUrl, ADMIN_TOKEN: other.adminToken };
    const { out } = await commandHere(["sessions", "show", sid], { env: own });
    expect(out).toMatch(/\nlast user agent +Example-App\/3\.1\nlast address +127\.0\.0\.1\n/);
    await other.stop();
  });

  test("list those of all users, by application, device and age, for another command to end", async () => {
    const clientId = newSubject();
    const [phone, laptop] = [
      await logIn(service, { clientId, client: { displayName: "My Phone", ipAddress: "192.0.2.7" } }),
      await logIn(service, { subject: clientId, clientId, client: { displayName: "laptop" } }),
    ];
    const list = async (...args: string[]) => (await commandHere(["sessions", "list", "--ids", ...args], { env })).out;
    const [one, other] = [phone.sid, laptop.sid];
    expect(await list("--client-id", clientId)).toBe(`${other}\n${one}\n`);
    expect(await list("--client-id", clientId, "--ip-address", "192.0.2.")).toBe(`${one}\n`);
    expect(await list("--subject-prefix", clientId.slice(0, -1))).toBe(`${other}\n`);
    expect(await list("--client-id", clientId, "--device", "phone")).toBe(`${one}\n`);
    expect(await list("--client-id", clientId, "--created-before", "2026-01-01")).toBe("");
    expect(await list("--client-id", clientId, "--created-after", "2026-01-01")).toBe(`${other}\n${one}\n`);
    expect(await list("--client-id", clientId, "--created-after", "2026-01-01T00:00:00.123+01:00")).toBe(
      `${other}\n${one}\n`,
    );
    const input = await list("--client-id", clientId);
    expect((await command(["sessions", "end", "-"], { env, input })).code).toBe(0);
    expect(await list("--client-id", clientId)).toBe("");
  });

  test("list what happened to a user's sessions", async () => {
    const { subject, sid } = await logIn(service);
    await commandHere(["sessions", "end", sid], { env });
    const events = async (...args: string[]) => (await commandHere(["sessions", "events", ...args], { env })).out;
    await until(async () =>
      expect(await events("--subject", subject)).toMatch(/ended +revoked_by_admin +\S+ .*\n\S+ +created /),
    );
    const { events: list } = JSON.parse(await events("--session", sid, "--json"));
    expect(list.map(({ type }: { type: string }) => type)).toEqual([
      "SESSION_EVENT_TYPE_ENDED",
      "SESSION_EVENT_TYPE_CREATED",
    ]);
    expect((await commandHere(["sessions", "events"], { env })).code).toBe(2);
  });

  test("an unknown user has none", async () => {
    expect(await commandHere(["sessions", "list", "--subject", "nobody"], { env })).toEqual({
      code: 0,
      out: "",
      err: "no live session\n",
    });
  });
});

describe("sessions end", () => {
  test("ends those that are named, and says which were live", async () => {
    const [one, other, kept] = [await logIn(service), await logIn(service), await logIn(service)];
    const sessionId = one.sid;
    const ended = await commandHere(["sessions", "end", sessionId], { env });
    expect([ended.code, ended.out]).toEqual([0, expect.stringMatching(new RegExp(`${sessionId} +ended\n$`))]);
    const input = `${sessionId}\n\n ${other.sid}\n`;
    const { code, out, err } = await command(["sessions", "end", "-", "--json"], { env, input });
    expect({ code, err }).toEqual({ code: 0, err: "" });
    expect(JSON.parse(out).sessions).toEqual([
      { sessionId, ended: false },
      { sessionId: other.sid, ended: true },
    ]);
    expect([await refreshStatus(one), await refreshStatus(other), await refreshStatus(kept)]).toEqual([401, 401, 200]);
  });
});

describe("sessions end-all", () => {
  test("ends a user's sessions but one", async () => {
    const subject = newSubject();
    const [one, kept] = [await logIn(service, { subject }), await logIn(service, { subject })];
    const args = ["sessions", "end-all", "--subject", subject, "--except", kept.sid];
    expect((await commandHere(args, { env })).out).toBe("ended 1 session of 1 user\n");
    expect([await refreshStatus(one), await refreshStatus(kept)]).toEqual([401, 200]);
  });

  test("ends those of many users, read from standard input", async () => {
    const subjects = Array.from({ length: 20 }, newSubject);
    for (const subject of subjects.slice(0, 3)) await logIn(service, { subject });
    const args = ["sessions", "end-all", "--subjects-from", "-", "--json"];
    const { code, out } = await command(args, { env, input: subjects.join("\n") });
    expect([code, JSON.parse(out)]).toEqual([0, { subjects: 20, endedCount: 3, left: [], refused: [] }]);
  });

  test("ends everybody's only when that is confirmed", async () => {
    const user = await logIn(service);
    const refused = await commandHere(["sessions", "end-all", "--everyone"], { env });
    expect([refused.code, refused.out, refused.err]).toEqual([1, "", expect.stringContaining("nothing was ended")]);
    const before = await commandHere(["sessions", "end-all", "--everyone", "--yes", "--created-before", "2026-01-01"], {
      env,
    });
    expect(before.code).toBe(0);
    expect(await refreshStatus(user)).toBe(200);
    const { code, out } = await commandHere(["sessions", "end-all", "--everyone", "--yes"], { env });
    expect([code, out]).toEqual([
      0,
      expect.stringMatching(/^ended every session that was created until \d{4}-\S+Z\n$/),
    ]);
    expect(await refreshStatus(user)).toBe(401);
  });

  test.each([
    [[], "exactly one of"],
    [["--subject", "a", "--everyone"], "exactly one of"],
    [["--everyone", "--except", "x"], "--except needs --subject"],
    [["--subject", "a", "--created-before", "2026-01-01"], "--created-before needs --everyone"],
    [["--everyone", "--created-before", "yesterday"], "It must be a time"],
    [["--everyone", "--created-before", "2026-02-30"], "It must be a time"],
    [["--everyone", "--created-before", "2026-02-03T12:00"], "It must be a time"],
    [["--subjects-from", "-", "--token-file", "-"], "standard input has the subjects"],
    [["--subject", "a", "--left", "x"], "--left needs --subjects-from"],
    [["--subject", "a", "--retry-for", "soon"], "It is not a duration"],
  ])("refuses %j as wrong usage", async (more, fault) => {
    const { code, err } = await commandHere(["sessions", "end-all", ...more], { env });
    expect([code, err]).toEqual([2, expect.stringContaining(fault)]);
  });
});

describe("update", () => {
  const update = (...args: string[]) => commandHere(["sessions", "update", ...args], { env });
  const claimsOf = async (sid: string) =>
    JSON.parse((await commandHere(["sessions", "show", sid, "--json"], { env })).out).claims;

  test("replaces the claims of a session, by its etag, and makes older access tokens stale by option", async () => {
    const user = await logIn(service, { claims: { role: "admin" } });
    const { code, out } = await update(
      user.sid,
      "--claim",
      "role=reader",
      "level=3",
      "--etag",
      "0",
      "--refresh-tokens",
    );
    expect([code, out]).toEqual([0, expect.stringMatching(/claims +\{"role":"reader","level":3\}\n.*\netag +1\n/s)]);
    const { out: verdict } = await commandHere(["token", "verify"], { env: { ...env, TOKEN: user.accessToken } });
    expect(verdict).toContain("stale");
    expect(await update(user.sid, "--no-claims", "--etag", "0")).toMatchObject({
      ...{ code: 1, out: "" },
      err: expect.stringContaining("changed in the meantime"),
    });
    expect((await update(user.sid, "--no-claims", "--audience", "a", "b")).out).toMatch(/audience +a, b/);
    expect(await claimsOf(user.sid)).toEqual({});
  });

  test("replaces those of all sessions of a user", async () => {
    const { subject, sid } = await logIn(service);
    const other = await logIn(service, { subject });
    expect((await update("--subject", subject, "--claim", "role=reader")).out).toBe("2 updated\n");
    expect(await Promise.all([sid, other.sid].map(claimsOf))).toEqual([{ role: "reader" }, { role: "reader" }]);
    expect((await update("--subject", subject, "--no-claims", "--json")).out).toBe('{"updatedCount":2}\n');
  });

  test.each([
    [[], "give a session id or --subject"],
    [["x", "--subject", "a", "--no-claims"], "give a session id or --subject"],
    [["--subject", "a", "--no-claims", "--etag", "0"], "--etag is for one session"],
    [["x"], "say what to change"],
    [["x", "--claim", "a=b", "--no-claims"], "give --claim or --no-claims"],
    [["x", "--claim", "a"], "--claim must be name=value"],
  ])("refuses %j as wrong usage", async (args, fault) => {
    const { code, err } = await update(...args);
    expect([code, err]).toEqual([2, expect.stringContaining(fault)]);
  });
});

describe("an id that begins with a dash", () => {
  /**
   * Returns a subject whose sessions have ids that begin with a dash. The first six bits of a session id equal those of the hash of its
   * subject.
   */
  function dashedSubject(): string {
    for (;;) {
      const subject = newSubject();
      if ((createHash("sha256").update(subject).digest()[0] as number) >> 2 === 62) return subject;
    }
  }

  test("is taken by every command that takes one", async () => {
    const { subject, sid: sessionId } = await logIn(service, { subject: dashedSubject() });
    expect(sessionId).toMatch(/^-/);
    const run = (...args: string[]) => commandHere(["sessions", ...args], { env });
    expect((await run("show", sessionId)).out).toContain(sessionId);
    expect((await run("show", "--json", sessionId, "--url", service.adminUrl)).out).toContain(sessionId);
    expect((await run("unbind", sessionId)).code).toBe(0);
    expect((await run("update", sessionId, "--no-claims")).out).toContain(sessionId);
    await until(async () => expect((await run("events", "--session", sessionId)).out).toContain(sessionId));
    expect((await run("end-all", "--subject", subject, "--except", sessionId)).out).toContain("ended 0 sessions");
    const next = await created(dashedSubject(), "--replaces", sessionId);
    expect((await run("end", sessionId, next.session.sessionId)).out).toMatch(/-\S+ +was not live\n-\S+ +ended\n/);
    const last = await logIn(service, { subject: dashedSubject() });
    expect((await run("end", "--", last.sid)).out).toMatch(/ended\n/);
  });

  test.each(["-h", "-V", "--"])("is none of the options that begin with %s", async (start) => {
    const id = start.padEnd(23, "A");
    expect(await commandHere(["sessions", "show", id], { env })).toEqual({
      ...{ code: 1, out: "" },
      err: `there is no live session ${id}\n`,
    });
  });

  test("may be that of a subject", async () => {
    for (const subject of [`-${newSubject()}`, "-V", "--json"]) {
      await created(subject);
      const { out } = await commandHere(["sessions", "list", "--subject", subject], { env });
      expect(out).toContain(` ${subject} `);
      const ended = await commandHere(["sessions", "end-all", "--subject", subject], { env });
      expect(ended.out).toBe("ended 1 session of 1 user\n");
    }
  });
});

describe("on a terminal", () => {
  /** Runs a command in a terminal, as a person does. */
  const onTerminal = (args: string, input = "") =>
    spawnSync("script", ["-qec", `"${process.execPath}" "${PROGRAM}" ${args}`, "/dev/null"], {
      ...{ env: { PATH: process.env.PATH, ...env }, input, encoding: "utf8" },
    });

  test("long work shows how far it is", () => {
    const file = join(scratch(), "subjects");
    writeFileSync(file, Array.from({ length: 50 }, newSubject).join("\n"));
    const { status, stdout } = onTerminal(`sessions end-all --subjects-from ${file}`);
    expect([status, stdout]).toEqual([
      0,
      expect.stringMatching(/ending \[#+\] 100%[\s\S]*ended 0 sessions of 50 users/),
    ]);
  });

  test("the end of everybody's sessions is asked about", async () => {
    const user = await logIn(service);
    const refused = onTerminal("sessions end-all --everyone", "n\n");
    expect([refused.status, refused.stdout]).toEqual([1, expect.stringContaining("nothing was ended")]);
    expect(await refreshStatus(user)).toBe(200);
    const confirmed = onTerminal("sessions end-all --everyone", "y\n");
    expect([confirmed.status, confirmed.stdout]).toEqual([0, expect.stringContaining("ended every session")]);
  });
});

describe("the credential of a command", () => {
  const list = ["sessions", "list", "--subject", "a"];

  test("comes from a file, or standard input", async () => {
    const ADMIN_URL = service.adminUrl;
    const file = join(service.dataDir, "admin-token");
    expect((await commandHere([...list, "--token-file", file], { env: { ADMIN_URL } })).code).toBe(0);
    const input = `${service.adminToken}\n`;
    expect((await command([...list, "--token-file", "-"], { env: { ADMIN_URL }, input })).code).toBe(0);
  });

  test("is by default that of the service on this machine, and for this machine alone", async () => {
    const DATA_DIR = service.dataDir;
    const { port } = new URL(service.adminUrl);
    expect((await commandHere(list, { env: { DATA_DIR, ADMIN_PORT: port } })).code).toBe(0);
    expect(
      (await commandHere(list, { env: { DATA_DIR: scratch(), ADMIN_PORT: port, ADMIN_TOKENS: service.adminToken } }))
        .code,
    ).toBe(0);
    const elsewhere = await commandHere([...list, "--url", `http://session-service.invalid:${port}`], {
      env: { DATA_DIR },
    });
    expect(elsewhere).toEqual({
      code: 4,
      out: "",
      err: "an admin token is needed: set ADMIN_TOKEN or give --token-file\n",
    });
  });

  test("ends the command with a code of its own where it is refused", async () => {
    const wrong = await commandHere(list, { env: { ...env, ADMIN_TOKEN: "x".repeat(40) } });
    expect(wrong).toEqual({
      code: 4,
      out: "",
      err: `${service.adminUrl} does not accept the credential (ADMIN_TOKEN)\n`,
    });
    const DATA_DIR = scratch();
    const file = join(DATA_DIR, "admin-token");
    const elsewhere = { DATA_DIR, ADMIN_URL: service.adminUrl };
    expect((await commandHere(list, { env: elsewhere })).err).toBe(
      `an admin token is needed: set ADMIN_TOKEN or give --token-file (there is no ${file}: is this the directory of the service?)\n`,
    );
    writeFileSync(file, "x".repeat(40));
    expect((await commandHere(list, { env: elsewhere })).err).toBe(
      `${service.adminUrl} does not accept the credential (${file}): a service with ADMIN_TOKENS or ADMIN_TOKENS_FILE takes only those: set ADMIN_TOKEN or give --token-file\n`,
    );
    const ADMIN_TOKEN = "short";
    expect(await commandHere(list, { env: { ...env, ADMIN_TOKEN } })).toMatchObject({
      code: 1,
      err: expect.not.stringContaining("short\n"),
    });
  });
});

test("a service that does not respond has an exit code of its own", async () => {
  const { code, out, err } = await commandHere(["sessions", "list", "--subject", "a", "--url", "http://127.0.0.1:1"], {
    env,
  });
  expect([code, out]).toEqual([3, ""]);
  expect(err).toMatch(/^http:\/\/127\.0\.0\.1:1 does not respond: .*ECONNREFUSED.*\n$/);
});

test("the public API is not mistaken for the admin API", async () => {
  const { code, err } = await commandHere(["sessions", "list", "--subject", "a", "--url", service.publicUrl], { env });
  expect([code, err]).toEqual([1, expect.stringContaining("is it the admin API?")]);
});

test("https where the service speaks http is named as such", async () => {
  const url = service.adminUrl.replace("http:", "https:");
  const { code, err } = await commandHere(["sessions", "list", "--url", url], { env });
  expect([code, err]).toEqual([1, `${url} does not speak TLS: is it http?\n`]);
});

test("unbind names the session that is not live", async () => {
  const { code, err } = await commandHere(["sessions", "unbind", `K${"A".repeat(22)}`], { env });
  expect([code, err]).toEqual([1, `there is no live session K${"A".repeat(22)}\n`]);
});

test("a lifetime is shown whole a moment after its start", async () => {
  const { session } = await created(newSubject(), "--idle-timeout", "14d", "--absolute-lifetime", "90d");
  const { out } = await commandHere(["sessions", "show", session.sessionId], { env });
  expect(out).toMatch(/\(in 14d\)\n.*\(in 90d\)/);
});

describe("token", () => {
  test("inspect prints what a token says, from a variable, a file or standard input", async () => {
    const { sid, accessToken, refreshToken } = await logIn(service);
    const access = await command(["token", "inspect"], { input: `Bearer ${accessToken}\n` });
    expect([access.code, access.err]).toEqual([0, "not verified: `session-service token verify` does that\n"]);
    expect(access.out).toMatch(new RegExp(`^token +access token[^]*\nsid +${sid}\n`));
    const refresh = await commandHere(["token", "inspect", "--json"], { env: { TOKEN: refreshToken } });
    expect(JSON.parse(refresh.out)).toEqual({
      kind: "refresh token",
      claims: {
        kid: expect.stringMatching(/^[0-9a-f]{8}$/),
        sid,
        generation: 1,
        iat: expect.any(Number),
      },
    });
    for (const input of ["nonsense", accessToken.replace(".", "Bearer .")]) {
      const nonsense = await command(["token", "inspect"], { input });
      expect(nonsense).toEqual({
        code: 1,
        out: "",
        err: "this is neither a JWT nor a refresh token of this service\n",
      });
    }
  });

  test("verify asks the service, and never rotates", async () => {
    const user = await logIn(service);
    for (const TOKEN of [user.accessToken, user.refreshToken, user.refreshToken]) {
      const { code, out } = await commandHere(["token", "verify"], { env: { ...env, TOKEN } });
      expect([code, out]).toEqual([0, expect.stringMatching(/^accepted: (access|refresh) token\n/)]);
    }
    expect(await refreshStatus(user)).toBe(200);
    await commandHere(["sessions", "end", user.sid], { env });
    const ended = await commandHere(["token", "verify", "--json"], { env: { ...env, TOKEN: user.accessToken } });
    expect([ended.code, JSON.parse(ended.out)]).toEqual([1, { active: false }]);
  });

  test("verify checks an access token by the keys alone, without an admin token", async () => {
    const { accessToken } = await logIn(service);
    const keys = ["--jwks-url", `${service.publicUrl}/.well-known/jwks.json`];
    const issuer = ["--issuer", service.publicUrl];
    const verify = (token: string, ...more: string[]) =>
      commandHere(["token", "verify", ...keys, ...more], { env: { TOKEN: token } });
    expect((await verify(accessToken, ...issuer)).out).toMatch(/^accepted: access token\n/);
    expect(await verify(accessToken, "--issuer", "https://other.example")).toMatchObject({
      code: 1,
      out: "not accepted: wrong_issuer\n",
    });
    expect(await verify(`${accessToken.slice(0, -8)}AAAAAAAA`, ...issuer)).toMatchObject({
      code: 1,
      out: "not accepted: forged\n",
    });
    expect(await verify(accessToken)).toMatchObject({ code: 2, err: "error: --jwks-url needs --issuer, or ISSUER\n" });
    const away = await commandHere(["token", "verify", "--jwks-url", "http://127.0.0.1:1/", ...issuer], {
      env: { TOKEN: accessToken },
    });
    expect(away.code).toBe(3);
  });
});
