/** What forgetting a subject does, in which order, and that nothing that it records names the subject. */
import { expect, test } from "vitest";
import { forgetSubject } from "../../../../src/service/session/admin/admin.ts";
import { StoreUnavailable } from "../../../../src/service/session/ports.ts";
import { REQUESTER, script, sidOf } from "../../../support/session/scripted.ts";

const ENDED = [sidOf("a"), sidOf("b")];

test("sessions end, then signals are delivered, then the data is removed", async () => {
  const port = script({
    endAll: async () => ({ ok: true, ended: ENDED.map((sid) => ({ sid })), count: 2 }),
    forget: async () => ({ events: 7, signals: 1 }),
  });
  const steps: string[] = [];
  const store = {
    endAll: (...given: Parameters<typeof port.store.endAll>) => {
      steps.push("end");
      return port.store.endAll(...given);
    },
    forget: (...given: Parameters<typeof port.store.forget>) => {
      steps.push("forget");
      return port.store.forget(...given);
    },
  };
  const delivered = async (subject: string) => void steps.push(`deliver ${subject}`);
  const forgotten = await forgetSubject({ ...port, store, delivered }, "alice", REQUESTER);
  expect(steps).toEqual(["end", "deliver alice", "forget"]);
  expect(forgotten).toEqual({ sessions: 2, events: 7, signals: 1 });
  // Without an origin the endings leave no due records, which would name the subject.
  expect(port.stepsOf("endAll")).toEqual([["alice", "revoked_subject"]]);
  const events = port.stepsOf("audit").flat();
  expect(events).toEqual([
    ...ENDED.map((sid) => ({ event: "session_ended", sid, reason: "revoked_subject" })),
    { event: "subject_forgotten", sessions: 2, events: 7, signals: 1 },
  ]);
  expect(JSON.stringify(events)).not.toContain("alice");
});

test("a failure is passed on, and is not recorded as done", async () => {
  const port = script({
    endAll: async () => ({ ok: true, ended: [], count: 0 }),
    forget: async () => {
      throw new StoreUnavailable("down");
    },
  });
  await expect(forgetSubject(port, "alice", REQUESTER)).rejects.toThrow(StoreUnavailable);
  expect(port.stepsOf("audit")).toEqual([]);
});

test("nothing is removed, or recorded as removed, if the store has ended no session", async () => {
  const port = script({ endAll: async () => ({ ok: false, reason: "caller_ended" }) });
  await expect(forgetSubject(port, "alice", REQUESTER)).rejects.toThrow("no actor was named");
  expect(port.stepsOf("audit")).toEqual([]);
});
