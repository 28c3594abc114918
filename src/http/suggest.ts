/** The candidate nearest to a mistyped word or to the beginning of one, if one is near enough. */
export function suggest(word: string, candidates: readonly string[]): string | undefined {
  const typed = word.toLowerCase();
  // Three letters in ten may be wrong, one in any case: a distant suggestion does not help.
  const farthest = Math.max(1, Math.floor(typed.length * 0.34));
  const ranked = candidates
    .map((candidate) => ({ candidate, far: distanceBetween(typed, candidate.toLowerCase()) }))
    .filter(
      ({ far, candidate }) =>
        (far <= farthest && far < candidate.length) || (typed.length > 2 && candidate.toLowerCase().startsWith(typed)),
    )
    .sort((a, b) => a.far - b.far);
  return ranked[0]?.candidate;
}

/** The hint about an unknown name: the known one that it nearly is, or else what `otherwise` says. */
export function suggestionHint(name: string, known: readonly string[], otherwise: string): string {
  const suggestion = suggest(name, known);
  return suggestion === undefined ? otherwise : `did you mean ${suggestion}?`;
}

/** Insertions, deletions, substitutions and swaps of neighbours between two words. */
function distanceBetween(a: string, b: string): number {
  const rows = [Array.from({ length: b.length + 1 }, (_, j) => j)];
  const at = (i: number, j: number) => rows[i]?.[j] ?? 0;
  for (let i = 1; i <= a.length; i++) {
    const row = [i];
    rows.push(row);
    for (let j = 1; j <= b.length; j++) {
      const same = a[i - 1] === b[j - 1] ? 0 : 1;
      const swapped = i > 1 && j > 1 && a[i - 1] === b[j - 2] && a[i - 2] === b[j - 1];
      const least = Math.min(at(i - 1, j) + 1, (row[j - 1] ?? 0) + 1, at(i - 1, j - 1) + same);
      row.push(swapped ? Math.min(least, at(i - 2, j - 2) + 1) : least);
    }
  }
  return at(a.length, b.length);
}
