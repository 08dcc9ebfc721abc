"use server";

import { revalidatePath } from "next/cache";
import { keepNote } from "../../lib/notes";
import { requireCurrentUser } from "../../lib/sessions";

/** Adds a note. The action checks the user itself, because any client may call a server action. */
export async function addNote(form: FormData): Promise<void> {
  const { claims } = await requireCurrentUser();
  keepNote(claims.sub, String(form.get("note")).slice(0, 200));
  revalidatePath("/account");
}
