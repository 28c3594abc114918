import fc from "fast-check";

// The tests try the same inputs each time, so that a change fails for what it changed; another seed tries others.
fc.configureGlobal({ seed: Number(process.env["FUZZ_SEED"] ?? 1) });

export { fc };
