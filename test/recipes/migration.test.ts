/** The recipes of examples/migration with the libraries whose sessions they read, and the real service. */
import { randomUUID } from "node:crypto";
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { decodeJwt } from "jose";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { compileProject } from "../support/compiler.ts";
import { freePort } from "../support/free-port.ts";
import { type Program, startProgram, whileRunning } from "../support/processes.ts";
import { type Service, scratch, startService } from "../support/service.ts";

const ROOT = process.cwd();
const ISSUER = "https://auth.example";
const SETUP_TIMEOUT_MS = 300_000;
const toClose: (() => unknown)[] = [];
afterAll(() => Promise.all(toClose.map((close) => close())));

/** Links packages of this repository, and those of test/dependencies/migration, into a directory. */
function linkPackages(directory: string): void {
  const modules = join(directory, "node_modules");
  const link = (from: string, name: string) => {
    const target = join(modules, name);
    if (name.startsWith(".") || existsSync(target)) return;
    if (name.startsWith("@") && !name.includes("/")) {
      mkdirSync(target, { recursive: true });
      for (const one of readdirSync(join(from, name))) link(from, `${name}/${one}`);
    } else symlinkSync(join(from, name), target);
  };
  mkdirSync(modules, { recursive: true });
  const own = join(ROOT, "node_modules");
  for (const name of ["jose", "express", "@types/express", "@types/node", "undici-types"]) {
    if (name.startsWith("@")) mkdirSync(join(modules, "@types"), { recursive: true });
    symlinkSync(join(own, name), join(modules, name));
  }
  const others = join(ROOT, "test/dependencies/migration/node_modules");
  for (const name of readdirSync(others).filter((one) => one !== "@types")) link(others, name);
  link(others, "@types/express-session");
}

/** Starts an application, and a service that migrates its sessions. */
async function start(cookies: string, startApp: (env: Readonly<Record<string, string>>) => Program) {
  const [port, publicPort] = [String(await freePort()), String(await freePort())];
  const origin = `http://127.0.0.1:${port}`;
  const settings = { MIGRATE_URL: `${origin}/migrate`, ISSUER };
  const service: Service = await startService({ ...settings, MIGRATE_COOKIES: cookies, PORT: publicPort });
  const program = startApp({ ...settings, PORT: port, SESSION_URL: service.publicUrl });
  toClose.push(
    () => program.stop(),
    () => service.stop(),
  );
  await whileRunning(program, () => fetch(origin));
  return { service, origin };
}

type World = Awaited<ReturnType<typeof start>>;

const call = ({ service }: World, path: string, cookie: string) =>
  fetch(`${service.publicUrl}/v1/auth/${path}`, { method: "POST", headers: { cookie } });

async function refresh(world: World, cookie: string) {
  const response = await call(world, "refresh", cookie);
  const { data } = (await response.json()) as { data?: { accessToken: string } };
  const own = /^refresh_token=[^;]+/.exec(response.headers.getSetCookie()[0] ?? "")?.[0] ?? "";
  return { status: response.status, claims: data && decodeJwt(data.accessToken), own };
}

/** What holds for the sessions of every library. `login` returns the old cookies and the subject; `logOut` ends the old session. */
function rules(
  world: () => World,
  login: () => Promise<{ readonly cookie: string; readonly subject: string; readonly claims: object }>,
  forged: (cookie: string) => string,
  logOut?: (cookie: string) => Promise<unknown>,
): void {
  test("a user stays signed in, and once more after a lost response", async () => {
    const { cookie, subject, claims } = await login();
    const first = await refresh(world(), cookie);
    expect(first).toMatchObject({ status: 200, claims: { sub: subject, ...claims } });
    expect((await refresh(world(), cookie)).own).toBe(first.own);
    expect(await refresh(world(), `${first.own}; ${cookie}`)).toMatchObject({ status: 200, claims: { sub: subject } });
  });

  test("a forged session is none", async () => {
    const { cookie } = await login();
    expect(forged(cookie)).not.toBe(cookie);
    expect(await refresh(world(), forged(cookie))).toMatchObject({ status: 401 });
  });

  test("after a logout here the old session, which still lives there, signs nobody in", async () => {
    const { cookie } = await login();
    const { own } = await refresh(world(), cookie);
    const out = await call(world(), "logout", `${own}; ${cookie}`);
    expect(out.status).toBe(200);
    const names = cookie.split("; ").map((pair) => pair.slice(0, pair.indexOf("=")));
    for (const name of names) expect(out.headers.getSetCookie().join("\n")).toContain(`${name}=; Path=/; `);
    expect(await refresh(world(), cookie)).toMatchObject({ status: 401 });
  });

  if (logOut !== undefined) {
    test("a session that has ended there is none", async () => {
      const { cookie } = await login();
      await logOut(cookie);
      expect(await refresh(world(), cookie)).toMatchObject({ status: 401 });
    });
  }

  test("nobody but the service gets a reply", async () => {
    const { cookie } = await login();
    const { origin } = world();
    const headers = { cookie, "content-type": "application/json", authorization: "Bearer x" };
    expect((await fetch(`${origin}/migrate`, { method: "POST", headers, body: "{}" })).status).toBe(401);
  });
}

const NODE = "connect.sid,next-auth.session-token,authjs.session-token,better-auth.session_token,sb-127-auth-token";
/** Changes a character in the middle of the first cookie. */
const forge = (cookie: string) => cookie.replace(/(.{60})(.)/, (_, before, one) => before + (one === "A" ? "B" : "A"));

describe("in Node", () => {
  let world: World;
  beforeAll(async () => {
    const directory = scratch();
    linkPackages(directory);
    await cp("examples/migration", directory, { recursive: true });
    await cp("test/recipes/migration/app.ts", join(directory, "app.ts"));
    // The module `next-auth/jwt` of Auth.js 5 is this one.
    const recipe = readFileSync("examples/migration/next-auth.ts", "utf8").replace("next-auth/jwt", "@auth/core/jwt");
    writeFileSync(join(directory, "auth-js.ts"), recipe);
    const { compilerOptions } = JSON.parse(readFileSync("examples/migration/tsconfig.json", "utf8"));
    const options = { ...compilerOptions, noEmit: true, allowImportingTsExtensions: true };
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions: options, include: ["*.ts"] }));
    expect(await compileProject(directory)).toBe("");
    world = await start(NODE, (env) =>
      startProgram(process.execPath, ["--preserve-symlinks-main", join(directory, "app.ts")], {
        cwd: directory,
        env: {
          ...env,
          NEXTAUTH_SECRET: "a secret",
          NEXTAUTH_URL: "http://a.example",
          SUPABASE_URL: new URL(env.MIGRATE_URL ?? "").origin,
        },
      }),
    );
  }, SETUP_TIMEOUT_MS);

  describe("express-session", () => {
    rules(
      () => world,
      async () => {
        const subject = randomUUID();
        const response = await fetch(`${world.origin}/login/express-session?user=${subject}`);
        const cookie = response.headers.getSetCookie()[0]?.split(";")[0] ?? "";
        return { cookie, subject, claims: { role: "editor" } };
      },
      forge,
      (cookie) => fetch(`${world.origin}/logout/express-session`, { headers: { cookie } }),
    );
  });

  describe.each(["next-auth", "auth-js", "better-auth", "supabase"])("%s", (library) => {
    rules(
      () => world,
      async () => {
        const user = randomUUID();
        const response = await fetch(`${world.origin}/login/${library}?user=${user}`);
        const cookie = ((await response.json()) as string[]).join("; ");
        const subject = library === "better-auth" ? expect.any(String) : user;
        return { cookie, subject, claims: { email: `${user}@a.example` } };
      },
      forge,
      library === "supabase" ? () => fetch(`${world.origin}/logout/supabase`) : undefined,
    );
  });
});

describe("Django", () => {
  let world: World;
  beforeAll(async () => {
    const file = join(scratch(), "django.sqlite");
    world = await start("sessionid", (env) =>
      startProgram("/usr/bin/python3", ["test/recipes/migration/django_app.py", file], {
        env: { ...env, PYTHONPATH: "examples/migration/django", PYTHONDONTWRITEBYTECODE: "1" },
      }),
    );
  }, SETUP_TIMEOUT_MS);

  rules(
    () => world,
    async () => {
      const response = await fetch(`${world.origin}/login?user=${randomUUID()}`);
      const line = response.headers.getSetCookie().find((one) => one.startsWith("sessionid="));
      const cookie = line?.split(";")[0] ?? "";
      return { cookie, subject: await response.text(), claims: { staff: true } };
    },
    (cookie) => cookie.replace(/.$/, (one) => (one === "a" ? "b" : "a")),
    (cookie) => fetch(`${world.origin}/logout`, { headers: { cookie } }),
  );
});
