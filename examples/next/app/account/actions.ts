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

/** Signs the user out. If the service cannot be reached, the session continues, and the page displays that. */
export async function leave(): Promise<void> {
  const { state } = await signOut();
  redirect(state === "ended" ? "/" : "/account?failed");
}
