/** Breadth-first search of the reduced states of a model. It finds a shortest counterexample, or visits all states without finding one. */

export type Step<World> = {
  /** Returns the description of the step. It is a function, because descriptions are needed only for a counterexample. */
  readonly label: () => string;
  /** The state after the step; undefined if this step breaks the property. */
  readonly world: World | undefined;
};

export type Model<World> = {
  readonly start: World;
  /** Yields every step that may happen next. For equal states the order is the same. */
  steps(world: World): Iterable<Step<World>>;
  /** Reduces a state. States with the same future have the same key, and `world` represents them all. */
  canonical(world: World): { readonly key: string; readonly world: World };
};

export type Result = {
  readonly states: number;
  readonly depth: number;
  /** Whether every reachable state was visited. */
  readonly fixpoint: boolean;
  /** The shortest sequence of steps that breaks the property, one step per line; empty if none was found. */
  readonly counterexample: readonly string[];
};

/** Searches a model. @param bound the number of states after which the search gives up */
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

/** Repeats the steps that lead from the start to the state with the number `at`, and returns their descriptions. */
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

/** Joins equal successive lines, so that three lines `0.5 R` become `3 × 0.5 R`. */
function folded(lines: readonly string[]): string[] {
  const runs: { readonly line: string; times: number }[] = [];
  for (const line of lines) {
    const last = runs.at(-1);
    if (last?.line === line) last.times++;
    else runs.push({ line, times: 1 });
  }
  return runs.map(({ line, times }) => (times === 1 ? line : `${times} × ${line}`));
}
