// esbuild makes one chunk for each set of entry points that use the same modules: about a hundred, of which a command reads
// up to fifty. Each file costs a start about as much as 40 KB of code that is not run, so that larger chunks, in which
// a command reads some code that it does not need, are faster.

/** What one more file costs, in bytes of code that is read and not run. */
const FILE_BYTES = 40_000;

/**
 * Which modules each lazily loaded module has to seem to import, so that the chunks that are used together become one.
 *
 * @param metafile of a build without a plan
 * @param options `folder` has the modules that may read more than they use; `shared` is loaded before all of them; both
 * relative to the working folder
 * @returns the modules to import, by the module that is to import them
 */
export function planChunks({ inputs, outputs }, { folder, shared, entries }) {
  const graph = readGraph(inputs);
  const roots = [...new Set([...entries, ...graph.lazy])].sort();
  const uses = new Map(roots.map((root) => [root, staticUses(graph, root)]));
  const base = uses.get(shared);
  const isFree = (root) => root === shared || (root.startsWith(folder) && graph.lazy.has(root));
  for (const root of roots.filter(isFree)) for (const path of base) uses.get(root).add(path);
  const sizes = sizesOf(outputs);
  const chunks = mergeChunks(chunksOf(uses, sizes), { isFree, graph });
  const plan = new Map();
  for (const { users, modules } of chunks) {
    for (const user of users) {
      const missing = modules.filter((path) => !uses.get(user).has(path));
      if (missing.length > 0) plan.set(user, [...(plan.get(user) ?? []), ...missing]);
    }
  }
  return plan;
}

function readGraph(inputs) {
  const lazy = new Set();
  const statics = new Map();
  for (const [path, { imports }] of Object.entries(inputs)) {
    const found = imports.filter(({ external }) => !external);
    statics.set(
      path,
      found.filter(({ kind }) => kind !== "dynamic-import").map((one) => one.path),
    );
    for (const one of found) if (one.kind === "dynamic-import") lazy.add(one.path);
  }
  return { lazy, statics };
}

function staticUses({ statics }, root) {
  const found = new Set([root]);
  for (const path of found) for (const next of statics.get(path) ?? []) found.add(next);
  return found;
}

function sizesOf(outputs) {
  const sizes = new Map();
  for (const { inputs } of Object.values(outputs)) {
    for (const [path, { bytesInOutput }] of Object.entries(inputs)) {
      sizes.set(path, (sizes.get(path) ?? 0) + bytesInOutput);
    }
  }
  return sizes;
}

/** The chunks that esbuild makes: the modules that have the same users. */
function chunksOf(uses, sizes) {
  const users = new Map();
  for (const [root, paths] of uses) for (const path of paths) users.set(path, [...(users.get(path) ?? []), root]);
  const chunks = new Map();
  for (const [path, roots] of users) {
    const key = roots.join("\n");
    const chunk = chunks.get(key) ?? { users: new Set(roots), modules: [], bytes: 0 };
    chunk.modules.push(path);
    chunk.bytes += sizes.get(path) ?? 0;
    chunks.set(key, chunk);
  }
  return [...chunks.values()].filter(({ bytes }) => bytes > 0);
}

/** Joins two chunks as long as this makes the starts of all users cheaper together. */
function mergeChunks(given, { isFree, graph }) {
  let chunks = given;
  for (;;) {
    const importsOf = importedChunks(chunks, graph);
    let best = { gain: 0 };
    for (const [at, a] of chunks.entries()) {
      for (const b of chunks.slice(at + 1)) {
        const most = FILE_BYTES * [...a.users].filter((user) => b.users.has(user)).length;
        if (most <= best.gain) continue;
        const gain = most - costOf(a, b, importsOf(b), isFree) - costOf(b, a, importsOf(a), isFree);
        if (gain > best.gain) best = { gain, a, b };
      }
    }
    if (best.a === undefined) return chunks;
    const { a, b } = best;
    const users = new Set([...a.users, ...b.users]);
    const joined = { users, modules: [...a.modules, ...b.modules], bytes: a.bytes + b.bytes };
    const imported = new Set([...importsOf(a), ...importsOf(b)]);
    chunks = chunks
      .filter((one) => one !== a && one !== b)
      .map((one) => (imported.has(one) ? { ...one, users: new Set([...one.users, ...users]) } : one));
    chunks.push(joined);
  }
}

/** The other chunks that a chunk imports, directly or through more of them. */
function importedChunks(chunks, { statics }) {
  const chunkOf = new Map(chunks.flatMap((chunk) => chunk.modules.map((path) => [path, chunk])));
  const known = new Map();
  return (chunk) => {
    if (known.has(chunk)) return known.get(chunk);
    const paths = new Set(chunk.modules);
    for (const path of paths) for (const next of statics.get(path) ?? []) paths.add(next);
    const found = new Set([...paths].flatMap((path) => chunkOf.get(path) ?? []));
    found.delete(chunk);
    known.set(chunk, found);
    return found;
  };
}

/** The bytes that the users of one chunk read more if another one and its imports come with it. */
function costOf({ users }, other, imported, isFree) {
  let cost = 0;
  for (const user of users) {
    if (other.users.has(user)) continue;
    if (!isFree(user)) return Number.POSITIVE_INFINITY;
    cost += other.bytes;
    for (const chunk of imported) if (!chunk.users.has(user)) cost += chunk.bytes + FILE_BYTES;
  }
  return cost;
}
