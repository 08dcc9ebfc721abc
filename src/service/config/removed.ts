/** Names variables of earlier versions. The start refuses them, because an ignored setting would be a promise that nobody keeps. */
import type { Environment } from "./reader.ts";

const STATUS_LISTS = "was removed with Token Status Lists: verifiers follow or poll the feed (docs/tasks/verifier.md)";

/** Maps a variable to the end of a sentence that begins with its name and says what replaces it. */
const REMOVED: ReadonlyMap<string, string> = new Map([
  ["STATUS_LIST", STATUS_LISTS],
  ["STATUS_LIST_TTL", STATUS_LISTS],
]);

/** Returns a fault for each variable that is set and was removed. */
export function removedVariables(env: Environment): string[] {
  return [...REMOVED].filter(([name]) => env[name]).map(([name, what]) => `${name} ${what}`);
}
