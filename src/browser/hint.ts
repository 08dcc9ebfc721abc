/** The hint cookie: the id of the session that the browser's cookies belong to, for scripts. */
import type { Realm } from "./realm.ts";

/**
 * Returns the cookie's value, which is empty if it is absent. The result is undefined if the cookie is not used, cannot be read, or was set
 * by a sibling domain, too.
 */
export function hintOf({ document }: Realm, name: string | undefined): string | undefined {
  try {
    const [, value = "", other] = `; ${(document as NonNullable<Realm["document"]>).cookie}`.split(`; ${name}=`);
    if (name && !other) return value.split(";")[0];
  } catch {
    // A sandboxed frame, or a worker.
  }
  return undefined;
}
