/** The admin API shows a session whole. */
import { create, isFieldSet } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { SessionSchema } from "../../../../gen/auth/admin/v1/session_admin_pb.ts";
import { sessionMessage } from "../../../../src/service/api/admin/session-fields.ts";
import type { Session } from "../../../../src/service/session/model.ts";
import { storeMs } from "../../../../src/service/session/time.ts";
import { fullSession } from "../../../support/store/sessions.ts";

test("every field of the message has a value where the session has every field", () => {
  const time = storeMs(1_700_000_000_000);
  const thumbprint = new Uint8Array(32).fill(7);
  const session: Required<Session> = {
    ...fullSession("alice"),
    ...{ createdAt: time, lastRefreshedAt: time, idleExpiresAt: time, absoluteExpiresAt: time },
    ...{ version: 2, staleBelow: 1, lastSeen: { userAgent: "browser", ipAddress: "192.0.2.8" } },
    device: { key: { algorithm: "ES256", bytes: new Uint8Array(65), thumbprint }, state: "bound", since: time },
    ...{ version: 2, staleBelow: 1 },
  };
  const message = create(SessionSchema, sessionMessage(session, 0));
  expect(SessionSchema.fields.filter((field) => !isFieldSet(message, field)).map(({ name }) => name)).toEqual([]);
});
