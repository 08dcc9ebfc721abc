import type { RedisTarget } from "../../../config/redis-url.ts";
import { loadScripts, type Scripts } from "../scripts.ts";

const CHANNEL = "session-revocations";

/** Returns the channel on which the scripts publish revocations, as in lua/lib/revocation_log.lua. */
export const channelOf = ({ keyPrefix = "" }: Pick<RedisTarget, "keyPrefix">) => keyPrefix + CHANNEL;

/** The end of an example of a key. The permissions are checked on this key, and hold for all keys of the service. */
const KEY = "{00}";

/** Returns the commands that the service sends, as lua/checks/permissions.lua takes them. Those of scripts are found in their texts. */
export function neededCommands(
  scripts: Scripts,
  target: Pick<RedisTarget, "kind" | "db" | "keyPrefix">,
  waitReplicas: number,
): readonly string[] {
  const key = `${target.keyPrefix ?? ""}${KEY}`;
  const channel = channelOf(target);
  const texts = Object.values(scripts).map(({ text }) => text);
  const called = texts.flatMap((text) => [...text.matchAll(/redis\.p?call\('(\w+)'/g)].map(([, name = ""]) => name));
  return [
    "info",
    `eval - 1 ${key}`,
    `evalsha - 1 ${key}`,
    `subscribe ${channel}`,
    ...(target.kind === "cluster" ? ["cluster info", "cluster slots"] : []),
    ...(target.db === 0 ? [] : [`select ${target.db}`]),
    ...(waitReplicas === 0 ? [] : ["wait"]), // shared-wait.ts also sends PEXPIRETIME and SET, which scripts call, too.
    ...[...new Set(called)].map((name) => {
      if (name === "TIME") return "time"; // It takes no argument.
      return `${name.toLowerCase()} ${name === "PUBLISH" ? channel : key}`;
    }),
  ];
}

/** Returns the permissions for commands in the form of ACL SETUSER. */
export function permissionsFor(needed: readonly string[]): string {
  const commands = needed.map((command) => {
    const [name = "", argument] = command.split(" ");
    return name === "cluster" ? `+${name}|${argument}` : `+${name}`;
  });
  const ending = (end: string) =>
    needed.flatMap((command) => (command.endsWith(end) ? [command.split(" ").at(-1) ?? ""] : []));
  const keys = ending(KEY).map((key) => `~${key.slice(0, -KEY.length)}{*`);
  const channels = ending(CHANNEL).map((channel) => `&${channel}`);
  return [...new Set(keys), ...new Set(channels), ...commands].join(" ");
}

/** Returns the ACL rules of the service's user in the form of `ACL SETUSER` and ACL files, without its name and password. */
export function aclRules({
  clustered,
  db,
  waitReplicas,
  keyPrefix = "",
}: {
  clustered: boolean;
  db: number;
  waitReplicas: number;
  keyPrefix?: string | undefined;
}): readonly string[] {
  const kind = clustered ? "cluster" : "single";
  const needed = neededCommands(loadScripts(), { kind, db, keyPrefix }, waitReplicas);
  return ["resetkeys", "resetchannels", "-@all", ...permissionsFor(needed).split(" ")];
}
