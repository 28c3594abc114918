/** The cases whose runs are processes of their own, beside the first of each table. */
export const PROCESS_CASES: ReadonlySet<string> = new Set([
  // Their memory counts.
  ...["D12e", "D13a", "D13b", "D14a", "D21", "G4a", "G4b", "G4c", "G4d", "G5a", "G5b", "P7f", "T10c", "K4h", "K4i"],
  ...["L11b", "L15", "L20a", "L20d", "E2d", "E5n", "C26"],
  // 10,000 connections: half of the work is that of the process that waits.
  "C29a",
  // Locks between processes, and processes that are killed.
  ...["C18", "F1", "F3", "F9a", "F9b", "F10a", "F10b"],
  // A pipe whose reader is gone.
  "W15b",
  // The limits that a shell sets for a process.
  ...["K1", "K6"],
  // Their browser is a process that records its arguments and its environment.
  ...["U1a", "U11c", "U11d", "U12", "U13"],
]);
