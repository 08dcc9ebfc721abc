/** The subjects of a stream (SSF 1.0 section 8.1.3). By default a stream has all subjects; the receiver can remove some. */
import type { Requester } from "../../session/audit.ts";
import { invalidRequest, ServiceError } from "../../session/errors.ts";
import type { ManagementDeps } from "../manage.ts";
import { definitionOf } from "../model.ts";
import { changeOwn } from "./change.ts";

type SubjectDeps = Pick<ManagementDeps, "subscriptions" | "audit"> & { readonly issuer: string };

/** How many subjects a receiver can remove from a stream. */
const MAX_REMOVED = 100;
const MAX_SUBJECT_BYTES = 255;

/** Adds a subject that was removed: its events are sent again. @throws ServiceError */
export const addSubject = changeSubjects((removed, subject) => removed.filter((one) => one !== subject));

/** Removes a subject: its events are no longer sent. @throws ServiceError */
export const removeSubject = changeSubjects((removed, subject) => {
  if (removed.includes(subject)) return removed;
  if (removed.length >= MAX_REMOVED) throw invalidRequest("subject", `is one of more than ${MAX_REMOVED} to remove`);
  return [...removed, subject];
});

function changeSubjects(change: (removed: readonly string[], subject: string) => readonly string[]) {
  return async (deps: SubjectDeps, id: string, identifier: object, requester: Requester): Promise<void> => {
    await changeOwn(deps, id, requester, (stream) => {
      const subject = subjectOf(identifier, deps.issuer);
      if (subject === undefined) throw new ServiceError("E404_NOT_FOUND", "the subject is not recognized");
      const { exceptSubjects = [], ...filter } = stream.filter;
      const removed = change(exceptSubjects, subject);
      return { ...definitionOf(stream), filter: { ...filter, ...(removed.length > 0 && { exceptSubjects: removed }) } };
    });
  };
}

/** Returns the subject of this service that an identifier (RFC 9493) names; undefined if it names none. @throws ServiceError */
function subjectOf(identifier: object, issuer: string): string | undefined {
  const { format, user, iss, sub, id, email } = identifier as Readonly<Record<string, unknown>>;
  if (typeof format !== "string") throw invalidRequest("subject.format", "is required");
  switch (format) {
    case "iss_sub":
      return textOf(iss, "iss") === issuer ? textOf(sub, "sub") : undefined;
    case "opaque":
      return textOf(id, "id");
    case "email":
      return textOf(email, "email");
    case "complex": {
      // The identifier must have no other members: with another member, it would select only a part of the user's events.
      const others = Object.keys(identifier).filter((name) => name !== "format" && name !== "user");
      const isUser = typeof user === "object" && user !== null && !("user" in user) && others.length === 0;
      return isUser ? subjectOf(user, issuer) : undefined;
    }
    default:
      return undefined;
  }
}

function textOf(value: unknown, member: string): string {
  if (typeof value !== "string" || value === "" || Buffer.byteLength(value) > MAX_SUBJECT_BYTES) {
    throw invalidRequest(`subject.${member}`, "is not a subject");
  }
  return value;
}
