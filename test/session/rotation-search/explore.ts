/** Breadth-first search over the canonical states of a model: shortest counterexample, or none up to the fixpoint. */

export type Step<World> = {
  /** Returns the description of the step. It is a function, because only a trace needs it. */
  readonly label: () => string;
  /** The world after the step; undefined when this very step breaks the property. */
  readonly world: World | undefined;
};

export type Model<World> = {
  readonly start: World;
  /** Returns everything that may happen next, in an order that is a function of the world. */
  steps(world: World): Iterable<Step<World>>;
  /** Worlds of one key have the same future; `world` is the key's representative. */
  canonical(world: World): { readonly key: string; readonly world: World };
};

export type Result = {
  readonly states: number;
  readonly depth: number;
  /** Whether every reachable state was visited. */
  readonly fixpoint: boolean;
  /** The shortest way to break the property, one step a line; empty when there is none within the bound. */
  readonly counterexample: readonly string[];
};

/** @param bound give up after so many states */
export function explore<World>(model: Model<World>, bound = Number.POSITIVE_INFINITY): Result {
  const first = model.canonical(model.start);
  const index = new Map([[first.key, 0]]);
  const parents = [-1];
  let frontier: { readonly at: number; readonly world: World }[] = [{ at: 0, world: first.world }];
  let depth = 0;
  for (; frontier.length > 0 && index.size < bound; depth++) {
    const next: typeof frontier = [];
    for (const { at, world } of frontier) {
      for (const step of model.steps(world)) {
        if (step.world === undefined) {
          const counterexample = folded([...retrace(model, index, parents, at), step.label()]);
          return { states: index.size, depth, fixpoint: false, counterexample };
        }
        const { key, world: reached } = model.canonical(step.world);
        if (index.has(key)) continue;
        next.push({ at: index.size, world: reached });
        index.set(key, index.size);
        parents.push(at);
      }
    }
    frontier = next;
  }
  return { states: index.size, depth, fixpoint: frontier.length === 0, counterexample: [] };
}

/** Walks from the start to the state `at` again, and collects the labels of the steps. */
function retrace<World>(model: Model<World>, index: Map<string, number>, parents: readonly number[], at: number) {
  const path: number[] = [];
  for (let state = at; state > 0; state = parents[state] ?? 0) path.unshift(state);
  const lines: string[] = [];
  let here = model.canonical(model.start).world;
  for (const state of path) {
    for (const step of model.steps(here)) {
      const reached = step.world === undefined ? undefined : model.canonical(step.world);
      if (reached === undefined || index.get(reached.key) !== state) continue;
      lines.push(step.label());
      here = reached.world;
      break;
    }
  }
  return lines;
}

/** Returns equal lines as one, such as `3 × 0.5 R` for three. */
function folded(lines: readonly string[]): string[] {
  const runs: { readonly line: string; times: number }[] = [];
  for (const line of lines) {
    const last = runs.at(-1);
    if (last?.line === line) last.times++;
    else runs.push({ line, times: 1 });
  }
  return runs.map(({ line, times }) => (times === 1 ? line : `${times} × ${line}`));
}
