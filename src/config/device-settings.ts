/** The settings of Device Bound Session Credentials: whether sessions are bound to devices, and how long a proof is valid. */
import type { CookieSettings } from "./cookie.ts";
import type { AddFault, Read } from "./reader.ts";
import { DAY_MS, duration, oneOf, SECOND_MS } from "./values.ts";

type Needs = {
  readonly cookie: Pick<CookieSettings, "secure">;
  readonly tlsCertFile: string | undefined;
  readonly trustProxy: number;
};

export function readDeviceBinding(read: Read, addFault: AddFault, { cookie, tlsCertFile, trustProxy }: Needs) {
  const device = {
    deviceBinding: read("DEVICE_BINDING", oneOf("off", "on"), "off" as const) === "on",
    deviceSessionTtlMs: read("DEVICE_SESSION_TTL", duration(SECOND_MS, DAY_MS), 300 * SECOND_MS),
  };
  if (!device.deviceBinding) return device;
  if (tlsCertFile === undefined && trustProxy === 0) {
    addFault("DEVICE_BINDING=on needs https: TLS_CERT_FILE, or TRUST_PROXY for a proxy in front that speaks it");
  }
  if (!cookie.secure) addFault("DEVICE_BINDING=on needs COOKIE_SECURE=true: browsers bind no other cookies");
  return device;
}
