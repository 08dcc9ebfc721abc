"use server";

import { revalidatePath } from "next/cache";
import { redirect } from "next/navigation";
import { keepNote } from "../../lib/notes";
import { requireCurrentUser, signOut } from "../../lib/sessions";

/** Adds a note. The action checks the user itself, because any client may call a server action. */
export async function addNote(form: FormData): Promise<void> {
  const { claims } = await requireCurrentUser();
  keepNote(claims.sub, String(form.get("note")).slice(0, 200));
  revalidatePath("/account");
}

/**
 * Signs out the user whom the page shows. Another user who has signed in since stays signed in (`active`). If the service cannot be
 * reached, the session continues, and the page displays that.
 */
export async function leave(form: FormData): Promise<void> {
  const { state } = await signOut(String(form.get("session_id") ?? ""));
  redirect(state === "ended" ? "/" : state === "active" ? "/account" : "/account?failed");
}
