import type { RedisTarget } from "../../config/redis-url.ts";
import { loadScripts, type Scripts } from "./scripts.ts";

/** The channel on which the scripts publish revocations, as in lua/sessions.lua. */
export const CHANNEL = "session-revocations";

/** An example of a key of the service. The permissions are checked on this key, and hold for all keys of the service. */
const KEY = "{00}";

/** Returns the commands that the service sends, as lua/permissions.lua takes them. Those of the scripts are found in the scripts' texts. */
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
    ...(waitReplicas === 0 ? [] : ["wait"]), // shared-wait.ts also sends PEXPIRETIME and SET, which scripts call, too.
    ...[...new Set(called)].map((name) => `${name.toLowerCase()} ${name === "PUBLISH" ? CHANNEL : KEY}`),
  ];
}

/** Returns the missing permissions in the form of ACL SETUSER. */
export function missingPermissions(denied: readonly string[]): string {
  const commands = denied.map((command) => {
    const [name = "", argument] = command.split(" ");
    return name === "cluster" ? `+${name}|${argument}` : `+${name}`;
  });
  const keys = denied.some((command) => command.endsWith(KEY)) ? [`~{*`] : [];
  const channel = denied.some((command) => command.endsWith(CHANNEL)) ? [`&${CHANNEL}`] : [];
  return [...keys, ...channel, ...commands].join(" ");
}

/** Returns the ACL rules of the service's user in the form of `ACL SETUSER` and ACL files, without its name and password. */
export function aclRules({
  clustered,
  db,
  waitReplicas,
}: {
  clustered: boolean;
  db: number;
  waitReplicas: number;
}): readonly string[] {
  const kind = clustered ? "cluster" : "single";
  const needed = neededCommands(loadScripts(), { kind, db }, waitReplicas);
  return ["resetkeys", "resetchannels", "-@all", ...missingPermissions(needed).split(" ")];
}
