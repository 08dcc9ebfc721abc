/**
 * Device binding by script, for browsers that do not do it themselves (Device Bound Session Credentials): an entry of its own,
 * so that pages without it pay nothing.
 */
export { type DeviceRealm, withDeviceKey } from "./with-device-key.ts";
