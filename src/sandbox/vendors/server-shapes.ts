import type { ServerShape } from "./shape.js";

/** Every recorded shape. A sandbox of each of them shows whether a client can log in at real servers. */
export async function serverShapes(): Promise<readonly ServerShape[]> {
  return (await import("./catalogue.js")).SERVER_SHAPES;
}
