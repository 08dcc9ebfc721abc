/** The file store: how it replaces files, and how it handles what killed processes have left behind. */
import { execFile } from "node:child_process";
import {
  lstatSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { promisify } from "node:util";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { createFileStore, createTokenSession, type StoredTokens } from "../../src/client/index.ts";

const run = promisify(execFile);

let directory: string;
let path: string;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "file-store-"));
  path = join(directory, "session.json");
});
afterEach(() => rmSync(directory, { recursive: true }));

const leave = (name: string, ageMs: number) => {
  writeFileSync(join(directory, name), "secret");
  const time = (Date.now() - ageMs) / 1000;
  utimesSync(join(directory, name), time, time);
};

test.each(["save", "clear"] as const)(
  "%s removes the temporary files of killed processes, and no others",
  async (change) => {
    const [old, young] = ["00000000-0000-4000-8000-000000000001", "00000000-0000-4000-8000-000000000002"];
    const kept = [
      `session.json.${young}.tmp`,
      `session.json.bak.tmp`,
      `other.json.${old}.tmp`,
      `xsession.json.${old}.tmp`,
    ];
    leave(`session.json.${old}.tmp`, 61_000);
    for (const name of kept) leave(name, name.includes(young) ? 30_000 : 3_600_000);
    await (change === "save" ? createFileStore(path).save({ refreshToken: "a" }) : createFileStore(path).clear());
    expect(readdirSync(directory).sort()).toEqual([...kept, ...(change === "save" ? ["session.json"] : [])].sort());
  },
);

test.each(["save", "clear"] as const)(
  "%s of a process whose clock is an hour ahead leaves what others write",
  async (change) => {
    const writing = "session.json.00000000-0000-4000-8000-000000000003.tmp";
    leave(writing, 0);
    const support = join(import.meta.dirname, "../support");
    const clock = join(directory, "clock");
    writeFileSync(clock, "3600000");
    const store = pathToFileURL(join(import.meta.dirname, "../../src/client/file-store.ts")).href;
    const script = `const { createFileStore } = await import(${JSON.stringify(store)});
    await createFileStore(${JSON.stringify(path)}).${change}(${change === "save" ? '{ refreshToken: "a" }' : ""});
    console.log(Date.now());`;
    const args = ["--import", join(support, "moved-clock-preload.ts"), "--input-type=module", "--eval", script];
    const { stdout } = await run(process.execPath, args, { env: { MOVED_CLOCK: clock } });
    expect(Number(stdout)).toBeGreaterThan(Date.now() + 3_000_000);
    expect(readdirSync(directory)).toContain(writing);
  },
);

test.each([null, 1, {}, { token: 5 }])("an access token that is none (%j) is left out", async (access) => {
  writeFileSync(path, JSON.stringify({ refreshToken: "a", access }));
  expect(await createFileStore(path).load()).toEqual({ refreshToken: "a" });
});

test("a new file is on the disk, and then its name", async () => {
  const store = pathToFileURL(join(import.meta.dirname, "../../src/client/file-store.ts")).href;
  const program = `import { createFileStore } from ${JSON.stringify(store)};
    await createFileStore(${JSON.stringify(path)}).save({ refreshToken: "a" });`;
  const traced = await run("strace", [
    ...["-f", "-y", "-e", "trace=fsync,rename", process.execPath, "--input-type=module", "--eval", program],
  ]);
  const steps = traced.stderr.split("\n").flatMap((line) => {
    const [, call, first] = /(fsync|rename)\([^<"]*[<"]([^>"]+)/.exec(line) ?? [];
    return call && first?.startsWith(directory) ? [[call, first.endsWith(".tmp") ? "new file" : first]] : [];
  });
  expect(steps).toEqual([
    ["fsync", "new file"],
    ["rename", "new file"],
    ["fsync", directory],
  ]);
});

test("what was replaced or removed meanwhile is left as it is", async () => {
  const store = createFileStore(path);
  await store.save({ refreshToken: "b" }, "a");
  expect(await store.load()).toBeUndefined();
  await store.save({ refreshToken: "a" });
  await store.save({ refreshToken: "c" }, "b");
  expect(await store.load()).toEqual({ refreshToken: "a" });
  await store.save({ refreshToken: "b" }, "a");
  expect(await store.load()).toEqual({ refreshToken: "b" });
  expect(readdirSync(directory)).toEqual(["session.json"]);
  await store.clear("a");
  expect(await store.load()).toEqual({ refreshToken: "b" });
  await store.clear("b");
  expect(readdirSync(directory)).toEqual([]);
  await store.clear("b");
});

const ACCESS = {
  token: "t",
  obtainedAtMs: 0,
  refreshAtMs: Number.MAX_SAFE_INTEGER,
  expiresAtMs: Number.MAX_SAFE_INTEGER,
};

test.each([
  ["has signed in", { refreshToken: "new login" }, "none", { refreshToken: "new login" }],
  ["has signed in and refreshed", { refreshToken: "b", access: ACCESS }, "granted", { refreshToken: "c" }],
  ["has refreshed the same session", { refreshToken: "b", access: ACCESS }, "refused", undefined],
  [
    "may have done either, and the service is away,",
    { refreshToken: "b", access: ACCESS },
    "outage",
    { refreshToken: "b" },
  ],
  ["has signed out", undefined, "none", undefined],
] as const)("another process %s while the session ends", async (_, other, reply, after) => {
  const file = createFileStore(path);
  await file.save({ refreshToken: "a" });
  const requests: (string | null)[][] = [];
  const session = createTokenSession({
    service: "https://auth.example",
    clientId: "cli",
    store: file,
    async fetch(_url, init) {
      const form = init?.body as URLSearchParams;
      requests.push([form.get("token"), form.get("refresh_token")]);
      if (form.has("refresh_token") && reply === "outage") throw new TypeError("fetch failed");
      if (form.has("refresh_token"))
        return reply === "granted"
          ? Response.json({ access_token: "u", refresh_token: "c", expires_in: 60 })
          : Response.json({ error: "invalid_grant" }, { status: 400 });
      await (other === undefined ? file.clear() : file.save(other));
      return Response.json({});
    },
  });
  await session.end();
  expect(requests).toEqual([["a", null], ...(reply === "none" ? [] : [[null, "b"]])]);
  const left = await file.load();
  expect(left && { refreshToken: left.refreshToken }).toEqual(after);
});

test.each([
  ["signs in", { refreshToken: "new login" }],
  ["signs out", undefined],
])("another process %s while a refresh is about to save: its tokens are void", async (_, after) => {
  const file = createFileStore(path);
  await file.save({ refreshToken: "a" });
  const session = createTokenSession({
    service: "https://auth.example",
    clientId: "cli",
    store: {
      ...file,
      async save(tokens, replacing) {
        await (after === undefined ? file.clear() : file.save(after));
        await file.save(tokens, replacing);
      },
    },
    fetch: async () => Response.json({ access_token: "t", refresh_token: "b", expires_in: 60 }),
  });
  expect(await session.accessToken()).toBe("t");
  expect(await file.load()).toEqual(after);
});

describe("a store that fails", () => {
  const EIO = Object.assign(new Error("input/output error"), { code: "EIO" });
  /** A session whose token is due for a refresh. Its store fails at the call `failing` of all its calls, or at every call. */
  async function due(failing: number | "all", validMs: number) {
    let stored: StoredTokens | undefined = {
      refreshToken: "a",
      access: { token: "t", obtainedAtMs: 0, refreshAtMs: 1_000, expiresAtMs: 1_000 + validMs },
    };
    let calls = 0;
    const counted = () => {
      if (calls++ === failing || failing === "all") throw EIO;
    };
    const session = createTokenSession({
      service: "https://auth.example",
      clientId: "cli",
      now: () => 1_000,
      store: {
        async load() {
          counted();
          return stored;
        },
        async save(tokens) {
          counted();
          stored = tokens;
        },
        async clear() {
          counted();
          stored = undefined;
        },
        // A function that is not async throws at once.
        prepare() {
          counted();
          return Promise.resolve();
        },
      },
      fetch: async () => Response.json({ access_token: "u", refresh_token: "b", expires_in: 60 }),
    });
    return { session, calls: () => calls };
  }
  const unavailable = { name: "SessionUnavailable", cause: EIO };

  test("at any single call costs no token that is valid, or is reported as such", async () => {
    const { session, calls } = await due(-1, 0);
    expect(await session.accessToken()).toBe("u");
    for (const validMs of [0, 1]) {
      for (let failing = 0; failing < calls(); failing++) {
        const { session } = await due(failing, validMs);
        const outcome = await session.accessToken().catch((error: unknown) => error);
        // The first two calls read the tokens. Without them, no token is known.
        if (validMs === 0 || failing < 2) expect(outcome, `call ${failing}`).toMatchObject(unavailable);
        else expect(["t", "u"], `call ${failing}`).toContain(outcome);
        expect(await session.accessToken()).toBe("u");
      }
    }
  });

  test("for good is reported by each function", async () => {
    const { session } = await due("all", 1);
    for (const call of [
      () => session.start({ refreshToken: "b" }),
      () => session.accessToken(),
      () => session.fetch("https://auth.example/"),
      () => session.end(),
    ])
      await expect(call()).rejects.toMatchObject(unavailable);
  });
});

test("links to links stay, although the file does not exist yet", async () => {
  mkdirSync(join(directory, "a/b"), { recursive: true });
  symlinkSync("a/b", join(directory, "short"));
  symlinkSync("../tokens.json", join(directory, "a/b/second"));
  symlinkSync("short/second", path);
  await createFileStore(path).save({ refreshToken: "r" });
  expect(lstatSync(join(directory, "a/b/second")).isSymbolicLink()).toBe(true);
  expect(JSON.parse(readFileSync(join(directory, "a/tokens.json"), "utf8"))).toEqual({ refreshToken: "r" });
});

test("a symbolic link stays, and no tokens are left where it leads to", async () => {
  mkdirSync(join(directory, "kept"));
  const target = join(directory, "kept", "tokens.json");
  symlinkSync("kept/tokens.json", path);
  const [byLink, byName] = [createFileStore(path), createFileStore(target)];
  await byLink.save({ refreshToken: "a" });
  expect(await byName.load()).toEqual({ refreshToken: "a" });
  await byName.save({ refreshToken: "b" }, "a");
  await byLink.save({ refreshToken: "c" }, "b");
  expect(JSON.parse(readFileSync(target, "utf8"))).toEqual({ refreshToken: "c" });
  expect(lstatSync(path).isSymbolicLink()).toBe(true);
  await byLink.clear();
  expect([await byName.load(), readdirSync(join(directory, "kept"))]).toEqual([undefined, []]);
});
