/** Verifiers in processes of their own, seen from the test. */
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
    await this.#ask({ do: "start", ...order }, "start");
  }

  /** Resolves once every verifier has accepted the token; `refused`, once every one has refused it. */
  async watch(token: string): Promise<{ readonly refused: Promise<readonly Refusal[]> }> {
    const refused = this.#told("refuse", { token }).then((report) => (report.did === "refuse" ? report.refusals : []));
    await this.#ask({ do: "watch", token }, "watch");
    return { refused };
  }

  /** Verdicts of any verifier that ought to be others. */
  async check(dead: readonly string[], live: readonly string[]): Promise<readonly string[]> {
    const report = await this.#ask({ do: "check", dead, live }, "check");
    return report.did === "check" ? report.wrong : [];
  }

  #ask(order: Order, did: Report["did"]): Promise<Report> {
    const told = this.#told(did, order);
    this.#child.send(order);
    return told;
  }

  #told(did: Report["did"], about: object): Promise<Report> {
    return new Promise((resolve) => this.#waiting.set(keyOf(did, about), resolve));
  }
}

const keyOf = (did: Report["did"], about: object) => `${did} ${"token" in about ? about.token : ""}`;
