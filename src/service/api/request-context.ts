/** The facts about a request beyond its message: where it comes from, and which admin makes it. */
import type { ContextKey, ContextValues, HandlerContext } from "@connectrpc/connect";
import type { NodeRequestSource } from "../../platform/listener/request-source.ts";
import type { Correlation, Requester } from "../session/audit.ts";
import type { AdminCaller } from "./admin/credential.ts";

/** The facts that the listener knows about a request. Each is looked up when it is used. */
type RequestSource = Pick<NodeRequestSource, keyof NodeRequestSource>;

/**
 * The context of a request, which is also the context values of its call. The functions of the domain take it as their `Requester`: who
 * makes the request, for the audit log. The source is opened on its first use: a refresh that succeeds needs nothing of it.
 */
export class RequestContext implements Requester, ContextValues {
  /** How long the request and its connection may have waited in this process, in ms; 0 if that was not long. */
  readonly waitMs: number;
  /** The caller of an admin RPC, once it is authenticated. */
  admin: AdminCaller | undefined;
  /** What a call of the public API has presented, once it is authenticated (public/credentials.ts). */
  credential: { readonly ok: true } | undefined;
  /**
   * Whether the message of the call is being read. Connect raises errors of a message with the same codes as errors of the service. Between
   * the gates and the implementation, only the message is read, so an error that is raised there is one of the message. The implementation
   * itself reads the messages of a stream.
   */
  isReading = false;
  readonly #open: () => RequestSource;
  #source: RequestSource | undefined;
  /** The values that others keep with a call, such as its span. */
  #values: Map<symbol, unknown> | undefined;

  constructor(open: () => RequestSource, waitMs = 0) {
    this.#open = open;
    this.waitMs = waitMs;
  }

  get source(): RequestSource {
    this.#source ??= this.#open();
    return this.#source;
  }

  address(): string | undefined {
    return this.source.address();
  }

  userAgent(): string | undefined {
    return this.source.userAgent();
  }

  correlation(): Correlation {
    return this.source.correlation();
  }

  get adminName(): string | undefined {
    return this.admin?.name;
  }

  get adminClientId(): string | undefined {
    return this.admin?.clientId;
  }

  get<T>({ id, defaultValue }: ContextKey<T>): T {
    return this.#values?.has(id) ? (this.#values.get(id) as T) : defaultValue;
  }

  set<T>({ id }: ContextKey<T>, value: T): this {
    this.#values ??= new Map();
    this.#values.set(id, value);
    return this;
  }

  delete({ id }: ContextKey<unknown>): this {
    this.#values?.delete(id);
    return this;
  }
}

/** Returns the context of a request; undefined if it did not come through a listener. */
export function contextOf(values: ContextValues | undefined): RequestContext | undefined {
  return values instanceof RequestContext ? values : undefined;
}

/** @throws Error if a call did not come through a listener, which makes a `RequestContext` */
export function requestContextOf({ values }: Pick<HandlerContext, "values">): RequestContext {
  if (values instanceof RequestContext) return values;
  throw new Error("the call has no request context");
}
