import { hash } from "node:crypto";
import type { ProviderNote } from "../session/model.ts";

/** Returns the name of a note, from which neither the token nor the session can be read. */
export function hashOf(note: ProviderNote): string {
  const parts = "usedToken" in note ? [note.issuer, note.usedToken] : [note.issuer, "session", note.endedSession];
  return hash("sha256", JSON.stringify(parts), "base64url");
}
