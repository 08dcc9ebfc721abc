/** Executes the operations of subject-model.ts over real sockets, and records them. */
import { randomUUID } from "node:crypto";
import { AccessTokenPolicy } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { SessionService } from "../../../gen/auth/v1/session_pb.ts";
import { admin, bearer, cookie, successor } from "../../support/sessions.ts";
import { type Callers, callersOf, type Deployment, outcomeOf, pick } from "./deployment.ts";
import type { Input, Output, SubjectOperation } from "./subject-model.ts";

const { refresh, logout, revokeOtherSessions } = SessionService.method;

/** The credentials of one session. */
export type Held = { readonly name: string; readonly sid: string; accessToken: string; refreshToken: string };

const versionOf = (accessToken: string): number =>
  JSON.parse(Buffer.from(accessToken.split(".")[1] ?? "", "base64url").toString()).sv ?? 0;

export class SubjectClient {
  readonly history: SubjectOperation[] = [];
  readonly subject = `subject-${randomUUID()}`;
  readonly #deployment: Deployment;
  readonly #admin: Record<string, string>;
  #sessions = 0;

  constructor(deployment: Deployment) {
    this.#deployment = deployment;
    this.#admin = bearer(deployment.adminToken);
  }

  async create(): Promise<Held | undefined> {
    const name = `s${++this.#sessions}`;
    let held: Held | undefined;
    await this.#record({ verb: "create", name }, async ({ admin: listener }) => {
      const { subject } = this;
      const response = await listener.call(
        admin.createSession,
        { subject, client: { displayName: name } },
        this.#admin,
      );
      return outcomeOf(response, ({ session, accessToken, refreshToken }) => {
        held = { name, sid: session?.sessionId ?? "", accessToken, refreshToken };
        return "live";
      });
    });
    return held;
  }

  refresh(held: Held): Promise<Output | undefined> {
    return this.#record({ verb: "refresh", name: held.name }, async ({ public: listener }) => {
      const response = await listener.call(refresh, {}, cookie(held.refreshToken));
      held.refreshToken = successor(response) ?? held.refreshToken;
      return outcomeOf(response, ({ data }): Output => {
        held.accessToken = pick([held.accessToken, data?.accessToken ?? ""]); // A client may go on with the one from before.
        const version = versionOf(data?.accessToken ?? "");
        return version === 0 ? "live" : `live ${version}`;
      });
    });
  }

  /** Changes what the session says to something that it never said, and makes the access tokens from before stale. */
  update(held: Held): Promise<Output | undefined> {
    return this.#record({ verb: "update", name: held.name }, async ({ admin: listener }) => {
      const change = { claims: { role: randomUUID() }, accessTokens: AccessTokenPolicy.REFRESH };
      const response = await listener.call(admin.updateSession, { sessionId: held.sid, ...change }, this.#admin);
      if (!response.ok && response.code === "E404_NOT_FOUND") return "dead";
      return outcomeOf(response, () => "live");
    });
  }

  introspect(held: Held): Promise<Output | undefined> {
    const token = pick([held.accessToken, held.refreshToken]);
    const sv = token === held.accessToken ? { sv: versionOf(token) } : {};
    return this.#record({ verb: "introspect", name: held.name, ...sv }, async ({ admin: listener }) => {
      return outcomeOf(await listener.call(admin.introspectToken, { token }, this.#admin), ({ active }) =>
        active ? "live" : "dead",
      );
    });
  }

  logout(held: Held): Promise<Output | undefined> {
    return this.#record({ verb: "logout", name: held.name }, async ({ public: listener }) =>
      outcomeOf(await listener.call(logout, {}, bearer(held.accessToken)), () => "live"),
    );
  }

  revoke(held: Held): Promise<Output | undefined> {
    return this.#record({ verb: "revoke", name: held.name }, async ({ admin: listener }) =>
      outcomeOf(
        await listener.call(admin.revokeSession, { sessionId: held.sid }, this.#admin),
        ({ revokedCount }) => revokedCount,
      ),
    );
  }

  revokeOthers(held: Held): Promise<Output | undefined> {
    const { name, accessToken } = held;
    return this.#record({ verb: "revokeOthers", name, sv: versionOf(accessToken) }, async ({ public: listener }) =>
      outcomeOf(await listener.call(revokeOtherSessions, {}, bearer(accessToken)), ({ data }) => data?.revokedCount),
    );
  }

  revokeSubject(except?: Held): Promise<Output | undefined> {
    const input: Input = { verb: "revokeSubject", ...(except && { except: except.name }) };
    return this.#record(input, async ({ admin: listener }) => {
      const exceptSessionId = except?.sid ?? "";
      const response = await listener.call(
        admin.revokeSubjectSessions,
        { subject: this.subject, exceptSessionId },
        this.#admin,
      );
      return outcomeOf(response, ({ revokedCount }) => revokedCount);
    });
  }

  list(): Promise<Output | undefined> {
    return this.#record({ verb: "list" }, async ({ admin: listener }) => {
      const response = await listener.call(admin.listSessions, { subject: this.subject, pageSize: 100 }, this.#admin);
      return outcomeOf(response, ({ sessions }) => sessions.map(({ client }) => client?.displayName ?? "").toSorted());
    });
  }

  /** Runs an operation on a random instance, and records it. If the outcome is unknown, the record has no time of return. */
  async #record(input: Input, call: (listeners: Callers) => Promise<Output | undefined>): Promise<Output | undefined> {
    const listeners = callersOf(pick(this.#deployment.services));
    const invokedAt = performance.now();
    const output = await call(listeners);
    const returnedAt = output === undefined ? Number.POSITIVE_INFINITY : performance.now();
    this.history.push({ input, output, invokedAt, returnedAt });
    return output;
  }
}
