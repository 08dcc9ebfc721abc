/** How many entries the API returns at most in one page. */
const PAGE_SIZE = 100;

type Page = { readonly pageSize: number; readonly pageToken: string };

/** Reads a list page by page. @returns at most `limit` entries, and whether these are all */
export async function readPages<Entry>(
  limit: number,
  read: (page: Page) => Promise<readonly [entries: readonly Entry[], nextPageToken: string]>,
): Promise<{ readonly entries: readonly Entry[]; readonly isWhole: boolean }> {
  const entries: Entry[] = [];
  let pageToken = "";
  do {
    const [page, next] = await read({ pageSize: Math.min(PAGE_SIZE, limit - entries.length), pageToken });
    entries.push(...page);
    pageToken = next;
  } while (pageToken !== "" && entries.length < limit);
  return { entries, isWhole: pageToken === "" };
}
