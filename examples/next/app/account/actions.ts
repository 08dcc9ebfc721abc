"use server";

import { revalidatePath } from "next/cache";
import { keepNote } from "../../lib/notes";
import { currentUser } from "../../lib/sessions";

/** Adds a note. The action checks the user itself, because any client may call a server action. */
export async function addNote(form: FormData): Promise<void> {
  const user = await currentUser();
  if (user.state !== "active") throw new Error("not signed in");
  keepNote(user.claims.sub, String(form.get("note")).slice(0, 200));
  revalidatePath("/account");
}
