import type { Page } from "./pages.ts";

/** A page may be shared until it is this old, in ms. */
const SHARED_AGE_MS = 1_000;

/**
 * Sends one copy of a page to all callers that ask while it is still being sent: many slow readers would otherwise hold as many copies.
 * If no other caller is being served, a new page is made.
 */
export function shareWhileSent(render: () => Promise<Page>): () => Promise<Page> {
  let shared: { readonly page: Promise<Page>; readonly madeAt: number; users: number } | undefined;
  return async () => {
    const now = performance.now();
    if (shared === undefined || shared.users === 0 || now - shared.madeAt >= SHARED_AGE_MS) {
      shared = { page: render(), madeAt: now, users: 0 };
    }
    const taken = shared;
    taken.users++;
    const page = await taken.page;
    return { ...page, onClosed: () => void taken.users-- };
  };
}
