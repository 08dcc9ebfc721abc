/** Reads and writes the pages of lists (AIP-158): their sizes, and the tokens that continue them. */
import { invalidRequest } from "../session/errors.ts";
import { InvalidCursor } from "../session/ports.ts";

const DEFAULT_PAGE_SIZE = 20;
const MAX_PAGE_SIZE = 100;

/** Returns the size of a page: 0 means the default, more than the maximum means the maximum. */
export function pageSizeOf(size: number): number {
  return size === 0 ? DEFAULT_PAGE_SIZE : Math.min(size, MAX_PAGE_SIZE);
}

/** Returns a position in the store as a page token. The token is opaque, so that clients do not build their own. */
export function toPageToken(position: string | undefined): string {
  return position === undefined ? "" : Buffer.from(position).toString("base64url");
}

/** Returns the position in a page token; undefined for the first page. @throws ServiceError */
export function parsePageToken(token: string): string | undefined {
  if (token === "") return undefined;
  const position = Buffer.from(token, "base64url");
  return position.toString("base64url") === token ? position.toString() : rejectPageToken();
}

/** Rejects a page token whose position the store does not know. It handles errors of the store: `.catch(rejectForeignPosition)`. */
export function rejectForeignPosition(error: unknown): never {
  if (error instanceof InvalidCursor) rejectPageToken();
  throw error;
}

function rejectPageToken(): never {
  throw invalidRequest("page_token", "is not a page token");
}
