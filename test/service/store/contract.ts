/** The tests that every store has to pass, as a function of the backend. */
import { describe, expect, test } from "vitest";
import { StoreUnavailable } from "../../../src/service/session/ports.ts";
import type { Backend } from "../../support/store/backends.ts";
import { openContext } from "../../support/store/context.ts";
import { sidOf, subject } from "../../support/store/sessions.ts";
import { actorsContract } from "./contract/actors.ts";
import { createContract } from "./contract/create.ts";
import { createOnceContract } from "./contract/create-once.ts";
import { deviceCookiesContract } from "./contract/device-cookies.ts";
import { deviceKeysContract } from "./contract/device-keys.ts";
import { dueRecordsContract } from "./contract/due-records.ts";
import { elevateContract } from "./contract/elevate.ts";
import { endContract } from "./contract/end.ts";
import { endAllContract } from "./contract/end-all.ts";
import { eventsContract } from "./contract/events.ts";
import { forgetContract } from "./contract/forget.ts";
import { lastSeenContract } from "./contract/last-seen.ts";
import { limitsContract } from "./contract/limits.ts";
import { listContract } from "./contract/list.ts";
import { listAllContract } from "./contract/list-all.ts";
import { manySessionsContract } from "./contract/many-sessions.ts";
import { newDeviceContract } from "./contract/new-device.ts";
import { proofKeysContract } from "./contract/proof-keys.ts";
import { revocationsContract } from "./contract/revocations.ts";
import { revokeAllContract } from "./contract/revoke-all.ts";
import { rotateContract } from "./contract/rotate.ts";
import { signalsContract } from "./contract/signals.ts";
import { transportsContract } from "./contract/transports.ts";
import { updateContract } from "./contract/update.ts";
import { upstreamContract } from "./contract/upstream.ts";

export function storeContract(name: string, start: () => Promise<Backend>): void {
  describe(`${name} store`, () => {
    const context = openContext(start);

    createContract(context);
    createOnceContract(context);
    revokeAllContract(context);
    elevateContract(context);
    updateContract(context);
    rotateContract(context);
    lastSeenContract(context);
    newDeviceContract(context);
    endContract(context);
    endAllContract(context);
    listContract(context);
    describe("listAll", () => listAllContract(context));
    describe("many sessions of a subject", () => manySessionsContract(context));
    describe("limits", () => limitsContract(context));
    describe("device binding", () => {
      deviceKeysContract(context);
      deviceCookiesContract(context);
    });
    describe("a session with a key that requests prove", () => proofKeysContract(context));
    describe("events", () => {
      eventsContract(context);
      dueRecordsContract(context);
    });
    describe("a session for one transport", () => transportsContract(context));
    describe("a session with an actor", () => actorsContract(context));
    describe("a session from a provider", () => upstreamContract(context));
    revocationsContract(context);
    describe("signals", () => signalsContract(context));
    describe("forgetting a subject", () => forgetContract(context));

    test("a closed store is unavailable", async () => {
      const other = await context().backend.open();
      await other.ping();
      await other.close();
      await expect(other.ping()).rejects.toThrow(StoreUnavailable);
      await expect(other.find(sidOf(subject()))).rejects.toThrow(StoreUnavailable);
      await expect(other.end(sidOf(subject()), "logout")).rejects.toThrow(StoreUnavailable);
      await other.close();
    });
  });
}
