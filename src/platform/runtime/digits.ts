/**
 * Returns what `String` does, for numbers that are new in each request: times, nonces. `String` puts each text that it makes into a cache,
 * and therefore into the old generation, where it stays until the next full garbage collection. The seven such texts of a refresh were most
 * of what made these collections necessary.
 */
export function digitsOf(number: number): string {
  return Number.isSafeInteger(number) ? number.toFixed(0) : String(number);
}
