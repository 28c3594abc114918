/** Stands for the methods of `console` in the command line: what packages print may hold control sequences of a server. */
export function silence() {}
