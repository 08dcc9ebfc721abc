/** The permissions that the Redis user needs. */

import type { RedisTarget } from "../../config/redis-url.ts";
import type { Scripts } from "./scripts.ts";

/** The channel of endings, the same as in lua/partition.lua. */
export const CHANNEL = "session-revocations";

/** A pattern for all keys of the service. */
const KEY = "{00}";

/** The commands, each with a key or the channel, as lua/permissions.lua takes them. What the scripts call is read from them. */
export function neededCommands(
  scripts: Scripts,
  target: Pick<RedisTarget, "kind" | "db">,
  waitReplicas: number,
): readonly string[] {
  const texts = Object.values(scripts).map(({ text }) => text);
  const called = texts.flatMap((text) => [...text.matchAll(/redis\.p?call\('(\w+)'/g)].map(([, name = ""]) => name));
  return [
    "info",
    `eval - 1 ${KEY}`,
    `evalsha - 1 ${KEY}`,
    `subscribe ${CHANNEL}`,
    ...(target.kind === "cluster" ? ["cluster info", "cluster slots"] : []),
    ...(target.db === 0 ? [] : [`select ${target.db}`]),
    ...(waitReplicas === 0 ? [] : ["wait"]), // and what the scripts call, see shared-wait.ts
    ...[...new Set(called)].map((name) => `${name.toLowerCase()} ${name === "PUBLISH" ? CHANNEL : KEY}`),
  ];
}

/** The permissions that are missing, as they are given by ACL SETUSER. */
export function missingPermissions(denied: readonly string[]): string {
  const commands = denied.map((command) => {
    const [name = "", argument] = command.split(" ");
    return name === "cluster" ? `+${name}|${argument}` : `+${name}`;
  });
  const keys = denied.some((command) => command.endsWith(KEY)) ? [`~{*`] : [];
  const channel = denied.some((command) => command.endsWith(CHANNEL)) ? [`&${CHANNEL}`] : [];
  return [...keys, ...channel, ...commands].join(" ");
}
