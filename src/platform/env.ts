/** The environment of a run; an empty variable is unset. */
export type Env = Readonly<Record<string, string | undefined>>;
