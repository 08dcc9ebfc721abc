/** Lists sessions page by page: those of a subject, or all. */
import type { SessionStore } from "../../session/ports.ts";
import { search } from "../search.ts";
import { countSessions } from "./count.ts";
import { takeInCreationOrder } from "./creation-order.ts";
import type { Link } from "./link.ts";
import { takeOfSubject } from "./subject-order.ts";

export function createLists(link: Link, clustered: boolean): Pick<SessionStore, "list" | "listAll" | "count"> {
  return {
    list: (subject, ...page) => search(takeOfSubject(link, subject), ...page),
    listAll: (...page) => search(takeInCreationOrder(link, clustered), ...page),
    count: () => countSessions(link, clustered),
  };
}
