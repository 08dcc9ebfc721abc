/** Watches revocations over a separate connection, and records which were reported and when. */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { bearer } from "../../support/sessions.ts";

export class Watcher {
  /** The time at which each session was first reported as revoked, by performance.now(). */
  readonly reportedAt = new Map<string, number>();
  /** The times at which batches arrived. */
  readonly batches: number[] = [];
  cursor: string;
  /** Whether the last batch was up to date, so that no older revocations are outstanding. */
  caughtUp = false;
  /** Resolves with the error or end of the stream. */
  readonly ended: Promise<unknown>;
  readonly #abort = new AbortController();
  #onBatch = () => {};

  constructor(adminUrl: string, adminToken: string, cursor = "") {
    this.cursor = cursor;
    const transport = createConnectTransport({ baseUrl: adminUrl, httpVersion: "1.1" });
    const stream = createClient(SessionAdminService, transport).watchRevocations(
      { cursor },
      { headers: bearer(adminToken), signal: this.#abort.signal },
    );
    this.ended = (async () => {
      for await (const batch of stream) {
        const now = performance.now();
        this.batches.push(now);
        for (const { sessionId } of batch.revocations)
          if (!this.reportedAt.has(sessionId)) this.reportedAt.set(sessionId, now);
        this.cursor = batch.cursor;
        this.caughtUp = batch.caughtUp;
        this.#onBatch();
      }
      return new Error("the watch ended");
    })().catch((error: unknown) => error);
  }

  /** Resolves once `holds` returns true, which is called after every batch. @throws when the watch ends before */
  async until(holds: (watcher: this) => boolean): Promise<void> {
    if (holds(this)) return;
    const reached = new Promise<undefined>((resolve) => {
      this.#onBatch = () => {
        if (holds(this)) resolve(undefined);
      };
    });
    const failure = await Promise.race([reached, this.ended]);
    if (failure !== undefined) throw failure;
  }

  /** Resolves after this many more batches of the revocation feed have arrived. */
  async beats(count: number): Promise<void> {
    const wanted = this.batches.length + count;
    await this.until(() => this.batches.length >= wanted);
  }

  stop(): Promise<unknown> {
    this.#abort.abort();
    return this.ended;
  }
}
