/** The transmitter configuration metadata (SSF 1.0 section 7.1), and the paths at which receivers find it (section 7.2). */
import { POLL, PUSH, type StreamPlace } from "./configuration.ts";

/** The paths of routes in proto/auth/admin/v1/shared_signals.proto. */
const PATHS = {
  configuration_endpoint: "/v1/ssf/streams",
  status_endpoint: "/v1/ssf/status",
  add_subject_endpoint: "/v1/ssf/subjects:add",
  remove_subject_endpoint: "/v1/ssf/subjects:remove",
  verification_endpoint: "/v1/ssf/verification",
};

const WELL_KNOWN = "/.well-known/ssf-configuration";

export function transmitterMetadata({ issuer, url, forInterop }: StreamPlace) {
  const endpoints = Object.entries(PATHS).map(([name, path]) => [name, url + path] as const);
  return {
    spec_version: "1_0",
    issuer,
    jwks_uri: `${issuer.replace(/\/$/, "")}/.well-known/jwks.json`,
    delivery_methods_supported: [PUSH, POLL],
    ...Object.fromEntries(endpoints),
    // The operator issues bearer tokens. The CAEP interoperability profile requires the name of OAuth 2.0 as well (section 2.3.7).
    authorization_schemes: [
      ...(forInterop ? [{ spec_urn: "urn:ietf:rfc:6749" }] : []),
      { spec_urn: "urn:ietf:rfc:6750" },
    ],
    default_subjects: "ALL",
  };
}

/** Returns the paths of the document. The well-known path is inserted before the path of the issuer. */
export function metadataPaths(issuer: string): readonly string[] {
  const path = new URL(issuer).pathname.replace(/\/$/, "");
  return path === "" ? [WELL_KNOWN] : [WELL_KNOWN, WELL_KNOWN + path];
}
