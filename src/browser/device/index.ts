/**
 * Binds sessions to devices by script, for browsers that lack Device Bound Session Credentials. The module is an entry of its own, so
 * that pages without device binding do not load it.
 */
export { type DeviceRealm, withDeviceKey } from "./with-device-key.ts";
