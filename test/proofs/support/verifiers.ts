/** A handle by which a test controls a process of verifiers. */
import { fork } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import type { Order, Refusal, Report } from "./verifier-messages.ts";

export class VerifierProcess {
  readonly #child = fork(join(import.meta.dirname, "verifier-process.ts"), { stdio: "inherit" });
  readonly #waiting = new Map<string, (report: Report) => void>();

  constructor() {
    this.#child.on("message", (report: Report) => {
      const key = keyOf(report.did, report);
      this.#waiting.get(key)?.(report);
      this.#waiting.delete(key);
    });
    onTestFinished(() => void this.#child.kill("SIGKILL"));
  }

  async start(order: Omit<Extract<Order, { do: "start" }>, "do">): Promise<void> {
    await this.#send({ do: "start", ...order }, "start");
  }

  /** Resolves when every verifier has accepted the token, with a promise `refused` that resolves when every verifier has refused it. */
  async watch(token: string): Promise<{ readonly refused: Promise<readonly Refusal[]> }> {
    const refused = this.#report("refuse", { token }).then((report) =>
      report.did === "refuse" ? report.refusals : [],
    );
    await this.#send({ do: "watch", token }, "watch");
    return { refused };
  }

  /** Returns the wrong verdicts of all verifiers. */
  async check(dead: readonly string[], live: readonly string[]): Promise<readonly string[]> {
    const report = await this.#send({ do: "check", dead, live }, "check");
    return report.did === "check" ? report.wrong : [];
  }

  #send(order: Order, did: Report["did"]): Promise<Report> {
    const report = this.#report(did, order);
    this.#child.send(order);
    return report;
  }

  #report(did: Report["did"], about: object): Promise<Report> {
    return new Promise((resolve) => this.#waiting.set(keyOf(did, about), resolve));
  }
}

const keyOf = (did: Report["did"], about: object) => `${did} ${"token" in about ? about.token : ""}`;
