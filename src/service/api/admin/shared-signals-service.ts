/** Implements auth.admin.v1.SharedSignalsService: converts its messages to operations on streams, and the results to messages. */
import { create, fromJson, type JsonValue, toJson } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { successStatus } from "connect-http-routes";
import {
  type PollStreamRequest,
  type SharedSignalsService,
  type Stream,
  type StreamDelivery,
  StreamSchema,
} from "../../../../gen/auth/admin/v1/shared_signals_pb.ts";
import { invalidRequest } from "../../session/errors.ts";
import type { RateLimit } from "../../session/ports.ts";
import type {
  DeliveryProperties,
  StreamConfiguration,
  StreamProperties,
  TransmitterProperties,
} from "../../signals/streams/configuration.ts";
import * as streams from "../../signals/streams/manage.ts";
import type { Verdicts } from "../../signals/streams/poll-pass.ts";
import type { Poller } from "../../signals/streams/poller.ts";
import { getStatus, updateStatus } from "../../signals/streams/status.ts";
import { type VerificationLimit, verifyStream } from "../../signals/streams/stream-events.ts";
import { addSubject, removeSubject } from "../../signals/streams/subjects.ts";
import { jsonOptions } from "../connect-options.ts";
import { rateLimited } from "../errors/connect-errors.ts";
import { requestContextOf } from "../request-context.ts";
import { scopeCheckOf } from "./authentication.ts";

const CREATED = 201;
const NO_CONTENT = 204;

const MAX_ERRORS = 1000;

export type SharedSignalsDeps = streams.StreamDeps & {
  readonly verificationLimit: VerificationLimit;
  /** Limits polls, by receiver: each may sign a hundred tokens again that the receiver does not acknowledge. */
  readonly pollLimit: RateLimit;
  /** Limits new streams and changes of a stream's status, by receiver: each may write to all partitions of the store. */
  readonly changeLimit: RateLimit;
  readonly poller: Poller;
  /** Aborted when the service shuts down: polls that wait for events must then respond at once. */
  readonly draining: AbortSignal;
};

export function sharedSignalsService(deps: SharedSignalsDeps): ServiceImpl<typeof SharedSignalsService> {
  return {
    async createStream({ stream }, context) {
      limitBy(deps.changeLimit, context);
      const wanted = stream === undefined ? { eventsRequested: [] } : propertiesOf(stream);
      const created = await streams.createStream(deps, wanted, requestContextOf(context));
      context.values.set(successStatus, CREATED);
      return { stream: messageOf(created) };
    },
    async readStreams({ streamId }, context) {
      const requester = requestContextOf(context);
      if (streamId !== "") return { streams: structValue(jsonOf(await streams.readStream(deps, streamId, requester))) };
      return { streams: structValue((await streams.listStreams(deps, requester)).map(jsonOf)) };
    },
    async updateStream({ stream, updateMask }, context) {
      const change = changeOf(stream, updateMask?.paths ?? []);
      return { stream: messageOf(await streams.updateStream(deps, idOf(stream), change, requestContextOf(context))) };
    },
    async replaceStream({ stream }, context) {
      const wanted = replacementOf(stream);
      return { stream: messageOf(await streams.replaceStream(deps, idOf(stream), wanted, requestContextOf(context))) };
    },
    async deleteStream({ streamId }, context) {
      await streams.deleteStream(deps, streamId, requestContextOf(context));
      return noContent(context);
    },
    async getStreamStatus({ streamId }, context) {
      return { status: await getStatus(deps, streamId, requestContextOf(context)) };
    },
    async updateStreamStatus({ status: wanted }, context) {
      limitBy(deps.changeLimit, context);
      const { streamId = "", status = "", reason } = wanted ?? {};
      const change = { status, ...(reason !== undefined && { reason }) };
      return { status: await updateStatus(deps, streamId, change, requestContextOf(context)) };
    },
    async addStreamSubject({ streamId, subject = {} }, context) {
      await addSubject(deps, streamId, subject, requestContextOf(context));
      return {};
    },
    async removeStreamSubject({ streamId, subject = {} }, context) {
      await removeSubject(deps, streamId, subject, requestContextOf(context));
      return noContent(context);
    },
    async verifyStream({ streamId, state }, context) {
      const waitMs = await verifyStream(deps, streamId, state, requestContextOf(context));
      if (waitMs !== undefined) throw rateLimited(waitMs);
      return noContent(context);
    },
    async pollStream(request, context) {
      limitBy(deps.pollLimit, context);
      const { streamId, maxEvents, returnImmediately } = request;
      if (maxEvents !== undefined && maxEvents < 0) throw invalidRequest("maxEvents", "is negative");
      const stopped = AbortSignal.any([context.signal, deps.draining]);
      const poll = { maxEvents, returnImmediately, verdicts: verdictsOf(request) };
      const requireScope = scopeCheckOf(context);
      const polled = await deps.poller.poll(streamId, poll, requestContextOf(context), stopped);
      // The credential may have been withdrawn while the poll was waiting.
      requireScope();
      return polled;
    },
  };
}

/** Counts a request of a receiver. @throws ConnectError over the limit */
function limitBy(limit: RateLimit, context: HandlerContext): void {
  const waitMs = limit.take(requestContextOf(context).adminName ?? "");
  if (waitMs !== undefined) throw rateLimited(waitMs);
}

function verdictsOf({ ack, setErrs }: PollStreamRequest): Verdicts {
  const refused = Object.keys(setErrs);
  if (refused.length > MAX_ERRORS) throw invalidRequest("setErrs", `has more than ${MAX_ERRORS} entries`);
  return new Map([...ack.map((id) => [id, "accepted"] as const), ...refused.map((id) => [id, "refused"] as const)]);
}

function noContent({ values }: Pick<HandlerContext, "values">): Record<never, never> {
  values.set(successStatus, NO_CONTENT);
  return {};
}

function idOf(stream: Stream | undefined): string {
  if (stream === undefined || stream.streamId === "") throw invalidRequest("stream_id", "is required");
  return stream.streamId;
}

function propertiesOf({ description, eventsRequested, delivery }: Stream): StreamProperties {
  return {
    eventsRequested,
    ...(description !== undefined && { description }),
    ...(delivery !== undefined && { delivery: deliveryOf(delivery) }),
  };
}

/** Returns the properties in a request that replaces a whole stream. Properties that only the transmitter can set may be absent. */
function replacementOf(stream: Stream | undefined): StreamProperties & Partial<TransmitterProperties> {
  if (stream === undefined) return { eventsRequested: [] };
  const { iss, aud, eventsSupported, eventsDelivered, minVerificationInterval } = stream;
  return {
    ...propertiesOf(stream),
    ...(minVerificationInterval !== undefined && { minVerificationInterval }),
    ...(iss !== "" && { iss }),
    ...(aud.length > 0 && { aud }),
    ...(eventsSupported.length > 0 && { eventsSupported }),
    ...(eventsDelivered.length > 0 && { eventsDelivered }),
  };
}

/** Returns the properties of a stream that a field mask names. */
function changeOf(stream: Stream | undefined, paths: readonly string[]): streams.StreamChange {
  if (stream === undefined) return {};
  const { iss, aud, eventsSupported, eventsDelivered, eventsRequested, description = "", delivery } = stream;
  const { minVerificationInterval } = stream;
  const named = new Set(paths.map((path) => path.split(".")[0]));
  return {
    ...(named.has("iss") && { iss }),
    ...(named.has("aud") && { aud }),
    ...(named.has("events_supported") && { eventsSupported }),
    ...(named.has("events_delivered") && { eventsDelivered }),
    ...(named.has("events_requested") && { eventsRequested }),
    ...(named.has("min_verification_interval") && { minVerificationInterval }),
    ...(named.has("description") && { description }),
    ...(delivery !== undefined && named.has("delivery") && { delivery: deliveryOf(delivery) }),
  };
}

function deliveryOf({ method, endpointUrl, authorizationHeader }: StreamDelivery): DeliveryProperties {
  return { method, endpointUrl, ...(authorizationHeader !== undefined && { authorizationHeader }) };
}

function messageOf({ delivery, ...configuration }: StreamConfiguration): Stream {
  const { streamId, iss, description, minVerificationInterval } = configuration;
  return create(StreamSchema, {
    streamId,
    iss,
    aud: [...configuration.aud],
    eventsSupported: [...configuration.eventsSupported],
    eventsRequested: [...configuration.eventsRequested],
    eventsDelivered: [...configuration.eventsDelivered],
    delivery: { method: delivery.method, endpointUrl: delivery.endpointUrl },
    ...(description !== undefined && { description }),
    ...(minVerificationInterval !== undefined && { minVerificationInterval }),
  });
}

function jsonOf(configuration: StreamConfiguration): JsonValue {
  return toJson(StreamSchema, messageOf(configuration), jsonOptions);
}

function structValue(json: JsonValue): Value {
  return fromJson(ValueSchema, json);
}
