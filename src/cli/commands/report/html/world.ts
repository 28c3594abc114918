/** The countries of the world as a map: shapes by ISO code, and a projection that keeps areas true. */

import { feature } from "topojson-client";
import atlas from "world-atlas/countries-110m.json" with { type: "json" };

type Topology = Parameters<typeof feature>[0];

/** Shapes of countries whose `name` is their ISO 3166-1 alpha-2 code, or empty where they have none. */
export function countryShapes() {
  const topology = atlas as unknown as Topology;
  const countries = topology.objects["countries"];
  if (countries?.type !== "GeometryCollection") throw new TypeError("the atlas has no countries");
  const features = feature(topology, countries).features.map(({ id, geometry }) => ({
    type: "Feature" as const,
    geometry: { type: "MultiPolygon" as const, coordinates: polygonsOf(geometry).map((rings) => rings.map(unwrap)) },
    properties: { name: codeOf(id) },
  }));
  // Without Antarctica, which has no devices and takes a quarter of the map.
  return {
    type: "FeatureCollection" as const,
    features: features.filter(({ properties }) => properties.name !== "AQ"),
  };
}

function polygonsOf(geometry: { type: string }): number[][][][] {
  if (geometry.type === "Polygon") return [(geometry as unknown as { coordinates: number[][][] }).coordinates];
  if (geometry.type === "MultiPolygon") return (geometry as unknown as { coordinates: number[][][][] }).coordinates;
  return [];
}

/** A ring across the date line continues beyond 180 degrees, instead of jumping across the map. */
function unwrap(ring: readonly (readonly number[])[]): number[][] {
  let turns = 0;
  const unwrapped = ring.map(([longitude = 0, latitude = 0], index) => {
    const leap = longitude - (ring[index - 1]?.[0] ?? longitude);
    if (Math.abs(leap) > 180) turns -= Math.sign(leap);
    return [longitude + 360 * turns, latitude];
  });
  const longitudes = unwrapped.map(([longitude = 0]) => longitude);
  const middle = (Math.min(...longitudes) + Math.max(...longitudes)) / 2;
  const shift = middle < -180 ? 360 : 0;
  return unwrapped.map(([longitude = 0, latitude = 0]) => [longitude + shift, latitude]);
}

/** The alpha-2 code of a numeric one (ISO 3166-1), which locales know as an alias of it. */
function codeOf(numeric: string | number | undefined): string {
  return numeric === undefined ? "" : (new Intl.Locale(`und-${numeric}`).region ?? "");
}

const [A1, A2, A3, A4] = [1.340264, -0.081106, 0.000893, 0.003796];
const M = Math.sqrt(3) / 2;

/** The Equal Earth projection (Šavrič, Patterson and Jenny, 2018): longitude and latitude in degrees to x and y. */
export function equalEarth([longitude = 0, latitude = 0]: readonly number[]): [number, number] {
  const theta = Math.asin(M * Math.sin((latitude / 180) * Math.PI));
  const square = theta * theta;
  const sixth = square * square * square;
  const x =
    ((longitude / 180) * Math.PI * Math.cos(theta)) / (M * (A1 + 3 * A2 * square + sixth * (7 * A3 + 9 * A4 * square)));
  // On paper north is up, on screens y grows downwards.
  return [x, -theta * (A1 + A2 * square + sixth * (A3 + A4 * square))];
}
