import type { Page } from "./pages.ts";

/** How old a page may be to be shared, in ms. */
const SHARED_AGE_MS = 1_000;

/**
 * Shares one copy of a page among all callers that request it while it is still being sent. Otherwise many slow readers would keep as
 * many copies in memory. If it is not being sent to anybody, a new page is made.
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
