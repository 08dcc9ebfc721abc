import { createHash, randomBytes } from "node:crypto";
import { readConfig } from "../../config/config.ts";
import type { RedisTarget } from "../../config/redis-url.ts";
import { aclRules } from "../../store/redis/permissions.ts";
import type { Context } from "../context.ts";
import { CommandError, usageError } from "../exit.ts";
import { readText } from "../input.ts";

type Options = {
  readonly format: "aclfile" | "setuser";
  readonly user?: string;
  readonly passwordFile?: string;
  readonly cluster?: boolean;
  readonly waitReplicas?: boolean;
  readonly db?: number;
};

export function printAcl({ env, print, note }: Context, options: Options): void {
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
    waitReplicas: options.waitReplicas ? 1 : config.redisWaitReplicas,
  });
  const hash = createHash("sha256").update(password).digest("hex");
  const line = [user, ...(options.format === "setuser" ? ["reset"] : []), "on", `#${hash}`, ...rules].join(" ");
  print(options.format === "setuser" ? `ACL SETUSER ${line}` : `user ${line}`);
  if (given === undefined)
    note(`password (printed once): ${password}\nREDIS_URL=redis://${user}:${password}@HOST:PORT`);
}

/** Returns the password in REDIS_URL if that URL has the same user. */
const configured = (redis: RedisTarget | undefined, user: string) =>
  redis?.username === user ? redis.password : undefined;

function fromFile(path: string): string {
  const password = readText(path).replace(/\r?\n$/, "");
  if (password === "") throw new CommandError("--password-file holds no password");
  return password;
}
