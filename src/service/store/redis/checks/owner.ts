/**
 * The name of the deployment that the keys in Redis belong to. Without it, a second deployment on the same Redis would share all sessions
 * with the first one, and end them.
 */
import type { RedisTarget } from "../../../config/redis-url.ts";
import { StoreRefused } from "../../../session/ports.ts";
import type { Client } from "../connection/connection.ts";
import type { CommandSender } from "../connection/send.ts";
import { KEY } from "../keys.ts";
import { readLua } from "../lua-files.ts";
import { FIRST_TAG } from "../partitions.ts";

export type Owner = {
  /** The configured issuer; absent if there is none. */
  readonly issuer: string | undefined;
  /** The ids of all keys of the ring. A rotation leaves some of them. */
  readonly keyIds: readonly string[];
};

const CLAIM = readLua("checks/claim_owner");
/** How often another instance may change the name between the reading and the writing. */
const ATTEMPTS = 10;

const ownerKey = ({ keyPrefix = "" }: RedisTarget) => `${keyPrefix}${FIRST_TAG}${KEY.owner}`;

const textOf = ({ issuer = "", keyIds }: Owner) => [issuer, ...keyIds].join("\n");

/** Returns which deployment owns the keys if that is another one: with another issuer, or with no key in common. */
export function otherOwner(text: string, own: Owner): string | undefined {
  if (text === "") return undefined;
  const [issuer = "", ...keyIds] = text.split("\n");
  const sameIssuer = issuer === "" || own.issuer === undefined || issuer === own.issuer;
  if (sameIssuer && keyIds.some((keyId) => own.keyIds.includes(keyId))) return undefined;
  if (!sameIssuer) return issuer;
  return `${issuer === "" ? "another deployment" : `a deployment of ${issuer}`}, with other signing keys`;
}

/** Returns what an operator must do who runs a second deployment, or has moved this one on purpose. */
export const remedyFor = (target: RedisTarget) =>
  `set REDIS_KEY_PREFIX to give this one keys of its own; if it is to take over, delete the key ${ownerKey(target)} first`;

/** Returns the name of the deployment that owns the keys; empty if there is none. */
export async function readOwner(client: Client, sender: CommandSender, target: RedisTarget): Promise<string> {
  return String((await sender.send(client, "get", [ownerKey(target)])) ?? "");
}

type Options = {
  readonly target: RedisTarget;
  /** Returns the name of this deployment, which changes when the keys are rotated; absent if nobody is to own the keys. */
  readonly owner?: () => Owner;
};

/**
 * Returns a function that writes the name of this deployment, if it has changed since the last call. Only its first success can be refused:
 * an instance that has served these keys goes on. @throws by that function: StoreRefused if the keys belong to another deployment
 */
export function createClaim(client: Client, sender: CommandSender, { target, owner }: Options): () => Promise<void> {
  const key = ownerKey(target);
  let claimed: string | undefined;
  return async () => {
    if (owner === undefined) return;
    const own = owner();
    const wanted = textOf(own);
    for (let attempt = 0; wanted !== claimed && attempt < ATTEMPTS; attempt++) {
      const found = await readOwner(client, sender, target);
      const other = claimed === undefined ? otherOwner(found, own) : undefined;
      if (other !== undefined) throw new StoreRefused(`Redis: its sessions belong to ${other}; ${remedyFor(target)}`);
      const isDone =
        found === wanted || Number(await sender.send(client, "eval", [CLAIM, 1, key, found, wanted])) === 1;
      if (isDone) claimed = wanted;
    }
  };
}
