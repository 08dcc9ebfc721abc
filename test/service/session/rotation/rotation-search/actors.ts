/**
 * A model of a session that ends with the session of its actor. Searches look for one whose tokens somebody has, that is live although the
 * actor's session has ended, and that no note in the store says has to end: nothing would end it before it expires.
 *
 * The instance that creates the session may die after each of its steps, and so may those that have found the note, up to two at a time.
 * Meanwhile the session is refreshed, with any token that it may still accept. The first kind of order is that of the service. The others
 * have races, which the search must find.
 */
import { type decide, firstState, type RotationState } from "../../../../../src/service/session/rotation/rotation.ts";
import type { Model, Step } from "./explore.ts";
import { NOW } from "./time.ts";
import { LONG_AGO, plain, R } from "./young.ts";

export type Order = "of the service" | "tokens first" | "attached in two steps" | "the note goes first";

/** What the instance that creates the session has done. */
type Creation = "nothing" | "created" | "looked" | "attached" | "refused" | "delivered" | "died";
/** What an instance that has found the note has done since. */
type Ending = "found" | "half done";

export type Acting = {
  readonly isActorLive: boolean;
  /** What the store knows of the two sessions, beside the actor's: that they belong together, or that the second one has to end. */
  readonly entry: "none" | "attached" | "note";
  /** Undefined before the session is created, and after its end. */
  readonly stored: RotationState | undefined;
  readonly creation: Creation;
  readonly isDelivered: boolean;
  readonly endings: readonly Ending[];
  readonly refreshes: readonly number[];
};

const MOST_AT_ONCE = 2;

export function actors(rule: typeof decide, order: Order): Model<Acting> {
  /** Returns undefined if nothing would end a session that outlives its actor's. */
  function checked(world: Acting): Acting | undefined {
    const isForgotten = !world.isActorLive && world.stored !== undefined && world.isDelivered && world.entry !== "note";
    // Until its creation is complete, the instance that creates it may still end it.
    return isForgotten && world.creation !== "refused" ? undefined : world;
  }
  const step = (label: string, world: Acting): Step<Acting> => ({ label: () => label, world: checked(world) });

  function* create(world: Acting): Iterable<Step<Acting>> {
    const { creation, isActorLive } = world;
    const attach = (): Acting => ({ ...world, entry: "attached", creation: "attached" });
    switch (creation) {
      case "nothing": {
        const isDelivered = order === "tokens first";
        if (isActorLive) {
          yield step("it is created", { ...world, stored: firstState("first"), creation: "created", isDelivered });
        }
        break;
      }
      case "created":
        if (!isActorLive) yield step("it is refused", { ...world, creation: "refused" });
        else if (order === "attached in two steps") yield step("the actor's is live", { ...world, creation: "looked" });
        else yield step("it is attached", attach());
        break;
      case "looked":
        yield step("it is attached", attach());
        break;
      case "attached":
        yield step("its tokens are delivered", { ...world, creation: "delivered", isDelivered: true });
        break;
      case "refused":
        yield step("it is ended again", { ...world, stored: undefined, creation: "died" });
        break;
      default:
        return;
    }
    if (creation !== "nothing") yield step("the instance that creates it dies", { ...world, creation: "died" });
  }

  function* end(world: Acting, at: number, ending: Ending): Iterable<Step<Acting>> {
    const endings = world.endings.toSpliced(at, 1);
    const half = world.endings.with(at, "half done");
    yield step("an instance that has found the note dies", { ...world, endings });
    if ((ending === "found") === (order !== "the note goes first")) {
      const after = ending === "found" ? half : endings;
      yield step("it ends, as the note says", { ...world, stored: undefined, endings: after });
    } else {
      yield step("the note is removed", { ...world, entry: "none", endings: ending === "found" ? half : endings });
    }
  }

  function refresh(world: Acting, at: number, ahead: number): Step<Acting> {
    const refreshes = world.refreshes.toSpliced(at, 1);
    const { stored } = world;
    if (stored === undefined) return step("a refresh is refused", { ...world, refreshes });
    const generation = stored.generation + ahead;
    const nonce = ahead === 1 ? stored.childNonce : stored.nonce;
    const decision = rule(stored, { generation, nonce, issuedAt: LONG_AGO }, "new", NOW, R);
    const next = decision.outcome === "reuse" ? undefined : decision.next;
    return step(`a refresh runs: ${decision.outcome}`, { ...world, refreshes, stored: next });
  }

  return {
    start: {
      ...{ isActorLive: true, entry: "none", stored: undefined, creation: "nothing", isDelivered: false },
      ...{ endings: [], refreshes: [] },
    },
    *steps(world) {
      const { isActorLive, entry, stored, isDelivered, endings, refreshes } = world;
      yield* create(world);
      if (isActorLive) {
        const noted = entry === "attached" ? "note" : entry;
        yield step("the actor's session ends", { ...world, isActorLive: false, entry: noted });
      }
      if (entry === "note" && endings.length < MOST_AT_ONCE) {
        yield step("an instance finds the note", { ...world, endings: [...endings, "found"] });
      }
      for (const [at, ending] of endings.entries()) yield* end(world, at, ending);
      if (stored !== undefined) {
        const state = { ...stored, childMintedAt: LONG_AGO, childServedAt: LONG_AGO };
        yield step("more than R passes", { ...world, stored: state });
        yield step("it ends for another reason", { ...world, stored: undefined });
      }
      if (isDelivered && refreshes.length < MOST_AT_ONCE) {
        for (const ahead of [-1, 0, 1, 2]) {
          yield step("a refresh is sent", { ...world, refreshes: [...refreshes, ahead] });
        }
      }
      for (const [at, ahead] of refreshes.entries()) yield refresh(world, at, ahead);
    },
    canonical(world) {
      const { stored } = world;
      const reduced: Acting = {
        ...world,
        stored: stored && plain(stored),
        endings: world.endings.toSorted(),
        refreshes: world.refreshes.toSorted((a, b) => a - b),
      };
      return { key: JSON.stringify(reduced), world: reduced };
    },
  };
}
