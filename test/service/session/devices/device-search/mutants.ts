/**
 * Mutants of devices/binding.ts: in each, one rule is weakened or removed in the text of the module. Each names the search that must fail.
 */
import { stripTypeScriptTypes } from "node:module";
import type { isReplaceable, judgeDevice } from "../../../../../src/service/session/devices/binding.ts";
import { sourceOf } from "../../source-of.ts";

export type Rules = { readonly judge: typeof judgeDevice; readonly isReplaceable: typeof isReplaceable };

export type DeviceMutant = {
  readonly name: string;
  readonly text: string;
  readonly becomes: string;
  readonly noticedBy: "browser" | "two tabs" | "thief" | "exact thief";
};

const VERDICT =
  'return issuedAt <= later(device.since, inFlightMs) && !skipped ? "two_holders" : "device_proof_missing"';
const IN_FLIGHT = 'if (Math.abs(now - device.since) <= inFlightMs) return "unproven"';
const REGISTERED = 'if (!isBound) return isGraceOver ? "device_required" : "unproven"';

export const DEVICE_MUTANTS: readonly DeviceMutant[] = [
  { name: "bound by the registration itself", text: REGISTERED, becomes: "", noticedBy: "browser" },
  { name: "nothing is in flight", text: IN_FLIGHT, becomes: "", noticedBy: "two tabs" },
  { name: "no two holders", text: VERDICT, becomes: 'return "device_proof_missing"', noticedBy: "thief" },
  {
    name: "two holders only by a token from before the first use",
    text: VERDICT,
    becomes: 'return issuedAt < device.since && !skipped ? "two_holders" : "device_proof_missing"',
    noticedBy: "exact thief",
  },
  {
    name: "a device cookie stays fresh",
    text: "Math.abs(now - cookie.issuedAtMs) > lifeMs",
    becomes: "false",
    noticedBy: "thief",
  },
  {
    name: "a token from before the first use is served",
    text: VERDICT,
    becomes: 'return issuedAt <= later(device.since, inFlightMs) ? "unproven" : "device_proof_missing"',
    noticedBy: "thief",
  },
  {
    name: "an old device cookie is none",
    text: 'if (Math.abs(now - cookie.issuedAtMs) > lifeMs) return "device_proof_missing"',
    becomes: 'if (Math.abs(now - cookie.issuedAtMs) > lifeMs) return isBound ? "two_holders" : "unproven"',
    noticedBy: "thief",
  },
  {
    name: "a bound key is replaced",
    text: 'device.state === "registered" && Math.abs(now - device.since) > 2 * reuseIntervalMs',
    becomes: "true",
    noticedBy: "thief",
  },
];

const source = sourceOf("devices/binding.ts");

export async function mutatedRules({ text, becomes }: DeviceMutant): Promise<Rules> {
  const parts = source.split(text);
  if (parts.length !== 2) throw new Error(`devices/binding.ts has it ${parts.length - 1} times: ${text}`);
  const module = stripTypeScriptTypes(parts.join(becomes));
  const { judgeDevice: judge, isReplaceable } = await import(
    /* @vite-ignore */ `data:text/javascript,${encodeURIComponent(module)}`
  );
  return { judge, isReplaceable } as Rules;
}
