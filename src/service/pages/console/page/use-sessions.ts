/** Keeps what the page has found: the sessions of a user, one session by its id, or the newest of all. */
import { Code, ConnectError } from "@connectrpc/connect";
import { useCallback, useEffect, useRef, useState } from "preact/hooks";
import type { Session } from "../../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { sessions as api } from "./api.ts";
import { type Filter, requestOf } from "./search.tsx";

const PAGE = 25;
/** A session id is 17 bytes in base64url. A subject may look like one, too. */
const SESSION_ID = /^[\w-]{23}$/;

export type FoundSessions = {
  readonly sessions: readonly Session[];
  readonly next: string;
  readonly byId: boolean;
};

async function findById(text: string): Promise<Session | undefined> {
  if (!SESSION_ID.test(text)) return undefined;
  try {
    return (await api.getSession({ sessionId: text })).session;
  } catch (failure) {
    const { code } = ConnectError.from(failure);
    if (code === Code.NotFound || code === Code.InvalidArgument) return undefined;
    throw failure;
  }
}

async function find(wanted: string, filter: Filter, before: FoundSessions | undefined): Promise<FoundSessions> {
  const byId = before === undefined ? await findById(wanted) : undefined;
  if (byId !== undefined) return { sessions: [byId], next: "", byId: true };
  const request = { ...requestOf(filter), subject: wanted, pageSize: PAGE, pageToken: before?.next ?? "" };
  const page = await api.listSessions(request);
  return { sessions: [...(before?.sessions ?? []), ...page.sessions], next: page.nextPageToken, byId: false };
}

/** @param wanted a subject, the id of a session, or nothing */
export function useSessions(wanted: string, filter: Filter, mayRead: boolean) {
  const [found, setFound] = useState<FoundSessions>();
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState<unknown>();
  /** Counts the searches. The response to an earlier search is not displayed. */
  const latest = useRef(0);
  const load = useCallback(
    async (before?: FoundSessions) => {
      latest.current++;
      const own = latest.current;
      setBusy(true);
      setError(undefined);
      try {
        const result = await find(wanted, filter, before);
        if (own !== latest.current) return;
        setFound(result);
      } catch (failure) {
        if (own !== latest.current) return;
        setError(failure);
      }
      setBusy(false);
    },
    [wanted, filter],
  );
  useEffect(() => {
    if (mayRead) load();
  }, [load, mayRead]);
  return { found, busy, error, load };
}
