/** The compose file is valid, and its commands and variables work with the real Redis and the real service. */
import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { parse } from "yaml";
import { readConfig } from "../../src/service/config/config.ts";
import { aclRules } from "../../src/service/store/redis/checks/permissions.ts";
import { freePort } from "../support/free-port.ts";
import { type Program, startProgram, whileRunning } from "../support/processes.ts";
import { request } from "../support/raw-http.ts";
import { type Service, scratch, startService } from "../support/service.ts";
import { logIn } from "../support/sessions.ts";
import { until } from "../support/until.ts";

const FILE = "deploy/container/compose.yaml";

type ComposeService = {
  readonly image: string;
  readonly command?: readonly string[];
  readonly environment?: Readonly<Record<string, string>>;
  readonly ports?: readonly string[];
  readonly stop_grace_period?: string;
};
const { services } = parse(readFileSync(FILE, "utf8")) as { services: Record<string, ComposeService> };
const serviceOf = (name: string) => services[name] as ComposeService;

test("the linter of compose files finds no fault in it", () => {
  expect(
    execFileSync(process.execPath, ["test/dependencies/tools/node_modules/.bin/dclint", "--max-warnings", "0", FILE], {
      encoding: "utf8",
    }).trim(),
  ).toBe("");
});

test("the admin API is published to this machine alone", () => {
  expect(serviceOf("session-service").ports).toEqual(["127.0.0.1:8080:8080", "127.0.0.1:8081:8081"]);
  expect(Object.values(services).filter(({ ports }) => ports !== undefined)).toHaveLength(1);
});

test("a container has more time to end than its drain takes", () => {
  const { drainDelayMs, shutdownTimeoutMs } = readConfig({});
  const seconds = Number.parseInt(serviceOf("session-service").stop_grace_period ?? "", 10);
  expect(seconds * 1000).toBeGreaterThanOrEqual(drainDelayMs + shutdownTimeoutMs + 5000);
});

describe("with its secrets", () => {
  let directory: string;
  let redis: Program;
  let service: Service;
  let port: number;

  /** Returns the variables that the compose file gives to a container, with addresses and files of this machine. */
  const environmentOf = (name: string) => {
    const secrets = new Map(
      readFileSync(join(directory, ".env"), "utf8")
        .trim()
        .split("\n")
        .map((line) => line.split("=") as [string, string]),
    );
    const values = Object.entries(serviceOf(name).environment ?? {}).map(([variable, text]) => {
      const value = text.replaceAll(
        /\$\{(\w+)(?::([?-])([^}]*))?\}/g,
        (_, key: string, kind: string, other: string) => {
          const found = secrets.get(key) ?? (kind === "-" ? other : undefined);
          if (found === undefined) throw new Error(`secrets.sh makes no ${key}`);
          return found;
        },
      );
      return [variable, value.replace("@redis:6379", `@127.0.0.1:${port}`).replace("/data/", `${directory}/data/`)];
    });
    return Object.fromEntries(values) as Record<string, string>;
  };
  const startRedis = async () => {
    const command = (serviceOf("redis").command ?? []).map((word) =>
      word === "/etc/redis/users.acl" ? join(directory, "users.acl") : word,
    );
    const here = ["--port", String(port), "--bind", "127.0.0.1", "--dir", directory];
    const started = startProgram(command[0] as string, [...command.slice(1), ...here]);
    await whileRunning(started, async () => expect(started.output()).toContain("Ready to accept connections"));
    return started;
  };
  const createKeys = () =>
    execFileSync(process.execPath, ["src/service/main.ts", ...(serviceOf("keys").command ?? [])], {
      env: { ...environmentOf("keys"), PATH: process.env.PATH ?? "" },
      encoding: "utf8",
    });

  beforeAll(async () => {
    directory = scratch();
    mkdirSync(join(directory, "data"));
    execFileSync("sh", ["deploy/container/secrets.sh", directory]);
    port = await freePort();
    redis = await startRedis();
    createKeys();
    service = await startService({ ...environmentOf("session-service"), REDIS_COMMAND_TIMEOUT: "10s" });
  });
  afterAll(async () => {
    await service?.stop();
    await redis?.stop();
  });

  test("the service runs on Redis with the rights of its user alone, and warns of nothing", async () => {
    const { accessToken, refreshToken } = await logIn(service);
    expect(accessToken).not.toBe("");
    const headers = { cookie: `refresh_token=${refreshToken}` };
    expect((await request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers })).status).toBe(200);
    expect(service.ready.store).toBe("redis");
    expect(service.stderr()).not.toMatch(/"level":"(warn|error)"/);
  });

  test("its user in Redis has the rights that `session-service redis-acl` prints, and no others", () => {
    const rules = aclRules({ clustered: false, db: 0, waitReplicas: 0 }).toSorted();
    const [off, user = ""] = readFileSync(join(directory, "users.acl"), "utf8").split("\n");
    const [keyword, name, on, hash, ...given] = user.split(" ");
    expect([off, keyword, name, on]).toEqual(["user default off ~* &* +@all", "user", "session-service", "on"]);
    expect(hash).toMatch(/^#[0-9a-f]{64}$/);
    expect(given.toSorted(), "copy them into secrets.sh").toEqual(rules);
  });

  test("another start makes neither keys nor secrets anew", () => {
    const before = ["data/keys.json", ".env", "users.acl"].map((name) => readFileSync(join(directory, name), "utf8"));
    expect(createKeys()).toContain("is there already");
    execFileSync("sh", ["deploy/container/secrets.sh", directory], { stdio: "ignore" });
    const after = ["data/keys.json", ".env", "users.acl"].map((name) => readFileSync(join(directory, name), "utf8"));
    expect(after).toEqual(before);
  });

  test("secrets are for their owner; what Redis reads holds a hash alone", () => {
    expect(statSync(join(directory, ".env")).mode & 0o777).toBe(0o600);
    const [, password = ""] = /REDIS_PASSWORD=(\w{64})\n/.exec(readFileSync(join(directory, ".env"), "utf8")) ?? [];
    expect(readFileSync(join(directory, "users.acl"), "utf8")).not.toContain(password);
  });

  // Redis replays transactions of its append-only file by the rights of the default user, and drops them without an error if it has none.
  test("a restart of Redis keeps sessions, and logouts", async () => {
    const refresh = async (token: string) => {
      const headers = { cookie: `refresh_token=${token}` };
      const { status } = await request(service.publicUrl, { method: "POST", path: "/v1/auth/refresh", headers });
      expect(status).not.toBe(503);
      return status;
    };
    const [kept, ended] = [await logIn(service), await logIn(service)];
    const headers = { authorization: `Bearer ${ended.accessToken}` };
    await request(service.publicUrl, { method: "DELETE", path: "/v1/auth/logout", headers });
    await redis.stop();
    redis = await startRedis();
    expect(await until(() => refresh(kept.refreshToken))).toBe(200);
    expect(await refresh(ended.refreshToken)).toBe(401);
  });

  test("nobody is the default user of Redis", () => {
    for (const user of [[], ["--user", "default", "-a", ""]]) {
      const output = execFileSync("redis-cli", ["-p", String(port), ...user, "GET", "any"], { encoding: "utf8" });
      expect(output).toContain("NOAUTH");
    }
  });
});
