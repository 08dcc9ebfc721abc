/** Stream configurations (SSF 1.0 section 8.1.1): makes them from subscriptions, and checks them. */
import { invalidRequest } from "../../session/errors.ts";
import { SESSION_ESTABLISHED, SESSION_REVOKED, TOKEN_CLAIMS_CHANGE } from "../kinds/ssf.ts";
import {
  SIGNAL_EVENTS,
  type SignalEvent,
  type SignalFilter,
  type StreamSettings,
  type Subscription,
  type SubscriptionDefinition,
} from "../model.ts";
import { parseTarget, type TargetRules } from "../send/target.ts";

const PUSH = "urn:ietf:rfc:8935";
const POLL = "urn:ietf:rfc:8936";

/** The types of session events, and what they are signals of. Events about the stream itself are sent to every receiver. */
const SIGNAL_OF: Readonly<Record<string, SignalEvent>> = {
  [SESSION_REVOKED]: SIGNAL_EVENTS.ended,
  [TOKEN_CLAIMS_CHANGE]: SIGNAL_EVENTS.updated,
  [SESSION_ESTABLISHED]: SIGNAL_EVENTS.created,
};
const EVENTS_SUPPORTED: readonly string[] = Object.keys(SIGNAL_OF);

export type StreamProperties = {
  readonly description?: string;
  /** Empty means `session-revoked`: others have to be named. */
  readonly eventsRequested: readonly string[];
  readonly delivery?: DeliveryProperties;
};

export type DeliveryProperties = {
  readonly method: string;
  readonly endpointUrl: string;
  readonly authorizationHeader?: string;
};

/** The properties that this service sets. A receiver may send them back unchanged. */
export type TransmitterProperties = {
  readonly iss: string;
  readonly aud: readonly string[];
  readonly eventsSupported: readonly string[];
  readonly eventsDelivered: readonly string[];
  /** How many seconds must pass between two requests for a verification event; absent for any number. */
  readonly minVerificationInterval?: number | undefined;
};

export type StreamConfiguration = StreamProperties &
  TransmitterProperties & { readonly streamId: string; readonly delivery: DeliveryProperties };

export type StreamSubscription = Subscription & {
  readonly kind: "ssf_push" | "ssf_poll";
  readonly stream: StreamSettings;
};

export type StreamPlace = {
  readonly issuer: string;
  /** The URL under which receivers reach the endpoints. */
  readonly url: string;
  readonly verificationIntervalMs: number;
  /** Whether the service is configured for receivers of the CAEP interoperability profile. */
  readonly forInterop: boolean;
};

export function isStream(subscription: Subscription): subscription is StreamSubscription {
  return subscription.stream !== undefined;
}

export function isDisabled(subscription: Subscription): boolean {
  return subscription.state === "paused" && subscription.because === "disabled";
}

/** Returns the configuration of a stream, without the authorization header for the receiver. */
export function configurationOf(subscription: StreamSubscription, place: StreamPlace): StreamConfiguration {
  const { issuer, url, verificationIntervalMs } = place;
  const { id, kind, endpoint = "", audience, stream } = subscription;
  return {
    streamId: id,
    iss: issuer,
    aud: audience,
    eventsSupported: EVENTS_SUPPORTED,
    eventsRequested: stream.eventsRequested ?? [],
    eventsDelivered: deliveredOf(stream.eventsRequested),
    // The path at which receivers poll is also in proto/auth/admin/v1/shared_signals.proto.
    delivery:
      kind === "ssf_push"
        ? { method: PUSH, endpointUrl: endpoint }
        : { method: POLL, endpointUrl: `${url}/v1/ssf/poll/${id}` },
    ...(stream.description !== undefined && { description: stream.description }),
    ...(verificationIntervalMs > 0 && { minVerificationInterval: Math.ceil(verificationIntervalMs / 1000) }),
  };
}

type DefinitionDeps = StreamPlace & { readonly targets: TargetRules; readonly seal: (secret: string) => string };

/**
 * Returns the definition of a new stream.
 * @param clientId of whose sessions it has signals; undefined for those of all clients
 * @throws ServiceError
 */
export function newDefinition(
  deps: DefinitionDeps,
  owner: string,
  clientId: string | undefined,
  wanted: StreamProperties,
): SubscriptionDefinition {
  const filter = clientId === undefined ? {} : { clientId };
  const empty = { kind: "ssf_poll", filter, audience: [owner], stream: { owner } } as const;
  return withProperties(withDelivery(deps, empty, wanted.delivery), wanted);
}

/** Returns a definition with other receiver properties. Its delivery is unchanged. */
export function withProperties(
  { filter: { reasons: _, events: _events, ...filter }, stream, ...definition }: SubscriptionDefinition,
  { description, eventsRequested }: StreamProperties,
): SubscriptionDefinition {
  const { description: _before, eventsRequested: _requested, ...settings } = stream ?? { owner: "" };
  const wanted = eventsRequested.length === 0 ? undefined : eventsRequested;
  return {
    ...definition,
    filter: { ...filter, ...filterOf(deliveredOf(wanted)) },
    stream: {
      ...settings,
      ...(description !== undefined && { description }),
      ...(wanted !== undefined && { eventsRequested: wanted }),
    },
  };
}

/** Returns a definition with another delivery; by poll if none is requested (SSF 1.0 section 8.1.1). @throws ServiceError */
export function withDelivery(
  { targets, seal }: Pick<DefinitionDeps, "targets" | "seal">,
  { endpoint: _, sealedSecret: _secret, ...definition }: SubscriptionDefinition,
  delivery: DeliveryProperties | undefined,
): SubscriptionDefinition {
  if (delivery === undefined || delivery.method === POLL) return { ...definition, kind: "ssf_poll" };
  const { method, endpointUrl, authorizationHeader = "" } = delivery;
  if (method !== PUSH) throw invalidRequest("delivery.method", `is neither ${PUSH} nor ${POLL}`);
  if (parseTarget(endpointUrl, targets) === undefined) {
    throw invalidRequest("delivery.endpoint_url", "is not an allowed URL");
  }
  if (!/^[\x20-\x7e]*$/.test(authorizationHeader)) {
    throw invalidRequest("delivery.authorization_header", "is not a header's value");
  }
  const secret = authorizationHeader === "" ? {} : { sealedSecret: seal(authorizationHeader) };
  return { ...definition, kind: "ssf_push", endpoint: endpointUrl, ...secret };
}

/** Returns what selects the signals of these types. Nothing passes the filter of a stream that receives no session events. */
function filterOf(delivered: readonly string[]): SignalFilter {
  if (delivered.length === 0) return { reasons: [] };
  const wanted = Object.entries(SIGNAL_OF).filter(([type]) => delivered.includes(type));
  const events = wanted.map(([, event]) => event);
  return events.length === 1 && events[0] === SIGNAL_EVENTS.ended ? {} : { events };
}

function deliveredOf(requested: readonly string[] | undefined): readonly string[] {
  return requested === undefined ? [SESSION_REVOKED] : EVENTS_SUPPORTED.filter((type) => requested.includes(type));
}

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
