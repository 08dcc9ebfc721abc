/** Reads the hint cookie, from which scripts learn the id of the session that the browser's cookies belong to. */
import type { Realm } from "./realm.ts";

/**
 * Returns the value of the cookie, or an empty text if it is absent. Returns undefined if the cookie is not used, cannot be read, or was
 * also set by a sibling domain.
 */
export function hintOf({ document }: Realm, name: string | undefined): string | undefined {
  try {
    const [, value = "", other] = `; ${(document as NonNullable<Realm["document"]>).cookie}`.split(`; ${name}=`);
    if (name && !other) return value.split(";")[0];
  } catch {
    // In a sandboxed frame and in a worker, `document.cookie` cannot be read.
  }
  return undefined;
}
