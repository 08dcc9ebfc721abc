/** Parts of the store have clocks of their own: a time is converted by the clock of the part that it is from. */
import { expect, test } from "vitest";
import { keptOf, keptOfDue } from "../../../src/service/session/events/due-lines.ts";
import type { Place } from "../../../src/service/session/model.ts";
import { wallMs } from "../../../src/service/session/time.ts";
import { NOW, REQUESTER, SID } from "../../support/session/scripted.ts";

const OF_ALL = 1_000;
const OF_SESSION = 50_000;
const shiftMs = (place?: Place) => (place !== undefined && "sid" in place && place.sid === SID ? OF_SESSION : OF_ALL);
const keeping = { clock: () => wallMs(NOW + OF_ALL), shiftMs };

test("the time of a due event is that of its session, and of the end of all that of the store", () => {
  const ended = { key: SID, since: NOW, event: { time: NOW, type: "ended", sid: SID }, ids: {} } as const;
  expect(keptOfDue(ended, keeping).event).toMatchObject({ time: NOW + OF_SESSION });
  const event = { time: NOW, type: "all_ended", revokedUntil: NOW } as const;
  const at = NOW + OF_ALL;
  expect(keptOfDue({ key: "*", since: NOW, event, ids: {} }, keeping).event).toMatchObject({
    time: at,
    revokedUntil: at,
  });
  const audited = { event: "all_sessions_ended", revokedUntil: NOW } as const;
  expect(keptOf(audited, REQUESTER, keeping)?.event).toMatchObject({ time: at, revokedUntil: at });
});
