import { type Command, InvalidArgumentError, Option } from "commander";
import type { Context } from "../context.ts";
import { EXIT_CODES } from "../exit.ts";

export function addRedisAclCommand(program: Command, context: Context): void {
  program
    .command("redis-acl")
    .description("print the Redis user that the service needs, with the commands that it sends and no other")
    .addOption(
      new Option("--format <format>", "a line of an ACL file (aclfile), or a command for redis-cli")
        .choices(["aclfile", "setuser"])
        .default("aclfile"),
    )
    .option("--user <name>", "its name (otherwise the user in REDIS_URL, or session-service)")
    .option("--password-file <path>", "a file with its password; - is standard input")
    .option("--cluster", "for a cluster, although REDIS_URL names none")
    .option("--wait-replicas", "for REDIS_WAIT_REPLICAS, although it is not set")
    .option("--db <number>", "for another database than REDIS_URL names", db)
    .addHelpText(
      "after",
      `\nThe output holds the SHA-256 of the password, not the password. It is that of REDIS_URL, if that names the
same user; otherwise a random one is made, and printed once on standard error. Load the line on every node,
replicas too:

  session-service redis-acl >> /etc/redis/users.acl && redis-cli ACL LOAD
  session-service redis-acl --format setuser | redis-cli

${EXIT_CODES}`,
    )
    .action(async (options) => (await import("./run.ts")).printAcl(context, options));
}

function db(text: string): number {
  if (/^\d{1,5}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("It must be the number of a database.");
}
