/** Reports a refused rotation, and decides what is replied to it. */
import { type Audit, namesOf, type Requester } from "../audit.ts";
import type { DevicePresentation } from "../devices/binding.ts";
import { type DeviceTools, NEVER_FRESH, noteSessionKey, registrationOffer } from "../devices/presented.ts";
import type { Refused } from "../errors.ts";
import type { SessionId } from "../model.ts";
import type { RotateOutcome } from "../ports.ts";
import { storeMs } from "../time.ts";

export type RotationRefusal = Refused | KeyRequired | RenewalDue;

/** The session requires a device key and has none. The browser may register one with this challenge, and try again. */
type KeyRequired = Refused & {
  readonly reason: "device_required";
  readonly sid: SessionId;
  readonly offer: string;
};

/**
 * The browser must try again; nothing was changed. `device_renewal_skipped`: the browser could not renew its device cookie.
 * `device_cookie_stale`: the device cookie is too old or too new, as a clock was set. The response expires it, so the browser renews it.
 * These are two types, because a comparison of `reason` narrows a union only by types that have one reason each.
 */
type RenewalDue =
  | { readonly ok: false; readonly reason: "device_renewal_skipped" }
  | { readonly ok: false; readonly reason: "device_cookie_stale" };

/**
 * A session that lacks its required key may register one at any time. So the offer to it is made as if the time were LATEST, when every
 * waiting time is over.
 */
const LATEST = storeMs(Number.POSITIVE_INFINITY);

/** Writes the audit lines of a refused rotation, notes the session's key if there is one, and returns what is replied. */
export function refusalOfRotation(
  { audit, device }: { readonly audit: Audit; readonly device: DeviceTools },
  sid: SessionId,
  rotated: Extract<RotateOutcome, { readonly ok: false }>,
  presentation: DevicePresentation,
  requester: Requester,
): RotationRefusal {
  switch (rotated.reason) {
    case "reuse":
    case "two_holders": {
      const { subject, actor, reason } = rotated;
      audit(
        { event: "authn_token_reuse", sid, subject, actor, ...(reason === "two_holders" && { cause: reason }) },
        requester,
      );
      audit({ event: "session_ended", sid, subject, actor, reason: "reuse" }, requester);
      return { ok: false, reason, sid };
    }
    case "device_proof_missing": {
      const { skipped } = presentation;
      const event = skipped ? "device_renewal_skipped" : "device_proof_missing";
      audit({ event, ...namesOf(rotated.session) }, requester);
      if (skipped) return { ok: false, reason: "device_renewal_skipped" };
      if (wasFresh(presentation)) return { ok: false, reason: "device_cookie_stale" };
      return { ok: false, reason: "device_proof_missing", sid };
    }
    case "proof_missing":
    case "other_key": {
      const { reason } = rotated;
      noteSessionKey(device, rotated.session);
      audit({ event: "bound_key_missing", ...namesOf(rotated.session), operation: "refresh", reason }, requester);
      return { ok: false, reason, sid };
    }
    case "device_required": {
      const offer = registrationOffer(device, rotated.session, LATEST);
      return offer === undefined
        ? { ok: false, reason: "device_required", sid }
        : { ok: false, reason: "device_required", sid, offer };
    }
    case "unknown":
      return { ok: false, reason: "unknown_session", sid };
    default:
      return { ok: false, reason: rotated.reason, sid };
  }
}

/** Returns whether the request has a device cookie that was fresh when it was set. The mark never is (`NEVER_FRESH`). */
function wasFresh({ cookie }: DevicePresentation): boolean {
  return (cookie?.issuedAtMs ?? NEVER_FRESH) !== NEVER_FRESH;
}
