/** The form in which recorded events are listed. */
import { expect, test } from "vitest";
import { shownEvents } from "../../../../src/service/session/events/events.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { SID } from "../../../support/session/scripted.ts";

test("a creation with a new device is listed as two events, in their order among the others", () => {
  const created = { time: wallMs(1), type: "created", sid: SID, subject: "alice", newDevice: true } as const;
  const ended = { time: wallMs(2), type: "ended", sid: SID } as const;
  expect(shownEvents([ended, created])).toEqual([ended, created, { ...created, type: "new_device" }]);
});
