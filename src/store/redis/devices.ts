/** The device keys of sessions. */
import type { DeviceKey } from "../../session/device-key.ts";
import type { SessionId } from "../../session/model.ts";
import type { RegisterKeyOutcome, UnbindOutcome } from "../../session/ports.ts";
import type { PresentedToken } from "../../session/rotation.ts";
import type { Link } from "./link.ts";
import { tagOfSession } from "./partitions.ts";
import { keyKind } from "./record.ts";
import type { Acknowledge } from "./replicas.ts";
import { registerKeyOutcome, unbindOutcome } from "./replies.ts";

export class RedisDevices {
  readonly #link: Link;
  readonly #acknowledge: Acknowledge;
  /** The reuse interval R, in ms. */
  readonly #reuseIntervalMs: number;

  constructor(link: Link, acknowledge: Acknowledge, reuseIntervalMs: number) {
    this.#link = link;
    this.#acknowledge = acknowledge;
    this.#reuseIntervalMs = reuseIntervalMs;
  }

  async register(sid: SessionId, { generation }: PresentedToken, key: DeviceKey): Promise<RegisterKeyOutcome> {
    const { bytes, thumbprint } = key;
    const tag = tagOfSession(sid);
    const args = [sid, generation, Buffer.from(bytes), Buffer.from(thumbprint), keyKind(key), this.#reuseIntervalMs];
    const reply = await this.#link.run("register_key", [tag], args);
    const outcome = registerKeyOutcome(sid, reply);
    if (outcome.ok) await this.#acknowledge(tag, [`s${sid}`, `m${sid}`]);
    return outcome;
  }

  async unbind(sid: SessionId): Promise<UnbindOutcome> {
    const tag = tagOfSession(sid);
    const outcome = unbindOutcome(sid, await this.#link.run("unbind", [tag], [sid]));
    if (outcome.ok) await this.#acknowledge(tag, [`s${sid}`, `m${sid}`]);
    return outcome;
  }
}
