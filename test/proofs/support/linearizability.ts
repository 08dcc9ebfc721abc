/**
 * Checks whether some sequential order explains a history of concurrent operations (Herlihy & Wing 1990). It uses the search of Wing &
 * Gong (1993) with the cache of Lowe (2017): the same set of operations that led to the same state is not explored again.
 */
export type Operation<I, O> = {
  readonly input: I;
  /** The output; undefined if it is unknown whether the operation was executed, or will be. */
  readonly output: O | undefined;
  /** The time of the invocation, on a monotonic clock that all operations share. */
  readonly invokedAt: number;
  /** The time of the return; Infinity if the output is unknown. */
  readonly returnedAt: number;
};

/** A sequential specification. */
export type Model<S, I, O> = {
  readonly initial: S;
  /** Returns the state after the operation, or undefined if the operation cannot have this output. An unknown output is always possible. */
  step(state: S, input: I, output: O | undefined): S | undefined;
  /** Returns a key that is equal for equal states. */
  key(state: S): string;
};

/** Shows why a history is not linearizable: the longest order that was found, and the operations that could not follow it. */
type Stuck<S, I, O> = {
  readonly order: readonly Operation<I, O>[];
  readonly state: S;
  readonly next: readonly Operation<I, O>[];
};

/** Returns undefined if the history is linearizable, and otherwise where the search got stuck. */
export function findFault<S, I, O>(
  history: readonly Operation<I, O>[],
  model: Model<S, I, O>,
): Stuck<S, I, O> | undefined {
  const operations = history.toSorted((a, b) => a.invokedAt - b.invokedAt);
  const tried = new Set<string>();
  const order: Operation<I, O>[] = [];
  let longest: Stuck<S, I, O> = { order: [], state: model.initial, next: [] };

  /** Returns whether the operations that are not in `placed` can follow in some order. */
  const search = (placed: bigint, state: S): boolean => {
    const left = operations.flatMap((operation, at) => ((placed >> BigInt(at)) & 1n ? [] : [{ operation, at }]));
    if (left.every(({ operation }) => operation.output === undefined)) return true;
    const position = `${placed.toString(36)} ${model.key(state)}`;
    if (tried.has(position)) return false;
    tried.add(position);
    // The order must respect time: an operation cannot precede one that returned before it was invoked.
    const horizon = Math.min(...left.map(({ operation }) => operation.returnedAt));
    const next = left.filter(({ operation }) => operation.invokedAt <= horizon);
    if (order.length >= longest.order.length) {
      longest = { order: [...order], state, next: next.map(({ operation }) => operation) };
    }
    for (const { operation, at } of next) {
      const after = model.step(state, operation.input, operation.output);
      if (after === undefined) continue;
      // An operation with an unknown output that changes nothing can be treated as not executed.
      if (operation.output === undefined && model.key(after) === model.key(state)) continue;
      order.push(operation);
      if (search(placed | (1n << BigInt(at)), after)) return true;
      order.pop();
    }
    return false;
  };

  return search(0n, model.initial) ? undefined : longest;
}
