/** The hint cookie: the id of the session that the browser's cookies belong to, for scripts. */
import type { Realm } from "./realm.ts";

/** Its value, empty where it is absent; undefined where it is not used, or cannot be read. */
export function hintOf({ document }: Realm, name: string | undefined): string | undefined {
  try {
    if (name)
      return `; ${(document as NonNullable<Realm["document"]>).cookie}`.split(`; ${name}=`)[1]?.split(";")[0] ?? "";
  } catch {
    // A sandboxed frame, or a worker.
  }
  return undefined;
}
