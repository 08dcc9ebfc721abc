/** Watches revocations over a connection of its own, and records what was reported and when. */
import { createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { SessionAdminService } from "../../../gen/auth/admin/v1/session_admin_pb.ts";
import { bearer } from "../../support/sessions.ts";

export class Watcher {
  /** When each session was first reported as revoked, on the clock of performance.now(). */
  readonly reportedAt = new Map<string, number>();
  /** When batches arrived. */
  readonly batches: number[] = [];
  cursor: string;
  /** Whether the last batch completed what was revoked so far. */
  caughtUp = false;
  /** Resolves with what ended the watch. */
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

  /** Resolves once `holds`, which is evaluated after every batch. @throws when the watch ends before */
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

  /** Resolves after so many more batches. */
  async beats(count: number): Promise<void> {
    const wanted = this.batches.length + count;
    await this.until(() => this.batches.length >= wanted);
  }

  stop(): Promise<unknown> {
    this.#abort.abort();
    return this.ended;
  }
}
