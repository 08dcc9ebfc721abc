/** The pages of events: their order, and where each begins. */
import { expect, test } from "vitest";
import type { SessionEvent } from "../../../../src/service/session/events/events.ts";
import { listEvents } from "../../../../src/service/session/events/page.ts";
import { InvalidCursor } from "../../../../src/service/session/ports.ts";
import { wallMs } from "../../../../src/service/session/time.ts";
import { SID, script, sidOf } from "../../../support/session/scripted.ts";

const OF = { sid: SID };
const event = (time: number, type: SessionEvent["type"]): SessionEvent => ({ time: wallMs(time), type, sid: SID });
const OLD = event(1, "created");
const TWIN = event(2, "elevated");
const OTHER = event(2, "updated");
const LAST = event(3, "ended");
const storeOf = (...events: SessionEvent[]) => script({ events: async () => events });

test("all events are on one page, newest first, and of one millisecond the later one first", async () => {
  const { store, steps } = storeOf(TWIN, LAST, OTHER, OLD);
  expect(await listEvents(store, OF, 4, undefined)).toEqual({ events: [LAST, OTHER, TWIN, OLD], next: undefined });
  expect(steps).toEqual([["events", OF]]);
});

test("pages follow each other without gaps or repeats, also within a millisecond", async () => {
  const { store } = storeOf(TWIN, LAST, OTHER, OLD);
  const pages: (readonly SessionEvent[])[] = [];
  let from: string | undefined;
  do {
    const { events, next } = await listEvents(store, OF, 1, from);
    pages.push(events);
    from = next;
  } while (from !== undefined);
  expect(pages).toEqual([[LAST], [OTHER], [TWIN], [OLD]]);
});

test("a page whose events are gone continues after their place", async () => {
  const { next } = await listEvents(storeOf(OLD, LAST).store, OF, 1, undefined);
  expect(await listEvents(storeOf(OLD).store, OF, 1, next)).toEqual({ events: [OLD], next: undefined });
});

test.each(["", "1", "1.", ".1", "1.2.3", " 1.2", "1.2 ", "-1.2", "1.1234567", "1234567890123456.1", `${SID}.1`])(
  "%j is no position, and nothing is read",
  async (from) => {
    const { store, steps } = storeOf(OLD);
    await expect(listEvents(store, { sid: sidOf("b") }, 1, from)).rejects.toThrow(InvalidCursor);
    expect(steps).toEqual([]);
  },
);
