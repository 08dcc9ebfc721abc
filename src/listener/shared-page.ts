import type { Page } from "./pages.ts";

/** How old a page may be that is shared, ms. */
const SHARED_AGE_MS = 1_000;

/**
 * Sends a page that is still being sent to further callers: many that read slowly would otherwise hold as many copies. A caller that
 * asks when nobody else does gets a new page.
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
