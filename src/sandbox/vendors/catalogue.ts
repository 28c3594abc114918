import { AgentAuthError } from "../../errors.js";
import { quote } from "../../redact.js";
import type { ServerShape } from "./shape.js";

/** Every recorded shape. A sandbox of each of them shows whether a client can log in at real servers. */
export async function serverShapes(): Promise<readonly ServerShape[]> {
  return (await import("#vendors")).SERVER_SHAPES;
}

/** The recorded shape with a name. @throws AgentAuthError `usage` */
export async function findShape(id: string): Promise<ServerShape> {
  const shapes = await serverShapes();
  const shape = shapes.find((one) => one.id === id);
  if (shape) return shape;
  throw new AgentAuthError("usage", `sandbox: like must be the name of a recorded server, ${quote(id)} is not`, {
    class: "usage",
    hint: `give like as one of ${shapes.map((one) => one.id).join(", ")}`,
  });
}
