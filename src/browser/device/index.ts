/**
 * Binds sessions to devices by script, for browsers that lack Device Bound Session Credentials. This module is a separate entry, so that
 * pages without device binding do not load it.
 */
export { type DeviceRealm, withDeviceKey } from "./with-device-key.ts";
