/** The package has no types; its functions are those of Node, which it makes find the programs of Windows. */
declare module "cross-spawn" {
  import type { spawn, spawnSync } from "node:child_process";

  const crossSpawn: typeof spawn & { readonly sync: typeof spawnSync };
  export default crossSpawn;
}
