/** Generates the ACL rules of the Redis user that the service needs, from the commands that it sends. */
import { missingPermissions, neededCommands } from "./permissions.ts";
import { loadScripts } from "./scripts.ts";

type AclNeeds = {
  readonly clustered: boolean;
  readonly db: number;
  readonly waitReplicas: number;
};

/** Returns the rules in the form of `ACL SETUSER` and ACL files, without the user's name and password. */
export function aclRules({ clustered, db, waitReplicas }: AclNeeds): readonly string[] {
  const kind = clustered ? "cluster" : "single";
  const needed = neededCommands(loadScripts(), { kind, db }, waitReplicas);
  return ["resetkeys", "resetchannels", "-@all", ...missingPermissions(needed).split(" ")];
}
