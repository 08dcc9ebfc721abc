import { type Command, InvalidArgumentError, Option } from "commander";
import type { RedisTarget } from "../config/redis-url.ts";
import { CommandError, type Context, EXIT_CODES, usageError } from "./context.ts";
import { readText } from "./input.ts";

export function addRedisAclCommand(program: Command, context: Context): void {
  program
    .command("redis-acl")
    .description("print the Redis user that the service needs, with the commands that it sends and no other")
    .addOption(
      new Option("--format <format>", "a line of an ACL file (aclfile), or a command for redis-cli")
        .choices(["aclfile", "setuser"])
        .default("aclfile"),
    )
    .option("--user <name>", "its name (otherwise the configured user, or session-service)")
    .option("--password-file <path>", "a file with its password; - is standard input")
    .option("--cluster", "for a cluster, although REDIS_URL names none")
    .option("--wait-replicas", "for REDIS_WAIT_REPLICAS, although it is not set")
    .option("--db <number>", "for another database than REDIS_URL names", db)
    .addHelpText(
      "after",
      `\nThe output holds the SHA-256 of the password, not the password. It is that of REDIS_URL or REDIS_PASSWORD_FILE, if
the configured user is the same; otherwise a random one is made, and printed once on standard error. Load the line on
every node, replicas too:

  session-service redis-acl >> /etc/redis/users.acl && redis-cli ACL LOAD
  session-service redis-acl --format setuser | redis-cli

${EXIT_CODES}`,
    )
    .action((options) => printAcl(context, options));
}

function db(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be the number of a database.");
}

/** Redis replays the transactions of its append-only file by the rights of the default user, and drops them if it may not. */
const DEFAULT_USER =
  "If the default user is switched off or restricted, let it keep all rights, or a restart of Redis loses sessions and logouts:";

type Options = {
  readonly format: "aclfile" | "setuser";
  readonly user?: string;
  readonly passwordFile?: string;
  readonly cluster?: boolean;
  readonly waitReplicas?: boolean;
  readonly db?: number;
};

async function printAcl({ env, print, note }: Context, options: Options): Promise<void> {
  const { hash, randomBytes } = await import("node:crypto");
  const { readConfig } = await import("../config/config.ts");
  const { aclRules } = await import("../store/redis/checks/permissions.ts");
  const config = readConfig(env);
  const { redis } = config;
  const user = options.user ?? redis?.username ?? "session-service";
  if (!/^[!-~]{1,64}$/.test(user) || user === "default") {
    throw usageError("--user must be a name without spaces, and not default");
  }
  const given = options.passwordFile === undefined ? configured(redis, user) : fromFile(options.passwordFile);
  const password = given ?? randomBytes(32).toString("base64url");
  const rules = aclRules({
    clustered: options.cluster ?? redis?.kind === "cluster",
    db: options.db ?? redis?.db ?? 0,
    keyPrefix: redis?.keyPrefix,
    waitReplicas: options.waitReplicas ? 1 : config.redisWaitReplicas,
  });
  const line = [
    user,
    ...(options.format === "setuser" ? ["reset"] : []),
    "on",
    `#${hash("sha256", password)}`,
    ...rules,
  ].join(" ");
  const verb = options.format === "setuser" ? "ACL SETUSER" : "user";
  print(`${verb} ${line}`);
  if (given === undefined)
    note(`password (printed once): ${password}\nREDIS_URL=redis://${encodeURIComponent(user)}:${password}@HOST:PORT`);
  note(`${DEFAULT_USER}\n${verb} default off ~* &* +@all`);
}

function configured(redis: RedisTarget | undefined, user: string): string | undefined {
  if (redis?.username !== user) return undefined;
  return redis.passwordFile === undefined ? redis.password : readText(redis.passwordFile).trim();
}

function fromFile(path: string): string {
  const password = readText(path).trim(); // The service ignores the same white space (config/secrets.ts).
  if (password === "") throw new CommandError("--password-file holds no password");
  return password;
}
