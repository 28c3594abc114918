// The map of the report has countries without Antarctica, and is 1080 pixels wide: a third of a degree is a pixel.
import { readFile } from "node:fs/promises";

/** Degrees between two positions that the map tells apart. */
const GRID = 0.02;
const ANTARCTICA = "010";

/** The esbuild plugin that leaves out of the atlas what the map does not draw. */
export function worldMap() {
  return {
    name: "world-map",
    setup({ onLoad }) {
      onLoad({ filter: /[\\/]world-atlas[\\/]countries-110m\.json$/ }, async ({ path }) => ({
        contents: JSON.stringify(reduceAtlas(JSON.parse(await readFile(path, "utf8")))),
        loader: "json",
      }));
    },
  };
}

/**
 * A topology (TopoJSON) with the shapes and codes of countries alone, its positions rounded.
 *
 * @param atlas of the package world-atlas
 */
function reduceAtlas({ type, objects, arcs, transform }) {
  const places = new Map();
  const used = [];
  const renumber = (arc) => {
    if (Array.isArray(arc)) return arc.map(renumber);
    // The complement of a number is the same arc in the other direction.
    const at = arc < 0 ? ~arc : arc;
    if (!places.has(at)) places.set(at, used.push(roundArc(arcs[at], transform)) - 1);
    return arc < 0 ? ~places.get(at) : places.get(at);
  };
  const geometries = objects.countries.geometries
    .filter(({ id }) => id !== ANTARCTICA)
    .map((country) => ({ type: country.type, id: country.id, arcs: renumber(country.arcs) }));
  return {
    type,
    transform: { scale: [GRID, GRID], translate: [-180, -90] },
    objects: { countries: { type: "GeometryCollection", geometries } },
    arcs: used,
  };
}

/** An arc as differences of positions on the grid; it was one of differences on the grid of the atlas. */
function roundArc(arc, { scale, translate }) {
  const sum = [0, 0];
  const last = [0, 0];
  return arc.map((step) =>
    step.map((delta, axis) => {
      sum[axis] += delta;
      const degrees = sum[axis] * scale[axis] + translate[axis] - [-180, -90][axis];
      const position = Math.round(degrees / GRID);
      const difference = position - last[axis];
      last[axis] = position;
      return difference;
    }),
  );
}
